// Fully connected layers, and biases.
#pragma once

#include "kernels/reference/view.h"

namespace convoy::ref {

template <class T>
void reference(const LinearOp& op, const KernelArgs& args);
template <class T>
void reference(const LinearGradInputOp& op, const KernelArgs& args);
template <class T>
void reference(const LinearGradWeightOp& op, const KernelArgs& args);
template <class T>
void reference(const BiasOp& op, const KernelArgs& args);
template <class T>
void reference(const BiasGradOp& op, const KernelArgs& args);

}  // namespace convoy::ref
