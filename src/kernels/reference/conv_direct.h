// Convolutions as their definition says, in nested loops, without workspace: what the faster form in conv.h is
// tested against, and what runs where it may use no memory.
#pragma once

#include "kernels/reference/view.h"

namespace convoy::ref {

template <class T>
void conv_direct(const ConvOp& op, const KernelArgs& args);
template <class T>
void conv_direct(const ConvGradInputOp& op, const KernelArgs& args);
template <class T>
void conv_direct(const ConvGradWeightOp& op, const KernelArgs& args);

}  // namespace convoy::ref
