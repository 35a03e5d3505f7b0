// What single ops and patterns draw alike: shapes as nets have them and odd ones, and inputs that fit together.
#pragma once

#include <utility>
#include <vector>

#include "kernels/op_cases.h"

namespace convoy::op_testing {

constexpr Element kReal = Element::Real, kPrecise = Element::Precise;

// One op, all of whose outputs are wanted.
OpCase one(const Op& op, const std::vector<std::pair<Element, Tensor>>& inputs);

// What the reference makes of an op with one output.
Tensor by_reference(const Op& op, const std::vector<Tensor>& inputs, const Shape& output);

// [N, C, ..] with enough elements in every channel that statistics are well behaved.
Shape activation(Draw& d, int64_t most_channels = 40);
// The same, or [N, C].
Shape any_activation(Draw& d);
// [N, C, space..].
Shape with_space(Draw& d, const Dims& space);

Tensor positive(Draw& d, const Shape& shape);
// An activation with another mean and spread in every channel.
Tensor spread(Draw& d, const Shape& shape);

struct ConvShapes {
    ref::testing::WindowProblem problem;
    int64_t groups;
    Shape x, w, y;
};
// With `crops` the padding may be negative.
ConvShapes draw_conv(Draw& d, bool crops = true);

// Every window of a maximum holds some of the input.
ref::testing::WindowProblem draw_max_window(Draw& d);
// Where the maxima [y] of x lie, as the reference finds them.
std::pair<Element, Tensor> where_of(const Window& window, const Tensor& x, const Shape& y);

// Batch norm of an activation, with all that its forward and backward passes read.
struct NormInputs {
    Tensor x, dy, stats, gamma, beta, dgamma, dbeta;
    int64_t count() const { return x.numel() / x.shape()[1]; }  // elements of a channel
};
NormInputs draw_norm(Draw& d);

Tensor draw_hyper(Draw& d);
UpdateRule draw_rule(Draw& d);
// Adds an update of a tensor of this shape; its outputs are still to come.
void add_update(OpCase& c, Draw& d, const UpdateOp& op, const Shape& shape, int hyper);
// Adds the outputs of all updates, which come after all inputs.
void add_update_outputs(OpCase& c);

}  // namespace convoy::op_testing
