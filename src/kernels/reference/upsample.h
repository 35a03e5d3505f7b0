// Changes of resolution by position: up-sampling, and adaptive average pooling. Both know where their operands lie in the whole tensors: an
// output part is computed from that part of the input which is there, so that parts of an input give partial sums.
#pragma once

#include "kernels/reference/view.h"

namespace convoy::ref {

template <class T>
void reference(const AdaptivePoolOp& op, const KernelArgs& args);
template <class T>
void reference(const AdaptivePoolGradOp& op, const KernelArgs& args);
template <class T>
void reference(const UpsampleOp& op, const KernelArgs& args);
template <class T>
void reference(const UpsampleGradOp& op, const KernelArgs& args);

}  // namespace convoy::ref
