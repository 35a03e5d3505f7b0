// The update of parameters: norms, clipping, and the rules of the optimizers, which follow PyTorch's definitions where it has them. Outputs
// may be in the place of the inputs that they are the next versions of. Elements are computed in T, what is common to a step in double. No
// result depends on the number of threads.
#pragma once

#include "kernels/reference/view.h"

namespace convoy::ref {

template <class T>
void reference(const SquaredNormOp& op, const KernelArgs& args);
template <class T>
void reference(const ClipScaleOp& op, const KernelArgs& args);
// All rules but Lamb. |g|^2, for Lars, is that of the gradient before clipping.
template <class T>
void reference(const UpdateOp& op, const KernelArgs& args);
template <class T>
void reference(const LambDirectionOp& op, const KernelArgs& args);
template <class T>
void reference(const LambApplyOp& op, const KernelArgs& args);

}  // namespace convoy::ref
