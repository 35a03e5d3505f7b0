// What a plan does to memory: activations are what splitting space divides.
#include <gtest/gtest.h>

#include <iostream>

#include "exec/session.h"
#include "model/autodiff.h"
#include "model/zoo.h"
#include "program/plan_spec.h"

namespace convoy {
namespace {

// Memory that the plan takes in a step, of the rank that takes most: everything but the states. Parameters' gradients are part of it. They live for so short a time that
// few are there at the peak, and space does not divide them, so leaving them in is the stricter figure.
int64_t step_bytes(const std::string& spec) {
    const Model model = make_model("unet3d", {.batch = 1, .input = {1, 64, 64, 64}});
    const Graph graph = training_graph(model, {.rule = {.rule = Rule::Momentum}}, {});
    const Plan plan = spec.empty() ? Plan::single() : plan_from_spec(spec, 0, graph).plan;
    const auto backend = make_backend("cpu", {.threads = 1});
    int64_t worst = 0;
    for (Rank r = 0; r < ranks_of(plan); ++r)
        worst = std::max(worst, compile(graph, plan, backend->target(), {.rank = r}).memory.arena_bytes);
    return worst;
}

TEST(PlacementMemory, SplittingSpaceDividesActivations) {
    for (const auto& status : backend_statuses())
        if (status.name == "cpu" && !status.ready) GTEST_SKIP() << "the figures are those of the cpu backend, which is " << status.detail;
    const auto one = static_cast<double>(step_bytes(""));
    const auto two = static_cast<double>(step_bytes("depth:2")), four = static_cast<double>(step_bytes("depth:2,height:2"));
    std::cout << fmt::format("memory of one process in a step {:.1f} MB; depth:2 {:.3f} of it, depth:2,height:2 {:.3f}\n", one / 1e6,
                             two / one, four / one);
    EXPECT_LE(two / one, 0.56);
    EXPECT_LE(four / one, 0.31);
}

}  // namespace
}  // namespace convoy
