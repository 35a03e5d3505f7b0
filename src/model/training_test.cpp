// Training graphs: what frozen parameters leave out, and gradients as outputs.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/autodiff.h"
#include "model/zoo.h"

namespace convoy {
namespace {

std::vector<std::string> parameters(const Model& model) {
    std::vector<std::string> names;
    for (const StateSpec& spec : model.graph.states())
        if (spec.kind == StateKind::Parameter) names.push_back(spec.name);
    return names;
}

int backward_nodes(const Graph& graph) {
    int count = 0;
    for (const Node& node : graph.nodes()) count += node.phase == Phase::Backward;
    return count;
}

TEST(TrainingGraph, frozen_parameters_get_no_gradient_and_nothing_that_only_they_need) {
    const Model model = make_model("lenet5", {.batch = 2});
    const std::vector<std::string> all = parameters(model);
    const Optimizer optimizer{.rule = {.rule = Rule::Momentum}};
    // Only the last bias is learned: its gradient is a sum of the loss's, and nothing else goes backwards.
    const Graph graph = training_graph(model, optimizer, {.frozen = {all.begin(), all.end() - 1}});
    EXPECT_LE(backward_nodes(graph), 2);
    for (const Node& node : graph.nodes()) {
        EXPECT_FALSE(std::holds_alternative<ConvGradWeightOp>(node.op)) << node.layer;
        EXPECT_FALSE(std::holds_alternative<ConvGradInputOp>(node.op)) << node.layer;
    }
    for (const StateSpec& spec : graph.states())
        EXPECT_TRUE(spec.kind != StateKind::Slot || spec.name == "optimizer." + all.back() + ".momentum") << spec.name;
    // The last layers learned: what lies before them is not gone through.
    const Graph whole = training_graph(model, optimizer),
                tail = training_graph(model, optimizer, {.frozen = {all.begin(), all.begin() + 4}});
    EXPECT_LT(backward_nodes(tail), backward_nodes(whole));
    EXPECT_THROW(training_graph(model, optimizer, {.frozen = all}), Error);
}

TEST(TrainingGraph, gives_gradients_when_asked) {
    const Model model = make_model("lenet5", {.batch = 2});
    const std::vector<std::string> all = parameters(model);
    const Graph graph = training_graph(model, {}, {.frozen = {all[0]}, .gradients = true});
    for (const std::string& name : all) {
        const auto& outputs = graph.outputs();
        const bool there = std::any_of(outputs.begin(), outputs.end(), [&](const NamedValue& v) { return v.name == "grad:" + name; });
        EXPECT_EQ(there, name != all[0]) << name;
    }
}

// What max pooling reads is the largest of all activations; the pooled maxima say as much about the gradient.
TEST(TrainingGraph, nothing_reads_again_what_max_pooling_has_read) {
    for (const char* const name : {"vgg11", "alexnet", "resnet18", "lenet5"}) {
        const Graph graph = training_graph(make_model(name, {.batch = 2}), {});
        std::set<ValueId> pooled;
        for (const Node& node : graph.nodes()) {
            if (std::holds_alternative<MaxPoolOp>(node.op)) pooled.insert(node.inputs[0]);
            if (node.phase != Phase::Backward) continue;
            for (const ValueId v : node.inputs) EXPECT_EQ(pooled.count(v), 0) << name << ", " << node.layer;
        }
        EXPECT_FALSE(pooled.empty()) << name;
    }
}

}  // namespace
}  // namespace convoy
