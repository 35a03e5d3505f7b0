// Memory over the step, and what ranks report about themselves, on a target that computes nothing.
#include "program/memory_profile.h"
#include "base/json.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "model/autodiff.h"
#include "model/builder.h"
#include "program/compile.h"
#include "program/plan_report.h"
#include "program/plan_spec.h"
#include "program/storage.h"

namespace convoy {
namespace {

class PlainTarget : public Target {
  public:
    std::string name() const override { return "plain"; }
    DType storage(Element element, DType compute) const override { return stored_as(element, compute); }
    std::vector<Candidate> candidates(const Problem& problem) const override {
        if (problem.steps.size() > 1) return {};
        Candidate plain{.algorithm = "plain"};
        plain.inputs.resize(static_cast<size_t>(problem.inputs));
        plain.outputs.resize(static_cast<size_t>(problem.outputs));
        if (std::holds_alternative<ConvOp>(problem.steps[0].op)) plain.workspace_bytes = 1000;
        if (std::holds_alternative<UpdateOp>(problem.steps[0].op)) plain.in_place = {{0, 0}};
        return {plain};
    }
};

Graph residual_training() {
    Builder b(Mode::Training);
    ValueId x = b.input({4, 3, 8, 8});
    const ValueId trunk = b.relu("relu1", b.conv("conv1", x, {.filters = 8, .kernel = {3, 3}, .pad = {1, 1}}));
    x = b.add("add", {b.conv("conv2", trunk, {.filters = 8, .kernel = {3, 3}, .pad = {1, 1}}), trunk});
    x = b.linear("fc", b.flatten("flatten", x), {.outputs = 5});
    b.graph().add_output("output", x);
    return training_graph({"small", b.take(), {{.output = "output"}}, 5}, {.rule = {.rule = Rule::Momentum}});
}

Program program_of(const std::string& spec, Rank rank, int ranks) {
    const Graph graph = residual_training();
    const Plan plan = spec.empty() ? Plan::single() : plan_from_spec(spec, ranks, graph).plan;
    return compile(graph, plan, PlainTarget(), {.rank = rank});
}

// Bytes of the arena that an instruction touches itself.
int64_t touched(const Program& program, const Instruction& in) {
    std::vector<std::pair<int64_t, int64_t>> pieces;
    for (const auto* list : {&in.inputs, &in.outputs})
        for (const SlotId id : *list)
            if (program.slot(id).state == kNone)
                pieces.emplace_back(program.slot(id).offset, program.slot(id).offset + program.slot(id).bytes);
    if (const auto* compute = std::get_if<Compute>(&in.action))
        pieces.emplace_back(compute->workspace_offset, compute->workspace_offset + compute->workspace_bytes);
    std::sort(pieces.begin(), pieces.end());
    int64_t sum = 0, covered = 0;
    for (const auto& [begin, end] : pieces) {
        sum += std::max<int64_t>(0, end - std::max(begin, covered));
        covered = std::max(covered, end);
    }
    return sum;
}

TEST(MemoryProfile, IsBetweenWhatIsTouchedAndWhatIsAllocated) {
    for (const std::string spec : {"", "sample:2", "height:2", "channel:2@x"}) {
        SCOPED_TRACE(spec);
        const Program program = program_of(spec, 0, 2);
        const MemoryProfile profile = memory_profile(program);
        for (size_t i = 0; i < program.instructions.size(); ++i) {
            EXPECT_GE(profile.instants[i].total(), touched(program, program.instructions[i])) << i;
            EXPECT_LE(profile.instants[i].total(), program.memory.arena_bytes) << i;
        }
        // The plan wastes little of what it allocates.
        EXPECT_GT(static_cast<double>(profile.instants[profile.peak].total()), 0.75 * static_cast<double>(program.memory.arena_bytes));
    }
}

TEST(MemoryProfile, KnowsHowLongThingsLive) {
    const Program program = program_of("", 0, 1);
    const MemoryProfile profile = memory_profile(program);
    const auto at = [&](size_t i, MemoryUse use) { return profile.instants[i].bytes[static_cast<size_t>(use)]; };
    // The inputs, [4,3,8,8] of f32 and 4 labels, stay to the end; activations pile up to the loss and are gone at the end, but for the loss.
    const int64_t inputs = at(0, MemoryUse::Inputs);
    EXPECT_GE(inputs, 4 * 3 * 8 * 8 * 4 + 4 * 4);
    size_t forward = 0;
    for (size_t i = 0; i < profile.instants.size(); ++i) {
        EXPECT_EQ(at(i, MemoryUse::Inputs), inputs);
        if (profile.instants[i].phase == Phase::Forward) forward = i;
    }
    // relu1, conv2 or the sum, all [4,8,8,8], are read again by the backward pass.
    EXPECT_GE(at(forward, MemoryUse::Activations), 2 * 4 * 8 * 8 * 8 * 4);
    EXPECT_LT(at(profile.instants.size() - 1, MemoryUse::Activations), 4 * 8 * 8 * 8 * 4);
    EXPECT_EQ(at(0, MemoryUse::Gradients), 0);
}

TEST(MemoryProfile, SaysWhatTheMemoryIsFor) {
    const Program program = program_of("height:2", 1, 2);
    const MemoryProfile profile = memory_profile(program);
    ASSERT_EQ(profile.instants.size(), program.instructions.size());
    EXPECT_EQ(profile.rank, 1);
    EXPECT_EQ(profile.parameter_bytes + profile.optimizer_bytes + profile.buffer_bytes, program.memory.state_bytes);
    EXPECT_EQ(profile.parameter_bytes, profile.optimizer_bytes);  // momentum
    std::array<int64_t, kMemoryUses> most{};
    for (const auto& instant : profile.instants) {
        EXPECT_LE(instant.total(), profile.arena_bytes);
        EXPECT_LE(instant.total(), profile.instants[profile.peak].total());
        for (size_t use = 0; use < kMemoryUses; ++use) most[use] = std::max(most[use], instant.bytes[use]);
    }
    EXPECT_EQ(most[static_cast<size_t>(MemoryUse::Workspace)], 1000);
    for (size_t use = 0; use < kMemoryUses; ++use) EXPECT_GT(most[use], 0) << name_of(static_cast<MemoryUse>(use));
    int64_t held = 0;
    for (const auto& holder : profile.at_peak) held += holder.bytes;
    EXPECT_EQ(held, profile.instants[profile.peak].total());

    const Json json = to_json(profile);
    EXPECT_EQ(json["layers"].size(), profile.instants.size());
    EXPECT_EQ(json["bytes"]["gradients"].size(), profile.instants.size());
    EXPECT_EQ(json["phases"].front(), "forward");
}

TEST(PlanReport, RanksTellAboutThemselves) {
    const Graph graph = residual_training();
    const Plan plan = plan_from_spec("sample:2", 2, graph).plan;
    const PlanReport compiled = report_plan(graph, plan, PlainTarget(), DType::f32);
    std::vector<RankReport> told;
    for (Rank r = 0; r < 2; ++r) {
        const RankReport mine = report_rank(compile(graph, plan, PlainTarget(), {.rank = r}));
        told.push_back(rank_report_from_json(Json::parse(to_json(mine).dump())));
    }
    Json expected = to_json(compiled);
    EXPECT_TRUE(expected.contains("one_process"));
    expected.erase("one_process");
    EXPECT_EQ(to_json(report_plan(graph, plan, told)), expected);
    ASSERT_EQ(compiled.layers.size(), 7U);  // with the loss
    EXPECT_TRUE(compiled.layers[0].from.empty());
    EXPECT_EQ(compiled.layers[3].layer, "add");
    EXPECT_EQ(compiled.layers[3].from, (std::vector<std::string>{"conv2", "relu1"}));
    EXPECT_GT(compiled.layers[0].gradient_bytes, 0);
}

}  // namespace
}  // namespace convoy
