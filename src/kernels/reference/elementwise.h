// Ops that work element by element (activations, dropout, sums and products of tensors) and softmax. Elements are computed in the tensors'
// own type; sums over many elements in double. No result depends on the number of threads. NaN stays NaN.
#pragma once

#include "kernels/reference/view.h"

namespace convoy::ref {

// Ranges of elements that are worth a thread of their own.
constexpr int64_t kElementGrain = 4096;

// y may be in the place of x.
template <class T>
void reference(const UnaryOp& op, const KernelArgs& args);
// dx may be in the place of either input. Requires alpha >= 0 for the leaky ReLU, whose gradient is read from the sign of y.
template <class T>
void reference(const UnaryGradOp& op, const KernelArgs& args);

// y may be in the place of x.
template <class T>
void reference(const PointwiseOp& op, const KernelArgs& args);
// Where a function has a corner the slope is that of the flat side, as in PyTorch; at the corners of Clip it is 1.
template <class T>
void reference(const PointwiseGradOp& op, const KernelArgs& args);

template <class T>
void reference(const PReluOp& op, const KernelArgs& args);
template <class T>
void reference(const PReluGradInputOp& op, const KernelArgs& args);
template <class T>
void reference(const PReluGradSlopeOp& op, const KernelArgs& args);

template <class T>
void reference(const SoftmaxOp& op, const KernelArgs& args);
template <class T>
void reference(const SoftmaxGradOp& op, const KernelArgs& args);

template <class T>
void reference(const LogSoftmaxOp& op, const KernelArgs& args);
template <class T>
void reference(const LogSoftmaxGradOp& op, const KernelArgs& args);

// Element i of the whole tensor (row-major, over `global`, the samples counted from first_sample) is kept when number i of the random
// stream (seed, step, op.stream) is at least p. y may be in the place of x.
template <class T>
void reference(const DropoutOp& op, const KernelArgs& args);

// Add sums from the first input to the last. The output may be in the place of any input.
template <class T>
void reference(const AddOp& op, const KernelArgs& args);
template <class T>
void reference(const MulOp& op, const KernelArgs& args);
template <class T>
void reference(const ScaleOp& op, const KernelArgs& args);

}  // namespace convoy::ref
