// Pooling with a sliding window: the maximum, and the average.
#pragma once

#include "kernels/reference/view.h"

namespace convoy::ref {

template <class T>
void reference(const MaxPoolOp& op, const KernelArgs& args);
template <class T>
void reference(const MaxPoolGradOp& op, const KernelArgs& args);
template <class T>
void reference(const MaxIndexOp& op, const KernelArgs& args);
template <class T>
void reference(const AveragePoolOp& op, const KernelArgs& args);
template <class T>
void reference(const AveragePoolGradOp& op, const KernelArgs& args);

}  // namespace convoy::ref
