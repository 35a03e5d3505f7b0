// A local problem: what one rank computes in one instruction. One op, or a few that a backend does in one pass (convolution, bias, ReLU).
#pragma once

#include <string>
#include <vector>

#include "model/op.h"
#include "tensor/dims.h"
#include "tensor/dtype.h"

namespace convoy {

// A rank's part of a tensor: its own shape, and where it lies in the whole. Ops whose result depends on the position (dropout's mask, adaptive
// pooling, up-sampling) read origin and global; all others see only the shape.
struct TensorDesc {
    Shape shape;
    DType dtype = DType::f32;
    Shape global;  // the whole tensor
    Dims origin;   // of this part in it

    // A tensor that is whole.
    static TensorDesc whole(const Shape& shape, DType dtype) { return {shape, dtype, shape, Dims::filled(shape.size(), 0)}; }
    bool operator==(const TensorDesc&) const = default;
};

// One op of a problem; operands are indices into the problem's tensors.
struct ProblemStep {
    Op op;
    std::vector<int> inputs, outputs;
    bool operator==(const ProblemStep&) const = default;
};

struct Problem {
    std::vector<TensorDesc> tensors;  // first the inputs, then the outputs, then what stays inside
    int inputs = 0, outputs = 0;
    std::vector<ProblemStep> steps;
    DType compute = DType::f32;  // how to multiply: tf32 and bf16 are ways of computing
    bool operator==(const Problem&) const = default;

    // The problem of a single op.
    static Problem single(const Op& op, const std::vector<TensorDesc>& inputs, const std::vector<TensorDesc>& outputs, DType compute);
};

// "conv + bias + relu"
std::string text_of(const Problem& problem);

// The operations of all its steps.
double work_of(const Problem& problem);

}  // namespace convoy
