// ONNX's preview of training: optimizer steps, written out in arithmetic as its standard defines them (which is not quite how ours are defined), and gradients.
#include <cmath>

#include "model/autodiff.h"
#include "onnx/context.h"

namespace convoy::onnx {

namespace {

// Inputs R, T, then as many tensors of each kind as are optimised: X.., G.., and `slots` kinds of state. Outputs: new X.., and new slots.
struct Step {
    size_t count;
    double steps;  // T
    ValueId rate;
    ValueId x, gradient;  // of tensor i, with the norm's share added to the gradient
    std::vector<ValueId> slots;
};
template <class Body>
void for_each_tensor(NodeContext& c, size_t slots, const Body& body) {
    if (c.inputs() < 2 || (c.inputs() - 2) % (2 + slots) != 0)
        c.refuse(fmt::format("{} inputs, expected 2 and a multiple of {}", c.inputs(), 2 + slots));
    const size_t count = (c.inputs() - 2) / (2 + slots);
    const double regular = c.real("norm_coefficient", 0), steps = c.known_number(1);
    for (size_t i = 0; i < count; ++i) {
        Step s{.count = count, .steps = steps, .rate = c.value(0), .x = c.value(2 + i), .gradient = c.value(2 + count + i), .slots = {}};
        s.gradient = regular == 0 ? s.gradient : c.plus(s.gradient, c.scale(s.x, regular));
        for (size_t k = 0; k < slots; ++k) s.slots.push_back(c.value(2 + (2 + k) * count + i));
        body(s, i);
    }
}

void momentum(NodeContext& c) {
    const double alpha = c.real("alpha", 0), beta = c.real("beta", 0);
    const std::string mode = c.text("mode", "standard");
    if (mode != "standard" && mode != "nesterov") c.refuse(fmt::format("a mode of \"{}\"", mode));
    for_each_tensor(c, 1, [&](const Step& s, size_t i) {
        const ValueId v = c.plus(c.scale(s.slots[0], alpha), c.scale(s.gradient, s.steps > 0 ? beta : 1));
        const ValueId direction = mode == "standard" ? v : c.plus(s.gradient, c.scale(v, alpha));
        c.set(i, c.plus(s.x, c.negative(c.times(direction, s.rate))));
        c.set(s.count + i, v);
    });
}

void adagrad(NodeContext& c) {
    const double decay = c.real("decay_factor", 0), epsilon = c.real("epsilon", 1e-6);
    for_each_tensor(c, 1, [&](const Step& s, size_t i) {
        const ValueId rate = c.scale(s.rate, 1 / (1 + s.steps * decay));
        const ValueId squares = c.plus(s.slots[0], c.times(s.gradient, s.gradient));
        const ValueId root = c.shift(c.map(Pointwise::Sqrt, squares), epsilon);
        const ValueId step = c.times(c.times(s.gradient, c.map(Pointwise::Reciprocal, root)), rate);
        c.set(i, c.plus(s.x, c.negative(step)));
        c.set(s.count + i, squares);
    });
}

void adam(NodeContext& c) {
    const double alpha = c.real("alpha", 0.9), beta = c.real("beta", 0.999), epsilon = c.real("epsilon", 1e-6);
    const double after = c.real("norm_coefficient_post", 0);
    for_each_tensor(c, 2, [&](const Step& s, size_t i) {
        const ValueId v = c.plus(c.scale(s.slots[0], alpha), c.scale(s.gradient, 1 - alpha));
        const ValueId h = c.plus(c.scale(s.slots[1], beta), c.scale(c.times(s.gradient, s.gradient), 1 - beta));
        const double correction = s.steps > 0 ? std::sqrt(1 - std::pow(beta, s.steps)) / (1 - std::pow(alpha, s.steps)) : 1;
        const ValueId root = c.shift(c.map(Pointwise::Sqrt, h), epsilon);
        const ValueId step = c.times(c.times(v, c.map(Pointwise::Reciprocal, root)), c.scale(s.rate, correction));
        c.set(i, c.scale(c.plus(s.x, c.negative(step)), 1 - after));
        c.set(s.count + i, v);
        c.set(2 * s.count + i, h);
    });
}

// dy/dx for the values that the attributes name; the inputs say at which point, which here is where the graph computes them.
void gradient(NodeContext& c) {
    const Attribute* const of = c.attribute("y");
    if (!of) c.refuse("it does not name the value y");
    const ValueId y = c.named(of->s);
    std::vector<ValueId> wrt;
    for (size_t i = 0; i < c.inputs(); ++i) wrt.push_back(c.value(i));
    c.attribute("xs");
    c.attribute("zs");
    for (const convoy::Node& node : c.graph().nodes())
        if (node.phase == Phase::Backward) c.refuse("the gradient of a gradient is not supported");
    c.graph().set_phase(Phase::Backward);
    const ValueId seed = c.broadcast(c.constant(c.filled({}, 1), ".one"), c.shape_of(y));
    const auto made = backward(c.graph(), {{y, seed}}, wrt);
    c.graph().set_phase(Phase::Forward);
    for (size_t i = 0; i < made.size() && i < c.outputs(); ++i) {
        if (made[i] == kNone) c.refuse(fmt::format("\"{}\" does not depend on its input {}", std::string(of->s), i + 1));
        c.set(i, made[i]);
    }
}

}  // namespace

std::span<const OpEntry> training_ops() {
    static constexpr OpEntry entries[] = {{"Momentum", momentum}, {"Adagrad", adagrad}, {"Adam", adam}, {"Gradient", gradient}};
    return entries;
}

}  // namespace convoy::onnx
