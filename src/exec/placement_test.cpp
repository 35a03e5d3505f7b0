// Programs of many ranks against one process: whatever the plan, the same numbers, in float64.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "base/test_count.h"
#include "comm/thread_world.h"
#include "exec/session.h"
#include "model/autodiff.h"
#include "model/builder.h"
#include "program/plan_spec.h"
#include "program/signature.h"

namespace convoy {
namespace {

Tensor feed_for(const Graph& graph, ValueId v, const std::string& name, int64_t classes) {
    const ValueType& type = graph.value(v).type;
    if (name == "hyper") return Tensor::of<double>({2}, {0.05, 1});
    if (type.element == Element::Index) {
        Tensor t(type.shape, DType::i32);
        for (int64_t i = 0; i < t.numel(); ++i) t.as<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>((i * 7 + 3) % classes);
        return t;
    }
    Tensor t(type.shape, DType::f64);
    std::mt19937 random(static_cast<uint32_t>(std::hash<std::string>()(name)));
    std::normal_distribution<double> normal;
    for (double& x : t.as<double>()) x = normal(random);
    return t;
}

using Feeds = std::map<std::string, Tensor>;

Feeds feeds_for(const Graph& graph, int64_t classes) {
    Feeds feeds;
    for (const auto& [name, v] : graph.inputs()) feeds[name] = feed_for(graph, v, name, classes);
    return feeds;
}

// Outputs (as whole tensors) and states of one process after some steps.
struct Truth {
    std::map<std::string, Tensor> outputs, states;
};

Truth one_process(const Graph& graph, const Feeds& feeds, int steps) {
    Session session({.dtype = DType::f64, .seed = 5});
    const auto executor = session.load(graph);
    for (const auto& [name, tensor] : feeds) executor->set_whole_input(name, tensor);
    for (int s = 0; s < steps; ++s) executor->run({5, static_cast<uint32_t>(s)});
    Truth truth;
    for (const auto& [name, slot] : executor->program().outputs) truth.outputs[name] = executor->read(slot);
    for (const auto& spec : session.state().specs()) truth.states[spec.name] = session.state().read(spec.name);
    return truth;
}

// The largest relative difference of any output or state, with its name.
struct Worst {
    double error = 0;
    std::string name;
    void see(double e, const std::string& n) {
        if (!(e <= error)) error = e, name = n;
    }
};

Worst compare(const Graph& graph, const Plan& plan, const Feeds& feeds, const Truth& truth, int steps) {
    ThreadWorld world(ranks_of(plan));
    std::vector<Worst> worst(static_cast<size_t>(world.size()));
    run_ranks(world, [&](Transport& transport) {
        Link link(transport, std::chrono::seconds(60));
        Session session({.dtype = DType::f64, .seed = 5, .plan = plan, .link = &link});
        const auto executor = session.load(graph);
        for (const auto& [name, tensor] : feeds) executor->set_whole_input(name, tensor);
        for (int s = 0; s < steps; ++s) executor->run({5, static_cast<uint32_t>(s)});
        Worst& mine = worst[static_cast<size_t>(transport.rank())];
        for (const auto& [name, slot] : executor->program().outputs) {
            const TensorDesc& desc = executor->program().slot(slot).desc;
            mine.see(relative_error(executor->read(slot), part_of(truth.outputs.at(name), {desc.origin, desc.shape}), 1e-3), name);
        }
        for (const auto& spec : session.state().specs())
            mine.see(relative_error(session.state().read(spec.name), truth.states.at(spec.name), 1e-3), spec.name);
    });
    Worst all;
    for (const Worst& w : worst) all.see(w.error, w.name);
    return all;
}

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

Graph training_of(const Model& model) {
    return training_graph(model, {.rule = {.rule = Rule::Momentum, .weight_decay = 1e-3}}, {});
}

class UniformPlans : public testing::TestWithParam<const char*> {};

TEST_P(UniformPlans, ComputeWhatOneProcessComputes) {
    for (const auto& [batch, size] : {std::pair<int64_t, int64_t>{4, 8}, {7, 13}}) {
        const Graph graph = training_of(small_model(batch, size));
        const Feeds feeds = feeds_for(graph, 10);
        const Truth truth = one_process(graph, feeds, 3);
        const std::string spec = GetParam();
        const bool preset = spec.find(':') == std::string::npos;
        const UniformPlan uniform = plan_from_spec(spec, preset ? 4 : 0, graph);
        const Worst worst = compare(graph, uniform.plan, feeds, truth, 3);
        EXPECT_LE(worst.error, 1e-9) << spec << ", batch " << batch << ": " << worst.name;
    }
}

INSTANTIATE_TEST_SUITE_P(Specs, UniformPlans,
                         testing::Values("sample:1", "sample:2", "sample:4", "height:2", "height:3", "height:2,width:2", "sample:2,height:2",
                                         "channel:2@x", "channel:4@x", "channel:2@y", "channel:4@y", "channel:2,filter:2@w",
                                         "channel:2,filter:3@w", "sample:2,channel:2@x", "sample:2,channel:2@y", "data", "spatial",
                                         "hybrid-fc", "zero"));

}  // namespace
}  // namespace convoy
