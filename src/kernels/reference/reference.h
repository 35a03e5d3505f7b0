// The reference: every op, obvious and slow, in float64 and float32, on plain row-major tensors. Every other backend is measured against it.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "kernels/backend.h"
#include "model/graph.h"

namespace convoy {

// Computes one op on `threads` threads. Floating operands are all of one type, f64 or f32, and plain. Outputs may not overlap inputs, except that
// the update ops (UpdateOp, LambDirectionOp, LambApplyOp, RunningUpdateOp) and elementwise ops (UnaryOp, UnaryGradOp, PointwiseOp, PointwiseGradOp, BiasOp, AddOp, MulOp,
// ScaleOp, DropoutOp, BatchNormalizeOp) may write an output in the place of an input of the same shape. `workspace` has
// reference_workspace_bytes(op, ...) bytes. The result does not depend on timing; it may depend on `threads` by rounding.
void run_reference(const Op& op, std::span<const Operand> inputs, std::span<const Operand> outputs, void* workspace, int threads,
                   const StepContext& context);
int64_t reference_workspace_bytes(const Op& op, std::span<const TensorDesc> inputs, std::span<const TensorDesc> outputs, int threads);

// Runs a whole graph node by node with no planning: the oracle for compilers. `feeds` gives inputs and states by name in any floating type; the
// result holds every graph output by its name and every store under "store:<state name>".
std::map<std::string, Tensor> interpret(const Graph& graph, const std::map<std::string, Tensor>& feeds, DType dtype,
                                        const StepContext& context);

std::unique_ptr<Backend> make_reference_backend(const BackendOptions& options);

}  // namespace convoy
