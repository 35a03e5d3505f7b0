// What a plan does to memory: activations are what splitting space divides.
#include <gtest/gtest.h>

#include <iostream>

#include "exec/session.h"
#include "model/autodiff.h"
#include "model/zoo.h"
#include "program/plan_spec.h"

namespace convoy {
namespace {

// Planned memory of the worst rank without states and without the gradients of parameters, which space does not divide.
int64_t activation_bytes(const std::string& spec) {
    const Model model = make_model("unet3d", {.batch = 1, .input = {1, 64, 64, 64}});
    const Graph graph = training_graph(model, {.rule = {.rule = Rule::Momentum}}, {});
    const Plan plan = spec.empty() ? Plan::single() : plan_from_spec(spec, 0, graph).plan;
    const auto backend = make_backend("cpu", {.threads = 1});
    int64_t gradients = 0, worst = 0;
    for (const StateSpec& state : graph.states())
        if (state.kind == StateKind::Parameter) gradients += 4 * numel(state.shape);
    for (Rank r = 0; r < ranks_of(plan); ++r) {
        const Program program = compile(graph, plan, backend->target(), {.rank = r});
        worst = std::max(worst, program.memory.arena_bytes);
    }
    return worst - gradients;
}

TEST(PlacementMemory, SplittingSpaceDividesActivations) {
    for (const auto& status : backend_statuses())
        if (status.name == "cpu" && !status.ready) GTEST_SKIP() << "the figures are those of the cpu backend, which is " << status.detail;
    const auto one = static_cast<double>(activation_bytes(""));
    const auto two = static_cast<double>(activation_bytes("depth:2")), four = static_cast<double>(activation_bytes("depth:2,height:2"));
    std::cout << fmt::format("activations of one process {:.1f} MB; depth:2 {:.3f} of it, depth:2,height:2 {:.3f}\n", one / 1e6, two / one,
                             four / one);
    EXPECT_LE(two / one, 0.56);
    EXPECT_LE(four / one, 0.31);
}

}  // namespace
}  // namespace convoy
