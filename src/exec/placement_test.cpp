// Programs of many ranks against one process: whatever the plan, the same numbers, in float64.
#include <gtest/gtest.h>

#include "exec/placement_testing.h"
#include "model/autodiff.h"
#include "model/builder.h"
#include "program/plan_spec.h"

namespace convoy {
namespace {

// --- A fixed network under every kind of uniform plan ---

Model small_model(int64_t batch, int64_t size) {
    Builder b(Mode::Training);
    ValueId x = b.input({batch, 3, size, size});
    x = b.relu("relu1", b.batch_norm("bn1", b.conv("conv1", x, {.filters = 8, .kernel = {3, 3}, .pad = {1, 1}, .bias = false})));
    const ValueId skip = x;
    x = b.conv("conv2", x, {.filters = 8, .kernel = {3, 3}, .pad = {1, 1}});
    x = b.relu("relu2", b.add("add", {x, skip}));
    x = b.max_pool("pool", x, {.kernel = {2, 2}});
    x = b.conv("conv3", x, {.filters = 12, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}});
    x = b.relu("relu3", b.batch_norm("bn3", x));
    x = b.flatten("flatten", b.adaptive_pool("gap", x, {1, 1}));
    x = b.dropout("drop", x, 0.3);
    x = b.linear("fc", x, {.outputs = 10});
    b.graph().add_output("logits", x);
    return {"small", b.take(), {{.output = "logits"}}, 10};
}

Graph training_of(const Model& model) { return training_graph(model, {.rule = {.rule = Rule::Momentum, .weight_decay = 1e-3}}, {}); }

class UniformPlans : public testing::TestWithParam<const char*> {};

TEST_P(UniformPlans, ComputeWhatOneProcessComputes) {
    for (const auto& [batch, size] : {std::pair<int64_t, int64_t>{4, 8}, {7, 13}}) {
        const Graph graph = training_of(small_model(batch, size));
        const Feeds feeds = feeds_for(graph, 10);
        const Truth truth = one_process(graph, feeds, 3);
        const std::string spec = GetParam();
        const bool preset = spec.find(':') == std::string::npos;
        const UniformPlan uniform = plan_from_spec(spec, preset ? 4 : 0, graph);
        for (const bool fills_machine : {false, true}) {
            const Worst worst = compare(graph, uniform.plan, feeds, truth, {3, fills_machine});
            EXPECT_LE(worst.error, 1e-9) << spec << ", batch " << batch << ": " << worst.name;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Specs, UniformPlans,
                         testing::Values("sample:1", "sample:2", "sample:4", "height:2", "height:3", "height:2,width:2",
                                         "sample:2,height:2", "channel:2@x", "channel:4@x", "channel:2@y", "channel:4@y",
                                         "channel:2,filter:2@w", "channel:2,filter:3@w", "sample:2,channel:2@x", "sample:2,channel:2@y",
                                         "data", "spatial", "hybrid-fc", "zero"));

}  // namespace
}  // namespace convoy
