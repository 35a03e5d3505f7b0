// Losses and what goes with them. Everything is computed and summed in double, in an order that does not depend on the number of threads.
//
// Data sets check their labels when they are read. A label outside [0, K) that gets here all the same makes the loss, the gradient of its
// own logits, and the sum of the target weights NaN, and never counts as correct.
#pragma once

#include "kernels/reference/view.h"

namespace convoy::ref {

// Of one target t with weights w (1 without class weights) and smoothing s: w_t*(1-s)*(-logp_t) + s/K * (the sum over k of w_k*(-logp_k)).
template <class T>
void reference(const CrossEntropyOp& op, const KernelArgs& args);
template <class T>
void reference(const CrossEntropyGradOp& op, const KernelArgs& args);
template <class T>
void reference(const NllOp& op, const KernelArgs& args);
template <class T>
void reference(const NllGradOp& op, const KernelArgs& args);
template <class T>
void reference(const TargetWeightOp& op, const KernelArgs& args);
template <class T>
void reference(const ErrorLossOp& op, const KernelArgs& args);
// The gradient of the absolute error is 0 where x is the target.
template <class T>
void reference(const ErrorLossGradOp& op, const KernelArgs& args);
template <class T>
void reference(const CorrectOp& op, const KernelArgs& args);

}  // namespace convoy::ref
