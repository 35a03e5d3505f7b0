// Random graphs under random plans, on one to eight ranks: uneven sizes, ranks without rows, every op and every kind of split.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <map>

#include "base/json.h"
#include "base/test_count.h"
#include "exec/placement_cases.h"
#include "exec/placement_coverage.h"
#include "exec/placement_testing.h"
#include "program/compile.h"
#include "program/plan_spec.h"

namespace convoy {
namespace {

// LAMB gives every step the length of its weight, also where the gradient is zero but for rounding (a bias under a norm): no two ways of computing agree there.
bool lamb_on_rounding(const Graph& graph, const Truth& truth) {
    for (const Node& node : graph.nodes()) {
        if (!std::holds_alternative<LambDirectionOp>(node.op)) continue;
        const Tensor& mean = truth.states.at(graph.value(node.inputs[3]).name);
        if (relative_error(mean, Tensor(mean.shape(), DType::f64), 1) < 1e-9) return true;
    }
    return false;
}

// The layer whose state is overwritten while traffic may still read it; "" where there is none. Whether that does harm is a matter of luck, so it is read off the program.
std::string overwritten_too_soon(const Program& program) {
    std::array<int, kQueues> over;  // of each queue: the last instruction that was waited for
    over.fill(kNone);
    std::map<int, std::vector<int>> readers;  // of each state: traffic
    for (int i = 0; i < static_cast<int>(program.instructions.size()); ++i) {
        const auto queue_of = [&](int at) { return program.instructions[static_cast<size_t>(at)].queue; };
        const auto is_carried = [&](int at) { return program.instructions[static_cast<size_t>(at)].due != kNone; };
        const Instruction& in = program.instructions[static_cast<size_t>(i)];
        // What is carried runs in the next step, when all traffic that is not carried is over: nobody after it in this step has waited for what it waits for.
        std::array<int, kQueues> known = over;
        for (const int w : in.waits) known[static_cast<size_t>(queue_of(w))] = std::max(known[static_cast<size_t>(queue_of(w))], w);
        if (!is_carried(i)) over = known;
        for (const SlotId id : in.outputs) {
            if (program.slot(id).state == kNone) continue;
            for (const int t : readers[program.slot(id).state])
                if (queue_of(t) != in.queue && known[static_cast<size_t>(queue_of(t))] < t && (!is_carried(i) || is_carried(t)))
                    return in.layer;
        }
        for (const SlotId id : in.inputs)
            if (is_traffic(in.action) && program.slot(id).state != kNone) readers[program.slot(id).state].push_back(i);
    }
    return "";
}

// Splits that a signature names but no plan brings about.
bool is_impossible(const std::string& split) {
    // The last dims of a locally connected layer's weights are its kernel's, which no label of the layer is on. Optimizer state is cut along its longest dim at
    // most, which these never are.
    for (const char* kernel : {": dim5", ": dim6", ": dim7"})
        if (split.ends_with(kernel)) return true;
    // A third dim of five is a kernel's too. Here LAMB's state may be cut along it, but its step is applied to the weight, which is not: bringing the step to where
    // the weight lies whole always costs less than bringing back what comes of it.
    return split == "lamb_apply: depth";
}

TEST(RandomPlacement, ComputesWhatOneProcessComputes) {
    Coverage coverage;
    const int full = 3000, cases = test_count(150, full);
    const char* const only = std::getenv("CONVOY_TEST_CASE");  // to look at one
    int compared = 0;
    double largest = 0;
    for (int i = only ? std::atoi(only) : 0; i < (only ? std::atoi(only) + 1 : cases); ++i) {
        SCOPED_TRACE("case " + std::to_string(i));
        PlacementCase c = placement_case(i);
        const int steps = i % 4 == 0 ? 3 : 1;  // several follow each other, and some carry updates
        Truth truth = one_process(c.graph, feeds_for(c.graph, c.classes), steps);
        if (lamb_on_rounding(c.graph, truth)) {
            c = placement_case(i, false);
            truth = one_process(c.graph, feeds_for(c.graph, c.classes), steps);
        }
        if (only) std::cout << listing(place(c.graph, c.plan), c.graph, c.plan);
        Worst worst;
        ASSERT_NO_THROW(worst = compare(c.graph, c.plan, feeds_for(c.graph, c.classes), truth, {steps, i / 4 % 8 < 3}))
            << to_json(c.plan).dump();
        ASSERT_LE(worst.error, steps == 1 ? 1e-9 : 1e-7) << worst.name << " under " << to_json(c.plan).dump();
        largest = std::max(largest, worst.error);
        coverage.add(c.graph, c.plan);
        ++compared;
    }
    if (only) return;
    std::cout << coverage.table();
    std::cout << fmt::format("{} cases compared, the largest error {:.1e}\n", compared, largest);
    EXPECT_EQ(compared, cases);
    EXPECT_EQ(coverage.missing_ops(), std::vector<std::string>{});
    EXPECT_EQ(coverage.missing_moves(), std::vector<std::string>{});
    EXPECT_EQ(coverage.missing_features(), std::vector<std::string>{});
    for (const char* kind : {"whole", "sample", "channel", "filter", "group", "depth", "height", "width"})
        EXPECT_GT(coverage.count("conv", kind), 0) << kind;
    if (cases < full) return;  // a sample does not meet every split
    EXPECT_GE(coverage.possible_splits(), 330);
    std::vector<std::string> missing = coverage.missing_splits();
    std::erase_if(missing, is_impossible);
    EXPECT_EQ(missing, std::vector<std::string>{});
}

TEST(RandomPlacement, WhatTrafficSendsIsNotOverwritten) {
    const auto backend = make_backend("reference", {});
    for (int i = 0; i < test_count(800, 3000); ++i) {
        const PlacementCase c = placement_case(i);
        Compiler compiler(c.graph, c.plan, backend->target(), {.dtype = DType::f64});
        for (Rank rank = 0; rank < ranks_of(c.plan); ++rank)
            EXPECT_EQ(overwritten_too_soon(compiler.program(rank)), "") << "case " << i << ", rank " << rank;
    }
}

}  // namespace
}  // namespace convoy
