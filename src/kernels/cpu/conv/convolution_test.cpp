// Every convolution algorithm against the reference in float64 on random problems, in every direction, in two and three dims (and now and then one), in
// every layout that it offers; what each refuses, and why; the memory they need; and the errors of those that transform.
#include <dnnl.hpp>

#include "kernels/cpu/conv/testing.h"
#include "kernels/cpu/vector/amx.h"

namespace convoy::cpu {
namespace {

using namespace testing;

bool has_avx512() { return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core; }

struct AlgorithmParam {
    const ConvAlgorithm* algorithm;
    Direction direction;
    int rank;
};

const char* text_of_direction(Direction direction) {
    return direction == Direction::Forward ? "forward" : direction == Direction::GradInput ? "input" : "weight";
}

std::vector<AlgorithmParam> params() {
    std::vector<AlgorithmParam> list;
    for (const ConvAlgorithm* algorithm : conv_algorithms())
        for (const Direction direction : {Direction::Forward, Direction::GradInput, Direction::GradWeight})
            for (const int rank : {2, 3}) {
                if (algorithm == &onednn_winograd() && rank == 3) continue;  // two dims alone
                if (algorithm == &winograd3d() && rank == 2) continue;       // three
                list.push_back({algorithm, direction, rank});
            }
    return list;
}

CaseLimits limits_of(const AlgorithmParam& param) {
    CaseLimits limits{.kind = Kind::Any, .rank = param.rank};
    const ConvAlgorithm* const a = param.algorithm;
    if (a == &matrix()) limits.kind = Kind::Pointwise;
    if (a == &fft()) limits.kind = Kind::Dense;
    if (a == &winograd_f2() || a == &winograd_f4() || a == &onednn_winograd() || a == &winograd3d()) limits.kind = Kind::Three;
    if (a == &onednn_winograd() || a == &onednn_direct() || a == &onednn_gemm() || a == &winograd3d()) limits.pad_least = 0;
    if (a == &winograd3d() || a == &onednn_winograd()) limits.multiple = 16;
    return limits;
}

// Relative to the norm of the result.
double bound(const ConvAlgorithm& algorithm) {
    if (algorithm.numerics == Numerics::Exact) return 2e-6;
    return &algorithm == &fft() ? 2e-6 : &algorithm == &winograd_f2() ? 3e-6 : 2e-5;
}

class EveryAlgorithm : public ::testing::TestWithParam<AlgorithmParam> {};

TEST_P(EveryAlgorithm, AgreesWithTheReference) {
    const AlgorithmParam& param = GetParam();
    const bool needs_avx512 = param.algorithm == &onednn_winograd() || param.algorithm == &winograd3d();
    if (needs_avx512 && !has_avx512()) GTEST_SKIP() << "oneDNN's Winograd needs AVX-512";
    const bool needs_tiles = param.algorithm == &amx();
    if (needs_tiles && !vec::amx_ready()) GTEST_SKIP() << "there is no AMX";
    const auto implementation = make_convolutions({param.algorithm});
    const std::string name = fmt::format("{} {} {}", param.algorithm->name, text_of_direction(param.direction), param.rank);
    const int wanted = test_count(4, 500);
    int taken = 0;
    for (int number = 0; taken < wanted; ++number) {
        ASSERT_LT(number, 20 * wanted + 20) << "only " << taken << " problems were not refused";
        Draw d(name, number);
        const ConvCase c = draw_case(d, limits_of(param));
        const auto [problem, inputs] = problem_of(d, c, param.direction);
        // Operands are normal numbers, so that one product has a size of about 1.
        Check check{.tolerance = bound(*param.algorithm), .usual = 1, .number = number, .block = needs_avx512 || needs_tiles ? 16 : 0};
        bool offered = true;
        for (const CpuContext& context : check.contexts()) offered = offered && !implementation->candidates(problem, context).empty();
        if (!offered) continue;
        ++taken;
        SCOPED_TRACE(fmt::format("{}, problem {}: x {}, w {}, stride {}, dilation {}, padding {} and {}, {} groups", name, number,
                                 to_string(c.x), to_string(c.w), to_string(c.window.stride), to_string(c.window.dilation),
                                 to_string(c.window.pad_lo), to_string(c.window.pad_hi), c.groups));
        expect_agreement(*implementation, problem, inputs, check);
        if (HasFailure()) return;
    }
}

INSTANTIATE_TEST_SUITE_P(All, EveryAlgorithm, ::testing::ValuesIn(params()), [](const auto& each) {
    std::string name = fmt::format("{}_{}_{}d", each.param.algorithm->name, text_of_direction(each.param.direction), each.param.rank);
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
});

// However tiles are cut into chunks and shares, and whether weights are transformed at once or as they are used, the results are the same.
TEST(Convolution, ChunksAndSharesDoNotMatter) {
    std::vector<const ConvAlgorithm*> algorithms{&winograd_f2(), &winograd_f4(), &fft(), &winograd3d()};
    if (vec::amx_ready()) algorithms.push_back(&amx());
    for (const ConvAlgorithm* algorithm : algorithms) {
        const auto implementation = make_convolutions({algorithm});
        for (int i = 0; i < test_count(6, 60); ++i) {
            Draw d(std::string(algorithm->name) + " chunks", i);
            const bool small = i % 5 == 4;  // tiles for one share only
            const int rank = algorithm == &winograd3d() || i % 4 == 3 ? 3 : 2;
            const int64_t n = small ? 1 : 3;
            const int64_t c = i % 2 == 0 ? 16 : 80,
                          f = i % 2 == 0 ? 16 : 48;  // blocks of channels go in pairs: one, three and five have a last one alone
            const Dims in = Dims::filled(rank, rank == 3 ? 6 : small ? 9 : 21);
            const ConvCase conv{
                Window{Dims::filled(rank, 3), Dims::filled(rank, 1), Dims::filled(rank, 1), Dims::filled(rank, 1), Dims::filled(rank, 1)},
                1, join({n, c}, in), join({f, c}, Dims::filled(rank, 3)), join({n, f}, in)};
            const auto [problem, inputs] = problem_of(
                d, conv, std::array{Direction::Forward, Direction::GradInput, Direction::GradWeight}[static_cast<size_t>(i / 2) % 3]);
            const auto expected = reference_outputs(problem, inputs, {});
            // One thread; two and three, with shares of their own where there are tiles enough, of one chunk and of several; more than there are shares or panels for.
            for (const auto& [threads, cached_bytes] : {std::pair{1, 1 << 12}, {2, 1 << 12}, {3, 1 << 16}, {3, 8 << 20}, {24, 1 << 12}}) {
                const CpuContext context{.threads = threads, .block = 16, .cached_bytes = cached_bytes};
                for (const Candidate& candidate : implementation->candidates(problem, context)) {
                    CandidateRun run(*implementation, problem, candidate, context, inputs);
                    SCOPED_TRACE(fmt::format("{}, {} threads, {} bytes", candidate.algorithm, threads, cached_bytes));
                    expect_close(run({}), expected, 3e-5);
                }
            }
        }
    }
}

// --- Refusals -------------------------------------------------------------------------------------------------------------------------

Problem forward_of(const ConvCase& c, DType type = DType::f32) {
    ProblemBuilder b;
    b.step(ConvOp{c.window, c.groups}, {b.input(c.x, type), b.input(c.w, type)}, {b.output(c.y, type)});
    if (type != DType::f32) b.problem.compute = type;
    return b.problem;
}

ConvCase square(int64_t c, int64_t f, int64_t kernel, int64_t groups = 1, int rank = 2) {
    const Window window = Window::of(Dims::filled(rank, kernel));
    const Dims in = Dims::filled(rank, 40);
    return {window, groups, join({1, c}, in), join({f, c / groups}, window.kernel), join({1, f}, window.output(in))};
}

std::string refusal_of(const ConvAlgorithm& algorithm, const ConvCase& c) {
    const auto implementation = make_convolutions({&algorithm});
    const Problem problem = forward_of(c);
    const auto list = implementation->refusals(problem, {});
    EXPECT_EQ(list.empty(), !implementation->candidates(problem, {}).empty()) << algorithm.name;
    if (list.empty()) return "";
    EXPECT_EQ(list[0].algorithm, fmt::format("conv:{}", algorithm.name));
    return list[0].reason;
}

ConvCase with(ConvCase c, const std::function<void(Window&)>& change) {
    change(c.window);
    c.y = join({c.x[0], c.w[0]}, c.window.output(c.x.slice(2)));
    return c;
}

TEST(ConvolutionRefusals, SayWhy) {
    const ConvCase three = square(16, 16, 3);
    const ConvCase strided = with(three, [](Window& w) { w.stride = {2, 1}; });
    const ConvCase dilated = with(three, [](Window& w) { w.dilation = {1, 2}; });
    const ConvCase cropped = with(three, [](Window& w) { w.pad_lo = {-1, 0}; });
    for (const ConvAlgorithm* algorithm : {&winograd_f2(), &winograd_f4()}) {
        EXPECT_EQ(refusal_of(*algorithm, three), "");
        EXPECT_EQ(refusal_of(*algorithm, strided), "the stride is not 1");
        EXPECT_EQ(refusal_of(*algorithm, dilated), "the window is dilated");
        EXPECT_EQ(refusal_of(*algorithm, square(16, 16, 5)), "the window is not 3 elements wide");
        EXPECT_EQ(refusal_of(*algorithm, square(16, 16, 1)), "the window has a single element");
        EXPECT_EQ(refusal_of(*algorithm, square(24, 32, 3, 2)), "the channels of a group are no multiple of 16");
        EXPECT_EQ(refusal_of(*algorithm, square(32, 32, 3, 2)), "");
    }
    EXPECT_EQ(refusal_of(fft(), square(3, 4, 7)), "");
    EXPECT_EQ(refusal_of(fft(), strided), "the stride is not 1");
    EXPECT_EQ(refusal_of(fft(), square(3, 4, 33)), "the window spans more than the largest tile");
    EXPECT_EQ(refusal_of(fft(), square(24, 32, 3, 2)), "the channels of a group are no multiple of 16");
    EXPECT_EQ(refusal_of(matrix(), square(3, 4, 1)), "");
    EXPECT_EQ(refusal_of(matrix(), three), "the window has more than one element");
    EXPECT_EQ(refusal_of(matrix(), with(square(3, 4, 1), [](Window& w) { w.pad_hi = {1, 0}; })), "the input is padded or cropped");
    EXPECT_EQ(refusal_of(direct(), square(24, 32, 3, 2)), "the channels of a group are no multiple of 16");
    EXPECT_EQ(refusal_of(direct(), square(3, 4, 23)), "the window has more than 512 elements");
    if (vec::amx_ready()) {
        EXPECT_EQ(refusal_of(amx(), square(32, 32, 3, 2)), "there are groups");
        for (const ConvCase& c : {three, strided, dilated, cropped}) EXPECT_EQ(refusal_of(amx(), c), "");
    } else {
        EXPECT_EQ(refusal_of(amx(), three), "the processor has no tiles of bf16 (AMX), or the system does not allow them");
    }
    EXPECT_EQ(refusal_of(onednn_direct(), cropped), "the input is cropped");
    EXPECT_EQ(refusal_of(onednn_gemm(), cropped), "the input is cropped");
    EXPECT_EQ(refusal_of(onednn_gemm(), square(1, 1, 3)), "plain and channels-last are the same here");
    EXPECT_EQ(refusal_of(onednn_gemm(), square(1, 4, 3)), "");
    EXPECT_EQ(refusal_of(onednn_winograd(), square(16, 16, 5)), "the window is not 3x3");
    EXPECT_EQ(refusal_of(onednn_winograd(), strided), "the stride is not 1");
    EXPECT_EQ(refusal_of(onednn_winograd(), dilated), "the window is dilated");
    EXPECT_EQ(refusal_of(onednn_winograd(), square(32, 32, 3, 2)), "there are groups");
    EXPECT_EQ(refusal_of(winograd3d(), three), "the window is not 3x3x3");
    EXPECT_EQ(refusal_of(winograd3d(), square(32, 32, 3, 2, 3)), "there are groups");
    EXPECT_EQ(refusal_of(winograd3d(), square(17, 16, 3, 1, 3)), "the channels are no multiple of 16");
    for (const ConvAlgorithm* takes_all : {&im2col(), &im2row(), &kn2row(), &kn2row_gemm(), &kn2col(), &scalar_row(), &scalar_column()})
        for (const ConvCase& c : {three, strided, dilated, cropped, square(24, 32, 3, 2), square(1, 1, 33)})
            EXPECT_EQ(refusal_of(*takes_all, c), "") << takes_all->name;
}

TEST(ConvolutionRefusals, OtherProblemsAreNobodys) {
    EXPECT_TRUE(convolutions().candidates(forward_of(square(3, 4, 3), DType::f64), {}).empty());
    EXPECT_TRUE(convolutions().refusals(forward_of(square(3, 4, 3), DType::f64), {}).empty());
    ProblemBuilder other;
    other.step(UnaryOp{}, {other.input({4})}, {other.output({4})});
    EXPECT_TRUE(convolutions().candidates(other.problem, {}).empty());
}

// --- Memory and errors ----------------------------------------------------------------------------------------------------------------

struct Layer {
    int64_t c, f, size;
};
constexpr Layer kVgg16[] = {{3, 64, 224},   {64, 64, 224},  {64, 128, 112}, {128, 128, 112}, {128, 256, 56},
                            {256, 256, 56}, {256, 512, 28}, {512, 512, 28}, {512, 512, 14}};

// Beyond the result, in every direction; kernels are tested with memory that ends where they say.
TEST(ConvolutionMemory, IsWhatThePapersSay) {
    for (const auto& [c, f, size] : kVgg16) {
        const Window window{{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
        const ConvCase layer{window, 1, {1, c, size, size}, {f, c, 3, 3}, {1, f, size, size}};
        for (const Direction direction : {Direction::Forward, Direction::GradInput, Direction::GradWeight}) {
            ProblemBuilder b;
            if (direction == Direction::Forward) b.step(ConvOp{window}, {b.input(layer.x), b.input(layer.w)}, {b.output(layer.y)});
            if (direction == Direction::GradInput)
                b.step(ConvGradInputOp{window, 1, {size, size}}, {b.input(layer.y), b.input(layer.w)}, {b.output(layer.x)});
            if (direction == Direction::GradWeight)
                b.step(ConvGradWeightOp{window}, {b.input(layer.x), b.input(layer.y)}, {b.output(layer.w)});
            const auto bytes = [&](const ConvAlgorithm& a) {
                return make_convolutions({&a})->candidates(b.problem, {}).at(0).workspace_bytes;
            };
            EXPECT_LE(bytes(kn2row_gemm()), 16 * 3 * size * (c + f));
            EXPECT_EQ(bytes(im2col()), 3 * 3 * c * size * size * 4);
            EXPECT_EQ(bytes(im2row()), 3 * 3 * c * size * size * 4);
            EXPECT_EQ(bytes(kn2row()), (direction == Direction::Forward ? f : c) * size * size * 4);
            EXPECT_EQ(bytes(scalar_row()), 0);
            EXPECT_EQ(bytes(direct()), 0);
        }
    }
}

// Errors relative to the result's norm, of the methods that transform or split and of one that does not, with more and more channels. Printed as a table.
TEST(ConvolutionErrors, AreTabulatedAndBounded) {
    std::vector<std::pair<const ConvAlgorithm*, double>> bounds{
        {&winograd_f2(), 1e-6}, {&winograd_f4(), 5e-6}, {&fft(), 5e-7}, {&im2col(), 1e-6}};
    if (vec::amx_ready()) bounds.emplace_back(&amx(), 6e-6);
    std::string table = fmt::format("{:<10}{:<10}{:>6}", "", "direction", "C = F");
    for (const auto& [algorithm, most] : bounds) table += fmt::format("{:>13}", algorithm->name);
    for (const int rank : {2, 3})
        for (const Direction direction : {Direction::Forward, Direction::GradInput, Direction::GradWeight})
            for (const int64_t channels : {16, 64, rank == 2 ? 256 : 128}) {
                if (test_count(0, 1) == 0 && channels > 64) continue;
                Draw d("errors", static_cast<int>(channels));
                const Dims size = Dims::filled(rank, rank == 2 ? 14 : 8);
                const Window window{Dims::filled(rank, 3), Dims::filled(rank, 1), Dims::filled(rank, 1), Dims::filled(rank, 1),
                                    Dims::filled(rank, 1)};
                const ConvCase c{window, 1, join({1, channels}, size), join({channels, channels}, window.kernel),
                                 join({1, channels}, size)};
                const auto [problem, inputs] = problem_of(d, c, direction);
                const auto expected = reference_outputs(problem, inputs, {});
                table += fmt::format("\n{:<10}{:<10}{:>6}", fmt::format("{} dims", rank), text_of_direction(direction), channels);
                for (const auto& [algorithm, most] : bounds) {
                    const auto implementation = make_convolutions({algorithm});
                    const Candidate candidate = implementation->candidates(problem, {}).at(0);
                    CandidateRun run(*implementation, problem, candidate, {}, inputs);
                    const double error = distance(run({})[0], expected[0]);
                    table += fmt::format("{:>13.1e}", error);
                    EXPECT_LE(error, most * (rank == 3 ? 3 : 1)) << algorithm->name << ", " << channels << " channels";
                }
            }
    std::printf("%s\n", table.c_str());
}

}  // namespace
}  // namespace convoy::cpu
