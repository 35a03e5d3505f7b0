// The compiler's passes on a target that computes nothing but has opinions.
#include "program/compile.h"
#include "base/json.h"

#include <functional>

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/autodiff.h"
#include "model/builder.h"
#include "program/plan_spec.h"
#include "program/storage.h"

namespace convoy {
namespace {

// Convolutions want the blocked layout, everything single takes plain; what else is offered is up to the test.
class OpinionatedTarget : public Target {
  public:
    std::function<std::vector<Candidate>(const Problem&)> also = [](const Problem&) { return std::vector<Candidate>(); };
    bool blocked = false;

    std::string name() const override { return "opinionated"; }
    DType storage(Element element, DType compute) const override { return stored_as(element, compute); }
    std::vector<Candidate> candidates(const Problem& problem) const override {
        auto list = also(problem);
        if (problem.steps.size() > 1) return list;
        Candidate plain{.algorithm = "plain"};
        plain.inputs.resize(static_cast<size_t>(problem.inputs));
        plain.outputs.resize(static_cast<size_t>(problem.outputs));
        const Op& op = problem.steps[0].op;
        if (blocked && std::holds_alternative<ConvOp>(op)) {
            plain.algorithm = "blocked";
            plain.inputs = {Layout::blocked(4, 16), Layout::channels_last(4)};
            plain.outputs = {Layout::blocked(4, 16)};
        }
        if (std::holds_alternative<UpdateOp>(op)) {
            plain.inputs[0] = plain.inputs[1] = plain.outputs[0] = Layout::same();
            plain.in_place = {{0, 0}};
        }
        if (std::holds_alternative<UnaryOp>(op)) {
            plain.inputs[0] = plain.outputs[0] = Layout::same();
            plain.in_place = {{0, 0}};
        }
        list.push_back(plain);
        return list;
    }
};

Graph small_training() {
    Builder b(Mode::Training);
    ValueId x = b.input({2, 3, 8, 8});
    x = b.relu("relu1", b.conv("conv1", x, {.filters = 4, .kernel = {3, 3}}));
    x = b.relu("relu2", b.conv("conv2", x, {.filters = 4, .kernel = {3, 3}}));
    x = b.linear("fc", b.flatten("flatten", x), {.outputs = 5});
    b.graph().add_output("output", x);
    b.add("unused", {x, x});
    return training_graph({"small", b.take(), {{.output = "output"}}, 5}, {});
}

std::vector<std::string> texts(const Program& program) {
    std::vector<std::string> list;
    for (const auto& in : program.instructions) list.push_back(in.layer + ": " + text_of(in));
    return list;
}

size_t index_of(const Program& program, const std::string& text) {
    const auto list = texts(program);
    for (size_t i = 0; i < list.size(); ++i)
        if (list[i].rfind(text, 0) == 0) return i;
    ADD_FAILURE() << "no instruction " << text;
    return 0;
}

TEST(Compile, DropsWhatNothingReadsAndViewsCostNothing) {
    const Program p = compile(small_training(), Plan::single(), OpinionatedTarget(), {});
    for (const auto& text : texts(p)) {
        EXPECT_EQ(text.find("unused"), std::string::npos);
        EXPECT_EQ(text.find("reshape"), std::string::npos);
        EXPECT_EQ(text.find("conv_grad_input 3x3: conv1"), std::string::npos);
    }
}

TEST(Compile, UpdatesMoveUpToTheirGradients) {
    const Program p = compile(small_training(), Plan::single(), OpinionatedTarget(), {});
    // fc's weights are updated after the input gradient that still reads them, and before the convolutions' gradients.
    EXPECT_GT(index_of(p, "fc.weight: update"), index_of(p, "fc: linear_grad_input"));
    EXPECT_LT(index_of(p, "fc.weight: update"), index_of(p, "conv1: conv_grad_weight"));
    for (const auto& in : p.instructions)
        if (in.phase == Phase::Update) {
            EXPECT_EQ(p.slot(in.outputs[0]).state, p.slot(in.inputs[0]).state);
        }
}

TEST(Compile, LayoutsAreSettledWithTheFewestCopies) {
    OpinionatedTarget target;
    target.blocked = true;
    const Program p = compile(small_training(), Plan::single(), target, {});
    int copies = 0;
    for (const auto& in : p.instructions) copies += std::holds_alternative<Copy>(in.action);
    // Into the blocked layout before each convolution, out of it (the bias is plain here) after each. The first convolution's weight lies as it is read, and its
    // gradient is copied; the second's is plain, because both gradients want it so, and is copied for the forward pass.
    EXPECT_EQ(copies, 6);
    for (const auto& state : p.states)
        if (state.spec.name == "conv1.weight") {
            EXPECT_EQ(state.layout, Layout::channels_last(4));
        } else if (state.spec.name == "conv2.weight") {
            EXPECT_EQ(state.layout, Layout::plain());
        }
    const Program shared = compile(small_training(), Plan::single(), OpinionatedTarget(), {.share_state_with = &p});
    for (const auto& state : shared.states)
        if (state.spec.name == "conv1.weight") {
            EXPECT_EQ(state.layout, Layout::channels_last(4));
        }
}

TEST(Compile, FusesWhatTheTargetOffers) {
    OpinionatedTarget target;
    std::vector<std::string> proposed;
    target.also = [&](const Problem& problem) -> std::vector<Candidate> {
        if (problem.steps.size() < 2) return {};
        proposed.push_back(text_of(problem));
        Candidate c{.algorithm = "fused"};
        c.inputs.resize(static_cast<size_t>(problem.inputs));
        c.outputs.resize(static_cast<size_t>(problem.outputs));
        if (std::holds_alternative<ConvOp>(problem.steps[0].op) || std::holds_alternative<ConvGradWeightOp>(problem.steps[0].op))
            return {c};
        return {};
    };
    const Program p = compile(small_training(), Plan::single(), target, {});
    const Instruction& conv = p.instructions[index_of(p, "relu1: conv 3x3 + bias + relu")];
    EXPECT_EQ(conv.inputs.size(), 3u);
    EXPECT_EQ(conv.outputs.size(), 1u);
    EXPECT_EQ(std::get<Compute>(conv.action).problem.tensors.size(), 6u);
    const Instruction& gradient = p.instructions[index_of(p, "conv1: conv_grad_weight 3x3 + bias_grad")];
    EXPECT_EQ(gradient.outputs.size(), 2u);
    index_of(p, "fc: linear");  // refused by the target, so it stands alone
    EXPECT_NE(std::find(proposed.begin(), proposed.end(), "linear + bias"), proposed.end());
}

// y = relu(norm(x)): the mask goes into both gradients of the norm; with a skip connection it is written once, with the sums.
TEST(Compile, MasksOfBatchNormAreRecomputedOrShared) {
    OpinionatedTarget target;
    target.also = [&](const Problem& problem) -> std::vector<Candidate> {
        if (problem.steps.size() < 2 || !std::holds_alternative<BatchNormGradSumsOp>(problem.steps.back().op)) {
            if (problem.steps.size() != 3 || !std::holds_alternative<BatchNormGradInputOp>(problem.steps.back().op)) return {};
        }
        Candidate c{.algorithm = "fused"};
        c.inputs.resize(static_cast<size_t>(problem.inputs));
        c.outputs.resize(static_cast<size_t>(problem.outputs));
        return {c};
    };
    const auto graph = [](bool skip) {
        Builder b(Mode::Training);
        ValueId x = b.conv("conv", b.input({2, 4, 5, 5}), {.filters = 4, .kernel = {1, 1}, .bias = false});
        ValueId y = b.batch_norm("bn", x);
        if (skip) y = b.add("add", {y, x});
        y = b.relu("relu", y);
        b.graph().add_output("output", b.linear("fc", b.flatten("flatten", y), {.outputs = 3}));
        return training_graph({"m", b.take(), {{.output = "output"}}, 3}, {});
    };
    const Program plain = compile(graph(false), Plan::single(), target, {});
    index_of(plain, "bn: batch_normalize + relu_grad + batch_norm_grad_sums");
    index_of(plain, "bn: batch_normalize + relu_grad + batch_norm_grad_input");
    for (const auto& text : texts(plain)) EXPECT_NE(text, "relu: relu_grad");
    const Program skip = compile(graph(true), Plan::single(), target, {});
    const Instruction& sums = skip.instructions[index_of(skip, "bn: relu_grad + batch_norm_grad_sums")];
    EXPECT_EQ(sums.outputs.size(), 3u);
    index_of(skip, "bn: batch_norm_grad_input");
}

TEST(Compile, WithoutReuseEveryTensorHasItsOwnMemory) {
    const Program shared = compile(small_training(), Plan::single(), OpinionatedTarget(), {});
    const Program own = compile(small_training(), Plan::single(), OpinionatedTarget(), {.reuse_memory = false});
    EXPECT_EQ(own.memory.arena_bytes, own.memory.unshared_bytes);
    EXPECT_EQ(own.memory.unshared_bytes, shared.memory.unshared_bytes);
    EXPECT_LT(shared.memory.arena_bytes, own.memory.arena_bytes);
}

// Small gradients travel together, as they are made; a large one alone. Every rank of the group has the same buckets.
TEST(Compile, GradientsTravelInBuckets) {
    Builder b(Mode::Training);
    ValueId x = b.input({4, 3, 8, 8});
    for (int i = 0; i < 6; ++i) x = b.conv(fmt::format("conv{}", i), x, {.filters = 4, .kernel = {3, 3}, .pad = {1, 1}});
    x = b.linear("large", b.flatten("flatten", x), {.outputs = 1100});  // 1100 * 256 floats are more than a bucket
    b.graph().add_output("output", b.linear("fc", x, {.outputs = 5}));
    const Graph graph = training_graph({"small", b.take(), {{.output = "output"}}, 5}, {});
    const Plan plan = plan_from_spec("sample:2", 0, graph).plan;
    const OpinionatedTarget target;
    std::vector<std::vector<std::string>> of_rank;
    for (const Rank rank : {0, 1}) {
        const Program program = compile(graph, plan, target, {.rank = rank, .carry = false});  // with one queue
        std::vector<std::string> members;
        int64_t sent = 0;
        for (const Instruction& in : program.instructions) {
            const auto* collective = std::get_if<Collective>(&in.action);
            if (!collective || in.queue != Queue::Gradient) continue;
            sent += in.sent;
            EXPECT_EQ(in.inputs.size(), in.outputs.size());
            int64_t charged = 0, end = 0;
            for (const auto& member : collective->members) charged += member.sent;
            members.push_back(fmt::format("{} gradients", std::max<size_t>(1, collective->members.size())));
            if (collective->members.empty()) continue;
            EXPECT_EQ(charged, in.sent);
            EXPECT_EQ(collective->members.size(), in.inputs.size());
            for (const SlotId out : in.outputs) {  // one after the other
                if (end > 0) {
                    EXPECT_LT(program.slot(out).offset - end, 64);
                }
                end = program.slot(out).offset + program.slot(out).bytes;
            }
        }
        EXPECT_EQ(sent, (6 * 4 + 3 * 4 * 9 + 5 * 4 * 4 * 9 + 1100 * 257 + 5 * 1101) * 4) << "half of every gradient there, half back";
        of_rank.push_back(members);
    }
    EXPECT_EQ(of_rank[0], of_rank[1]);
    EXPECT_EQ(of_rank[0], (std::vector<std::string>{"1 gradients", "15 gradients"}));
}

TEST(Compile, TheLastBucketsAreSmall) {
    Builder b(Mode::Training);
    ValueId x = b.input({2, 32, 4, 4});
    for (int i = 0; i < 70; ++i) x = b.conv(fmt::format("conv{}", i), x, {.filters = 32, .kernel = {3, 3}, .pad = {1, 1}, .bias = false});
    b.graph().add_output("output", b.linear("fc", b.flatten("flatten", x), {.outputs = 5}));
    const Graph graph = training_graph({"deep", b.take(), {{.output = "output"}}, 5}, {});
    const Program program = compile(graph, plan_from_spec("sample:2", 0, graph).plan, OpinionatedTarget(), {.rank = 0, .carry = false});
    std::vector<int64_t> sent;
    for (const Instruction& in : program.instructions)
        if (in.queue == Queue::Gradient && is_traffic(in.action)) sent.push_back(in.sent);
    constexpr int64_t kOne = 32 * 32 * 9 * 4, kWhole = 1 << 20, kLeast = 128 << 10;
    ASSERT_GE(sent.size(), 5U);
    EXPECT_GE(sent.front(), kWhole);
    EXPECT_LT(sent.back(), kLeast + kOne);
    for (size_t i = 0; i + 1 < sent.size(); ++i) EXPECT_LE(sent[i + 1], std::max(sent[i], kLeast + kOne)) << i;
}

TEST(Compile, WeightGradientsAreComputedWhileSumsTravel) {
    Builder b(Mode::Training);
    ValueId x = b.input({4, 3, 8, 8});
    for (const std::string n : {"1", "2", "3"})
        x = b.relu("relu" + n,
                   b.batch_norm("bn" + n, b.conv("conv" + n, x, {.filters = 4, .kernel = {3, 3}, .pad = {1, 1}, .bias = false})));
    b.graph().add_output("output", b.linear("fc", b.flatten("flatten", x), {.outputs = 5}));
    const Graph graph = training_graph({"norms", b.take(), {{.output = "output"}}, 5}, {});
    const OpinionatedTarget target;
    const Plan plan = plan_from_spec("sample:2", 0, graph).plan;
    const Program program = compile(graph, plan, target, {.rank = 0});
    // The sums of bn1 and bn2 travel in the backward pass; the next instruction is the weight gradient of the layer behind.
    int beside = 0;
    for (size_t i = 0; i + 1 < program.instructions.size(); ++i) {
        const Instruction &traffic = program.instructions[i], &next = program.instructions[i + 1];
        if (!is_traffic(traffic.action) || traffic.phase != Phase::Backward || traffic.queue != Queue::Activation) continue;
        const auto* compute = std::get_if<Compute>(&next.action);
        beside += compute && std::holds_alternative<ConvGradWeightOp>(compute->problem.steps[0].op);
    }
    EXPECT_EQ(beside, 2);
}

TEST(Compile, UpdatesWaitForSumsBehindWhatIsComputedMeanwhile) {
    Builder b(Mode::Training);
    const ValueId y = b.conv("conv", b.input({4, 4, 8, 8}), {.filters = 4, .kernel = {3, 3}, .pad = {1, 1}, .bias = false});
    b.graph().add_output("output", b.linear("fc", b.flatten("flatten", b.relu("relu", b.batch_norm("bn", y))), {.outputs = 5}));
    const Graph graph = training_graph({"norm", b.take(), {{.output = "output"}}, 5}, {});
    const Program program = compile(graph, plan_from_spec("sample:2", 0, graph).plan, OpinionatedTarget(), {.rank = 0});
    const auto place_of = [&](std::string_view layer, Phase phase, std::string_view what) {
        const auto at = std::find_if(program.instructions.begin(), program.instructions.end(), [&](const Instruction& i) {
            return i.layer == layer && i.phase == phase && text_of(i).find(what) != std::string::npos;
        });
        EXPECT_NE(at, program.instructions.end()) << layer << ": " << what;
        return at - program.instructions.begin();
    };
    const auto sums = place_of("bn", Phase::Backward, "allreduce"), weights = place_of("fc", Phase::Backward, "linear_grad_weight");
    EXPECT_LT(sums, weights);
    EXPECT_LT(weights, place_of("bn.bias", Phase::Update, "update"));
}

TEST(Program, ListingAndJsonNameEveryInstruction) {
    const Program p = compile(small_training(), Plan::single(), OpinionatedTarget(), {});
    EXPECT_NE(listing(p).find("conv1: conv 3x3"), std::string::npos);
    const Json json = to_json(p);
    EXPECT_EQ(json["instructions"].size(), p.instructions.size());
    EXPECT_EQ(json["bytes"], totals(p).bytes);
}

}  // namespace
}  // namespace convoy
