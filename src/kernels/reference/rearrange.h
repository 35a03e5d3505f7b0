// Ops that move elements without computing on them, and the two that repeat and sum along dims. The moves work on operands of any type that
// the reference has (f64, f32, i64, i32, u8), whatever T is. Sizes are those of the operands: the ops' `shape` and `size` are not read.
#pragma once

#include "kernels/reference/view.h"

namespace convoy::ref {

template <class T>
void reference(const ConcatOp& op, const KernelArgs& args);
template <class T>
void reference(const SliceOp& op, const KernelArgs& args);
// A negative lo or hi cuts off instead.
template <class T>
void reference(const PadOp& op, const KernelArgs& args);
template <class T>
void reference(const ReshapeOp& op, const KernelArgs& args);
template <class T>
void reference(const TransposeOp& op, const KernelArgs& args);
template <class T>
void reference(const ExpandOp& op, const KernelArgs& args);
template <class T>
void reference(const PackOp& op, const KernelArgs& args);
template <class T>
void reference(const UnpackOp& op, const KernelArgs& args);
// Summed in double, in row-major order.
template <class T>
void reference(const SumToOp& op, const KernelArgs& args);

}  // namespace convoy::ref
