#include <functional>

#include "kernels/reference/test_support.h"

namespace convoy::ref {
namespace {

using namespace testing;
using Pairs = std::vector<std::pair<int, int>>;

Problem problem_of(const Op& op, const std::vector<ValueType>& inputs, DType type = DType::f32) {
    std::vector<TensorDesc> in, out;
    for (const auto& t : inputs) in.push_back(TensorDesc::whole(t.shape, type));
    for (const auto& t : infer(op, inputs)) out.push_back(TensorDesc::whole(t.shape, type));
    return Problem::single(op, in, out, type);
}

Problem same_shapes(const Op& op, size_t inputs) { return problem_of(op, std::vector<ValueType>(inputs, ValueType{{2, 3}})); }

std::string message_of(const std::function<void()>& fn) {
    try {
        fn();
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

TEST(ReferenceTarget, StoresEveryElement) {
    const auto backend = make_reference_backend({});
    const auto& target = backend->target();
    for (const DType type : {DType::f64, DType::f32}) {
        EXPECT_EQ(target.storage(Element::Real, type), type);
        EXPECT_EQ(target.storage(Element::Precise, type), type);
        EXPECT_EQ(target.storage(Element::Index, type), DType::i32);
        EXPECT_EQ(target.storage(Element::Byte, type), DType::u8);
    }
    for (const DType type : {DType::tf32, DType::bf16, DType::f16})
        EXPECT_EQ(message_of([&] { target.storage(Element::Real, type); }),
                  fmt::format("the reference backend computes in f64 or f32, not {}", name_of(type)));
}

TEST(ReferenceTarget, OneCandidateForAnOpAndNoneForSeveral) {
    const auto backend = make_reference_backend({.threads = 2});
    Window window = Window::of({3, 3});
    Problem problem = problem_of(ConvOp{window, 1}, {{{4, 3, 8, 8}}, {{5, 3, 3, 3}}});
    const auto candidates = backend->target().candidates(problem);
    ASSERT_EQ(candidates.size(), 2u);
    EXPECT_EQ(candidates[1].algorithm, "reference:direct");
    EXPECT_EQ(candidates[1].workspace_bytes, 0);
    EXPECT_GT(candidates[1].seconds, candidates[0].seconds);
    EXPECT_EQ(candidates[0].algorithm, "reference");
    EXPECT_EQ(candidates[0].inputs, std::vector<Layout>(2));
    EXPECT_EQ(candidates[0].outputs, std::vector<Layout>(1));
    EXPECT_EQ(candidates[0].workspace_bytes, 2 * (27 * 36 * 4 + 16));  // two threads' patches, each rounded up to lines of 64 bytes
    EXPECT_TRUE(candidates[0].in_place.empty());
    problem.steps.push_back(problem.steps[0]);
    EXPECT_TRUE(backend->target().candidates(problem).empty());
}

TEST(ReferenceTarget, SaysWhatMayShareMemory) {
    const auto backend = make_reference_backend({});
    const auto pairs = [&](const Problem& problem) { return backend->target().candidates(problem).at(0).in_place; };
    EXPECT_EQ(pairs(same_shapes(UnaryOp{}, 1)), (Pairs{{0, 0}}));
    EXPECT_EQ(pairs(same_shapes(UnaryGradOp{}, 2)), (Pairs{{0, 0}, {0, 1}}));
    EXPECT_EQ(pairs(same_shapes(AddOp{}, 3)), (Pairs{{0, 0}, {0, 1}, {0, 2}}));
    EXPECT_EQ(pairs(same_shapes(SoftmaxOp{}, 1)), Pairs{});
    const ValueType w{{2, 3}}, hyper{{2}}, scalar{{1}};
    EXPECT_EQ(pairs(problem_of(UpdateOp{{.rule = Rule::Sgd}}, {w, w, hyper})), (Pairs{{0, 0}}));
    EXPECT_EQ(pairs(problem_of(UpdateOp{{.rule = Rule::Adam}}, {w, w, hyper, w, w})), (Pairs{{0, 0}, {1, 3}, {2, 4}}));
    EXPECT_EQ(pairs(problem_of(LambDirectionOp{}, {w, w, hyper, w, w})), (Pairs{{1, 3}, {2, 4}}));
    EXPECT_EQ(pairs(problem_of(LambApplyOp{}, {w, w, hyper, scalar, scalar})), (Pairs{{0, 0}}));
    EXPECT_EQ(pairs(problem_of(RunningUpdateOp{}, {{{3}}, {{3}}, {{2, 3}}})), (Pairs{{0, 0}, {1, 1}}));
}

// A problem whose op reads its tensors in another order than they are listed.
TEST(ReferenceTarget, SpeaksOfTheProblemsOperands) {
    const auto backend = make_reference_backend({});
    Problem problem = problem_of(BiasOp{1}, {{{2, 3}}, {{3}}});
    std::swap(problem.tensors[0], problem.tensors[1]);
    problem.steps[0].inputs = {1, 0};
    EXPECT_EQ(backend->target().candidates(problem).at(0).in_place, (Pairs{{0, 1}}));

    Tensor b = doubles({3}, {10, 20, 30}), x = doubles({2, 3}, {1, 2, 3, 4, 5, 6}), y({2, 3}, DType::f64);
    problem.compute = DType::f64;
    backend->prepare({problem, "reference", {operand_of(b), operand_of(x)}, {operand_of(y)}, nullptr})->run({});
    expect_near(y, {11, 22, 33, 14, 25, 36});
}

TEST(ReferenceBackend, RunsAKernelInItsOwnMemory) {
    const auto backend = make_reference_backend({.threads = 2});
    Draw draw("backend", 0);
    const Window window = Window::of({3, 3});
    const Tensor x = draw.normal({4, 3, 8, 8}), w = draw.normal({5, 3, 3, 3});
    const Problem problem = problem_of(ConvOp{window, 1}, {{x.shape()}, {w.shape()}}, DType::f64);
    const auto candidate = backend->target().candidates(problem).at(0);
    std::vector<std::unique_ptr<Memory>> memory;
    std::vector<Operand> operands;
    for (const auto& desc : problem.tensors) {
        memory.push_back(backend->allocate(numel(desc.shape) * size_of(desc.dtype)));
        EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.back()->data()) % 64, 0u);
        EXPECT_EQ(memory.back()->bytes(), numel(desc.shape) * 8);
        operands.push_back({memory.back()->data(), desc, Layout::plain()});
    }
    const auto workspace = backend->allocate(candidate.workspace_bytes);
    backend->upload(x, operands[0]);
    backend->upload(w, operands[1]);
    const auto kernel = backend->prepare({problem, candidate.algorithm, {operands[0], operands[1]}, {operands[2]}, workspace->data()});
    kernel->run({});
    backend->synchronize();
    Tensor y(problem.tensors[2].shape, DType::f64);
    backend->download(operands[2], y);
    EXPECT_LT(relative_error(y, run_op1(ConvOp{window, 1}, {x, w}, y.shape())), 1e-14);
}

TEST(ReferenceBackend, CopiesAndConverts) {
    const auto backend = make_reference_backend({.threads = 2});
    const Shape shape{300, 400};
    Draw draw("copy", 0);
    Tensor wide = draw.normal(shape), narrow = wide.to(DType::f32), back(shape, DType::f64), same(shape, DType::f64),
           from_wide(shape, DType::f32);
    const auto copy = [&](Tensor& src, Tensor& dst) { backend->prepare_copy(operand_of(src), operand_of(dst))->run({}); };
    copy(wide, same);
    EXPECT_EQ(same, wide);
    copy(wide, from_wide);
    EXPECT_EQ(from_wide, narrow);
    copy(narrow, back);
    EXPECT_EQ(back, narrow.to(DType::f64));
    Tensor index(shape, DType::i32);
    EXPECT_EQ(message_of([&] { copy(wide, index); }), "the reference backend does not convert f64 to i32");
}

TEST(ReferenceBackend, RefusesWhatDoesNotFit) {
    const auto backend = make_reference_backend({});
    Tensor a({2, 3}, DType::f32), b({3, 2}, DType::f32), c({2, 3}, DType::f64);
    EXPECT_THROW(backend->upload(a, operand_of(b)), Bug);
    EXPECT_THROW(backend->upload(a, operand_of(c)), Bug);
    EXPECT_THROW(backend->download(operand_of(a), c), Bug);
    EXPECT_THROW(backend->prepare_copy(operand_of(a), operand_of(b)), Bug);
    EXPECT_THROW(backend->prepare({same_shapes(UnaryOp{}, 1), "winograd", {operand_of(a)}, {operand_of(a)}, nullptr}), Bug);
    EXPECT_THROW(make_reference_backend({.threads = 0}), Error);
    Tensor half({2, 3}, DType::bf16), out({2, 3}, DType::bf16);
    const std::vector<Operand> in_half{operand_of(half)}, out_half{operand_of(out)};
    EXPECT_EQ(message_of([&] { run_reference(UnaryOp{}, in_half, out_half, nullptr, 1, {}); }),
              "the reference backend computes in f64 or f32, not bf16");
    const std::vector<Operand> in{operand_of(a)}, mixed{operand_of(c)};
    EXPECT_THROW(run_reference(UnaryOp{}, in, mixed, nullptr, 1, {}), Bug);
}

}  // namespace
}  // namespace convoy::ref
