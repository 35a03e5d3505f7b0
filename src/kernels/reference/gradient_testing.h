// Gradients against finite differences. Every op that has a gradient is put into a graph, y = op(inputs), whose backward pass the library
// writes; with fixed random c, the derivative of L = sum(c * y) along random directions must be that of a difference over four points in
// float64. The same graphs in float32 must agree with float64 within 1e-4.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "kernels/reference/test_support.h"
#include "model/autodiff.h"

namespace convoy::ref::testing {

using Feeds = std::map<std::string, Tensor>;

constexpr double kStep = 1e-3;
// Between values near a kink (0 for the ReLU, another element for a maximum): wider than any step can reach.
constexpr double kGap = 0.05;
constexpr StepContext kContext{.seed = 7, .step = 3};

inline int shapes() { return test_count(15, 200); }

class Function {
  public:
    explicit Function(Draw& draw) : draw_(draw) {}

    Graph graph;

    // An input that the function is differentiated by, with its value; and one that it is not.
    ValueId input(const std::string& name, const Tensor& value, Element element = Element::Real) {
        const ValueId id = constant(name, value, element);
        wrt_.push_back(id);
        return id;
    }
    ValueId constant(const std::string& name, const Tensor& value, Element element = Element::Real) {
        feeds_[name] = value;
        return graph.add_input(name, {value.shape(), element});
    }
    ValueId parameter(const std::string& name, const Tensor& value) { return input(name, value, Element::Precise); }

    // Adds the op, its backward pass, and checks.
    void check(const Op& op, const std::vector<ValueId>& inputs) { check(graph.add(op, inputs, "op")[0]); }
    void check(ValueId y) {
        const ValueId c = graph.add_input("c", graph.value(y).type);
        feeds_["c"] = draw_.normal(graph.shape(y));
        check(y, backward(graph, {{y, c}}, wrt_));
    }
    // For a loss, which has a gradient op of its own.
    void check_loss(const Op& loss, const Op& gradient, const std::vector<ValueId>& inputs) {
        feeds_["c"] = doubles({1}, {1});
        check(graph.add1(loss, inputs, "loss"), {graph.add1(gradient, inputs, "loss")});
    }

  private:
    void check(ValueId y, const std::vector<ValueId>& gradients) {
        graph.add_output("y", y);
        for (size_t i = 0; i < wrt_.size(); ++i) {
            ASSERT_NE(gradients[i], kNone) << "no gradient for " << graph.value(wrt_[i]).name;
            ASSERT_EQ(graph.shape(gradients[i]), graph.shape(wrt_[i]));
            graph.add_output("d:" + graph.value(wrt_[i]).name, gradients[i]);
        }
        const auto results = interpret(graph, feeds_, DType::f64, kContext);
        for (const ValueId v : wrt_)
            for (int i = 0; i < 2; ++i) check_direction(results, {v});
        check_direction(results, wrt_);
        check_float32(results);
    }

    double loss_at(const Feeds& directions, double step) const {
        Feeds feeds = feeds_;
        for (const auto& [name, direction] : directions)
            for (int64_t i = 0; i < direction.numel(); ++i)
                feeds[name].as<double>()[static_cast<size_t>(i)] += step * element(direction, i);
        const Tensor y = interpret(graph, feeds, DType::f64, kContext).at("y");
        double sum = 0;
        for (int64_t i = 0; i < y.numel(); ++i) sum += element(y, i) * element(feeds_.at("c"), i);
        return sum;
    }

    void check_direction(const Feeds& results, const std::vector<ValueId>& along) {
        Feeds directions;
        double expected = 0, squares = 0;
        for (const ValueId v : along) {
            const auto& name = graph.value(v).name;
            const Tensor& direction = directions[name] = draw_.normal(graph.shape(v));
            const Tensor& gradient = results.at("d:" + name);
            for (int64_t i = 0; i < direction.numel(); ++i) {
                const double term = element(gradient, i) * element(direction, i);
                expected += term;
                squares += term * term;
            }
        }
        const double near = loss_at(directions, kStep) - loss_at(directions, -kStep);
        const double far = loss_at(directions, 2 * kStep) - loss_at(directions, -2 * kStep);
        const double found = (8 * near - far) / (12 * kStep);
        double magnitude = 0;
        for (int64_t i = 0; i < results.at("y").numel(); ++i)
            magnitude += std::abs(element(results.at("y"), i) * element(feeds_.at("c"), i));
        const double rounding = 1e-15 * magnitude / kStep;
        EXPECT_NEAR(found, expected, 1e-6 * std::max(std::abs(expected), std::sqrt(squares)) + rounding) << describe(along);
    }

    void check_float32(const Feeds& results) const {
        double whole = 0;
        for (const auto& [name, tensor] : results)
            if (name != "y") whole = std::hypot(whole, relative_error(tensor, Tensor(tensor.shape(), DType::f64), 1));
        const auto narrow = interpret(graph, feeds_, DType::f32, kContext);
        for (const auto& [name, tensor] : results)
            EXPECT_LT(relative_error(narrow.at(name), tensor, name == "y" ? 1e-30 : std::max(1e-3 * whole, 1e-30)), 1e-4)
                << name << " of " << describe(wrt_);
    }

    std::string describe(const std::vector<ValueId>& values) const {
        std::string text = text_of(graph.node(graph.value(graph.output("y")).producer).op) + ", by";
        for (const ValueId v : values) text += " " + graph.value(v).name + " " + to_string(graph.shape(v));
        return text;
    }

    Draw& draw_;
    std::vector<ValueId> wrt_;
    Feeds feeds_;
};

// Runs a family's body on as many random shapes as the run asks for.
template <class Body>
void for_shapes(const std::string& family, const Body& body) {
    for (int i = 0; i < shapes(); ++i) {
        Draw draw(family, i);
        Function f(draw);
        body(f, draw);
        if (::testing::Test::HasFailure()) FAIL() << family << ", shape number " << i;
    }
}

// An activation [N, C, ...] with up to three spatial dims.
inline Shape draw_activation(Draw& draw, int64_t least = 1) { return draw.dims(static_cast<int>(draw.between(2, 5)), least, 4); }

}  // namespace convoy::ref::testing
