#include "exec/placement_testing.h"

#include <random>

#include "comm/thread_world.h"
#include "program/plan_spec.h"

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

}  // namespace

Feeds feeds_for(const Graph& graph, int64_t classes) {
    Feeds feeds;
    for (const auto& [name, v] : graph.inputs()) feeds[name] = feed_for(graph, v, name, classes);
    return feeds;
}

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

void on_ranks(const Graph& graph, const Plan& plan, const Feeds& feeds, const Way& way, const ShowRank& show) {
    ThreadWorld world(ranks_of(plan));
    run_ranks(world, [&](Transport& transport) {
        Link link(transport, std::chrono::seconds(60));
        link.set_fills_machine(way.fills_machine);
        Session session({.dtype = DType::f64, .seed = 5, .plan = plan, .link = &link});
        const auto executor = session.load(graph);
        for (const auto& [name, tensor] : feeds) executor->set_whole_input(name, tensor);
        for (int s = 0; s < way.steps; ++s) executor->run({5, static_cast<uint32_t>(s)});
        show(transport.rank(), *executor, session);
    });
}

Worst compare(const Graph& graph, const Plan& plan, const Feeds& feeds, const Truth& truth, const Way& way) {
    std::vector<Worst> worst(static_cast<size_t>(ranks_of(plan)));
    on_ranks(graph, plan, feeds, way, [&](Rank rank, Executor& executor, Session& session) {
        Worst& mine = worst[static_cast<size_t>(rank)];
        for (const auto& [name, slot] : executor.program().outputs) {
            const TensorDesc& desc = executor.program().slot(slot).desc;
            mine.see(relative_error(executor.read(slot), part_of(truth.outputs.at(name), {desc.origin, desc.shape}), 1e-3), name);
        }
        for (const auto& spec : session.state().specs())
            mine.see(relative_error(session.state().read(spec.name), truth.states.at(spec.name), 1e-3), spec.name);
    });
    Worst all;
    for (const Worst& w : worst) all.see(w.error, w.name);
    return all;
}

}  // namespace convoy
