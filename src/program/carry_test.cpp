// Which updates go on into the next step, until when, and what that does to memory.
#include <set>

#include <gtest/gtest.h>

#include "model/autodiff.h"
#include "model/builder.h"
#include "program/compile.h"
#include "program/in_place.h"
#include "program/memory_profile.h"
#include "program/plan_spec.h"
#include "program/storage.h"

namespace convoy {
namespace {

// Everything plain, in place where it may be; updates together.
class PlainTarget : public Target {
  public:
    bool host = true;
    std::string name() const override { return "plain"; }
    DType storage(Element element, DType compute) const override { return stored_as(element, compute); }
    std::vector<Candidate> candidates(const Problem& problem) const override {
        if (problem.steps.size() > 1) return {};
        return {{.algorithm = "plain",
                 .inputs = std::vector<Layout>(static_cast<size_t>(problem.inputs)),
                 .outputs = std::vector<Layout>(static_cast<size_t>(problem.outputs)),
                 .in_place = in_place_of(problem.steps[0].op, problem.inputs)}};
    }
    bool on_host() const override { return host; }
};

Graph training(const Optimizer& optimizer = {.rule = {.rule = Rule::Momentum}}, const TrainingOptions& options = {}) {
    Builder b(Mode::Training);
    ValueId x = b.input({4, 3, 8, 8});
    for (int i = 0; i < 6; ++i) {
        const std::string at = std::to_string(i);
        x = b.relu("relu" + at, b.conv("conv" + at, x, {.filters = 8, .kernel = {3, 3}, .pad = {1, 1}}));
    }
    b.graph().add_output("output", b.linear("fc", b.flatten("flatten", x), {.outputs = 5}));
    return training_graph({"small", b.take(), {{.output = "output"}}, 5}, optimizer, options);
}

Program program_of(const Graph& graph, const std::string& spec = "sample:2", const CompileOptions& options = {},
                   const PlainTarget& target = {}) {
    const Plan plan = spec.empty() ? Plan::single() : plan_from_spec(spec, spec == "zero" ? 2 : 0, graph).plan;
    return compile(graph, plan, target, options);
}

bool is_carried(const Instruction& in) { return in.due != kNone && !is_traffic(in.action); }
int carried_in(const Program& program) {
    return static_cast<int>(std::count_if(program.instructions.begin(), program.instructions.end(), is_carried));
}

TEST(Carry, UpdatesAreDueWhenTheirParameterIsRead) {
    const Program program = program_of(training());
    std::set<std::string> carried;
    for (const Instruction& in : program.instructions) {
        if (!is_carried(in)) continue;
        carried.insert(in.layer);
        for (const SlotId id : in.outputs) {
            const int state = program.slot(id).state;
            ASSERT_NE(state, kNone);
            for (int i = 0; i < in.due; ++i)
                for (const SlotId other : program.instructions[static_cast<size_t>(i)].inputs)
                    EXPECT_NE(program.slot(other).state, state) << i;
        }
        const auto& next = program.instructions[static_cast<size_t>(in.due)];
        EXPECT_EQ(next.phase, Phase::Forward);
        EXPECT_EQ(next.layer + ".", in.layer.substr(0, next.layer.size() + 1)) << "it reads the parameter";
    }
    EXPECT_EQ(carried.size(), 14U) << "a weight and a bias of seven layers";
}

TEST(Carry, LateGradientsHaveAQueueOfTheirOwn) {
    const Program program = program_of(training());
    std::set<std::string> late, soon;
    for (const Instruction& in : program.instructions) {
        if (!is_gradient_queue(in.queue)) continue;
        EXPECT_NE(in.due, kNone);
        for (const auto& member : std::get<Collective>(in.action).members) (in.queue == Queue::Late ? late : soon).insert(member.layer);
    }
    EXPECT_TRUE(soon.count("conv0.weight") && soon.count("conv2.bias") && late.count("conv5.weight") && late.count("fc.bias"));
    EXPECT_EQ(late.size() + soon.size(), 14U);
}

TEST(Carry, OnlyWhatNeedsNoMoreThanItsOwnGradient) {
    EXPECT_EQ(carried_in(program_of(training(), "")), 0) << "no traffic";
    EXPECT_EQ(carried_in(program_of(training(), "sample:2", {.carry = false})), 0);
    PlainTarget device;
    device.host = false;
    EXPECT_EQ(carried_in(program_of(training(), "sample:2", {}, device)), 0);
    EXPECT_EQ(carried_in(program_of(training({.rule = {.rule = Rule::Momentum}, .clip_norm = 1}))), 0);
    EXPECT_EQ(carried_in(program_of(training({.rule = {.rule = Rule::Lamb}}))), 0);
    EXPECT_EQ(carried_in(program_of(training({}, {.gradients = true}))), 0) << "gradients are read after the step";
    EXPECT_EQ(carried_in(program_of(training({.rule = {.rule = Rule::Lars}}))), 7) << "biases have no rate of their own";
    EXPECT_EQ(carried_in(program_of(training(), "zero")), 14) << "the weights, gathered after updates of parts, which end the step";
}

// What lives past the end of a step shares no byte with what is written before it is read.
TEST(Carry, MemoryIsKeptUntilItIsDue) {
    const Program program = program_of(training());
    const auto overlap = [&](SlotId a, SlotId b) {
        const Slot &x = program.slot(a), &y = program.slot(b);
        return x.state == kNone && y.state == kNone && x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
    };
    for (size_t c = 0; c < program.instructions.size(); ++c) {
        const Instruction& in = program.instructions[c];
        if (!is_carried(in)) continue;
        for (const SlotId kept : in.inputs) {
            for (const auto& [name, input] : program.inputs)
                EXPECT_FALSE(overlap(kept, input)) << name << " is given anew before " << in.layer;
            for (int i = 0; i < in.due; ++i)
                for (const SlotId out : program.instructions[static_cast<size_t>(i)].outputs)
                    EXPECT_FALSE(overlap(kept, out)) << in.layer << " " << i;
        }
    }
    const MemoryProfile profile = memory_profile(program), plain = memory_profile(program_of(training(), "sample:2", {.carry = false}));
    for (const auto& instant : profile.instants) EXPECT_LE(instant.total(), program.memory.arena_bytes);
    EXPECT_GT(profile.instants.front().total(), plain.instants.front().total()) << "gradients of the step before";
}

}  // namespace
}  // namespace convoy
