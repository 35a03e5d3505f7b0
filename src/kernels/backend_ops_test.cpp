// Every op and every pattern on every backend that is ready here, in every type that it computes in, by every candidate and in every layout that it
// offers, against the reference in float64 on the same (rounded) inputs. What a kernel does not write, writes too far, or leaves to chance is seen.
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"
#include "kernels/op_cases.h"

namespace convoy {
namespace {

using op_testing::Draw;
using op_testing::NamedCase;
using op_testing::OpCase;

constexpr StepContext kContext{.seed = 0x123456789abcdefull, .step = 17};
constexpr int64_t kGuard = 1024;

double tolerance(DType compute) {
    switch (compute) {
        case DType::f64: return 1e-10;
        case DType::f32: return 1e-4;
        case DType::tf32: return 2e-3;
        default: return 2e-2;
    }
}

// Memory of a backend between two guards, all of it NaN (or no index) at first.
class Guarded {
  public:
    Guarded(Backend& backend, int64_t bytes) : backend_(backend), bytes_(bytes), memory_(backend.allocate(bytes + 2 * kGuard)) {
        memory_->fill(0xFF);
    }
    std::byte* data() const { return memory_->data() + kGuard; }
    void poison() { memory_->fill(0xFF); }
    bool intact() const {
        Tensor guard({kGuard}, DType::u8);
        for (const int64_t at : {int64_t{0}, kGuard + bytes_}) {
            backend_.download({memory_->data() + at, TensorDesc::whole({kGuard}, DType::u8), {}}, guard);
            for (const uint8_t byte : guard.as<uint8_t>())
                if (byte != 0xFF) return false;
        }
        return true;
    }

  private:
    Backend& backend_;
    int64_t bytes_;
    std::unique_ptr<Memory> memory_;
};

// One candidate of a problem, with memory for its operands.
class Trial {
  public:
    Trial(Backend& backend, const Problem& problem, const Candidate& candidate, const std::vector<Tensor>& inputs)
        : backend_(backend), problem_(problem), candidate_(candidate), inputs_(inputs), workspace_(backend, candidate.workspace_bytes) {
        for (int t = 0; t < problem.inputs + problem.outputs; ++t)
            memory_.emplace_back(backend, bytes_of(desc(t).shape, desc(t).dtype, layout(t)));
    }

    // With output `output` in the place of input `input`, unless they are -1.
    std::vector<Tensor> run(int output = -1, int input = -1) {
        KernelRequest request{problem_, candidate_.algorithm, {}, {}, workspace_.data(), candidate_.workspace_bytes};
        for (int t = 0; t < problem_.inputs; ++t) request.inputs.push_back({at(t).data(), desc(t), layout(t)});
        for (int o = 0; o < problem_.outputs; ++o) {
            const int t = problem_.inputs + o;
            request.outputs.push_back({at(o == output ? input : t).data(), desc(t), layout(t)});
        }
        const auto kernel = backend_.prepare(request);
        // Only now, because preparing a kernel may try it out.
        for (Guarded& m : memory_) m.poison();
        workspace_.poison();
        for (int t = 0; t < problem_.inputs; ++t) {
            const Tensor& value = inputs_[static_cast<size_t>(t)];
            backend_.upload(is_floating(value.dtype()) ? value.to(problem_.tensors[static_cast<size_t>(t)].dtype).to(desc(t).dtype) : value,
                            request.inputs[static_cast<size_t>(t)]);
        }
        kernel->run(kContext);
        backend_.synchronize();
        std::vector<Tensor> results;
        for (int o = 0; o < problem_.outputs; ++o) {
            const TensorDesc d = desc(problem_.inputs + o);
            results.emplace_back(d.shape, d.dtype);
            backend_.download(request.outputs[static_cast<size_t>(o)], results.back());
        }
        for (size_t t = 0; t < memory_.size(); ++t) EXPECT_TRUE(memory_[t].intact()) << "memory around operand " << t << " was written";
        EXPECT_TRUE(workspace_.intact()) << "memory around the workspace of " << candidate_.workspace_bytes << " bytes was written";
        return results;
    }

  private:
    TensorDesc desc(int t) const {
        TensorDesc d = problem_.tensors[static_cast<size_t>(t)];
        if (t < problem_.inputs && !candidate_.input_types.empty()) d.dtype = candidate_.input_types[static_cast<size_t>(t)];
        return d;
    }
    const Layout& layout(int t) const {
        return t < problem_.inputs ? candidate_.inputs[static_cast<size_t>(t)]
                                   : candidate_.outputs[static_cast<size_t>(t - problem_.inputs)];
    }
    Guarded& at(int t) { return memory_[static_cast<size_t>(t)]; }

    Backend& backend_;
    const Problem& problem_;
    const Candidate& candidate_;
    const std::vector<Tensor>& inputs_;
    Guarded workspace_;
    std::vector<Guarded> memory_;
};

// The candidate with every "same" replaced, by plain and by channels-last.
std::vector<Candidate> resolved(const Problem& problem, const Candidate& candidate) {
    std::vector<Candidate> result;
    for (const bool last : {false, true}) {
        Candidate c = candidate;
        bool differs = !last;
        const auto settle = [&](Layout& layout, int t) {
            const int rank = problem.tensors[static_cast<size_t>(t)].shape.size();
            if (!layout.is_same()) return;
            layout = last && rank > 2 ? Layout::channels_last(rank) : Layout::plain();
            differs = differs || !layout.is_plain();
        };
        for (int t = 0; t < problem.inputs; ++t) settle(c.inputs[static_cast<size_t>(t)], t);
        for (int t = 0; t < problem.outputs; ++t) settle(c.outputs[static_cast<size_t>(t)], problem.inputs + t);
        if (differs) result.push_back(std::move(c));
    }
    return result;
}

std::string describe(const Problem& problem, const Candidate& candidate) {
    std::string text = text_of(problem) + " in " + std::string(name_of(problem.compute)) + " by " + candidate.algorithm + ":";
    for (int t = 0; t < problem.inputs + problem.outputs; ++t) {
        const TensorDesc& desc = problem.tensors[static_cast<size_t>(t)];
        const Layout& layout =
            t < problem.inputs ? candidate.inputs[static_cast<size_t>(t)] : candidate.outputs[static_cast<size_t>(t - problem.inputs)];
        text += fmt::format("{} {} {} {}",
                            t == problem.inputs ? " ->"
                            : t == 0            ? ""
                                                : ",",
                            to_string(desc.shape), name_of(desc.dtype), layout.text());
        if (t > 24) return text + " ...";
    }
    return text;
}

// The first few elements that differ most obviously.
std::string differences(const Tensor& found, const Tensor& expected, double tolerance) {
    double largest = 0;
    for (int64_t i = 0; i < expected.numel(); ++i) largest = std::max(largest, std::abs(element(expected, i)));
    std::string text;
    int64_t shown = 0, differing = 0;
    for (int64_t i = 0; i < found.numel(); ++i) {
        const double a = element(found, i), b = element(expected, i);
        if (std::abs(a - b) <= tolerance * std::max(std::abs(b), 0.1 * largest)) continue;
        ++differing;
        if (shown++ < 6) text += fmt::format("\n      [{}] found {:.9g}, expected {:.9g}", i, a, b);
    }
    return fmt::format("{} of {} elements differ{}", differing, found.numel(), text);
}

struct OpParam {
    std::string backend;
    DType compute;
    NamedCase named;
    bool pattern = false;
    bool mixed = false;  // OpCase::mixed
};

std::vector<OpParam> params() {
    std::vector<OpParam> list;
    for (const auto& [backend, types] : std::vector<std::pair<std::string, std::vector<DType>>>{
             {"cpu", {DType::f32}}, {"cuda", {DType::f64, DType::f32, DType::tf32, DType::bf16}}})
        for (const DType type : types) {
            for (const NamedCase& c : op_testing::op_cases()) list.push_back({backend, type, c, false});
            for (const NamedCase& c : op_testing::pattern_cases()) list.push_back({backend, type, c, true});
        }
    // The two kinds differ in bf16 alone.
    for (const NamedCase& c : op_testing::op_cases()) list.push_back({"cuda", DType::bf16, c, false, true});
    for (const NamedCase& c : op_testing::pattern_cases()) list.push_back({"cuda", DType::bf16, c, true, true});
    return list;
}

// Made once for all tests of a backend; making one takes time. Nothing where it is not ready.
Backend* backend_named(const std::string& name) {
    static auto& made = *new std::map<std::string, std::unique_ptr<Backend>>;  // kept to the end: drivers go before statics do
    for (const BackendStatus& status : backend_statuses())
        if (status.name == name && !status.ready) return nullptr;
    auto& known = made[name];
    if (!known) known = make_backend(name, {});
    return known.get();
}
std::string why_not(const std::string& name) {
    for (const BackendStatus& status : backend_statuses())
        if (status.name == name) return status.detail;
    return "";
}

class BackendOps : public ::testing::TestWithParam<OpParam> {};

TEST_P(BackendOps, AgreeWithTheReference) {
    const OpParam& param = GetParam();
    Backend* const b = backend_named(param.backend);
    if (!b) GTEST_SKIP() << "backend " << param.backend << ": " << why_not(param.backend);
    const double allowed = tolerance(param.compute);
    int offered = 0;
    double worst = 0;
    for (int number = 0; number < test_count(8, param.named.full_count); ++number) {
        Draw draw(param.named.name, number);
        const OpCase drawn = param.named.draw(draw), c = param.mixed ? drawn.mixed(draw) : drawn;
        const Problem problem = c.problem(b->target(), param.compute);
        const auto expected = op_testing::reference_outputs(problem, c.inputs, kContext);
        for (const Candidate& some : b->target().candidates(problem))
            for (const Candidate& candidate : resolved(problem, some)) {
                SCOPED_TRACE(fmt::format("case {}: {}", number, describe(problem, candidate)));
                ++offered;
                Trial trial(*b, problem, candidate, c.inputs);
                const auto found = trial.run();
                for (size_t o = 0; o < found.size(); ++o) {
                    const bool exact = !is_floating(found[o].dtype());
                    const double error = op_testing::distance(found[o], expected[o]);
                    worst = std::max(worst, error);
                    EXPECT_LE(error, exact ? 0 : allowed)
                        << "output " << o << ": " << differences(found[o], expected[o], exact ? 0 : allowed);
                }
                EXPECT_EQ(trial.run(), found) << "not the same bits again";
                // Some of them, of hundreds of updates: every run looks at the memory of all.
                const size_t every = std::max<size_t>(candidate.in_place.size() / 4, 1);
                for (size_t i = static_cast<size_t>(number) % every; i < candidate.in_place.size(); i += every) {
                    const auto [output, input] = candidate.in_place[i];
                    EXPECT_EQ(trial.run(output, input), found) << "output " << output << " in the place of input " << input;
                }
                if (::testing::Test::HasFailure()) return;
            }
    }
    if (param.pattern && offered == 0) GTEST_SKIP() << param.backend << " does not do this in one pass";
    EXPECT_GT(offered, 0) << "nothing was offered for " << param.named.name;
    RecordProperty("worst_error", fmt::format("{:.2e}", worst));
}

INSTANTIATE_TEST_SUITE_P(All, BackendOps, ::testing::ValuesIn(params()), [](const auto& each) {
    return fmt::format("{}_{}_{}{}", each.param.backend, name_of(each.param.compute), each.param.mixed ? "mixed_" : "",
                       each.param.named.name);
});

// A run ends when its loss is not finite, so what went wrong in a layer has to get there: a ReLU must not make 0 of a NaN. oneDNN's does, which is why the
// cpu backend is not asked.
class KeepsNaN : public ::testing::TestWithParam<DType> {
  protected:
    static OpCase relu(Draw& d) {
        OpCase c;
        c.outputs = {c.step(UnaryOp{}, {c.input(Element::Real, with_nans(d, {2, 16, 9, 10}))})};
        return c;
    }
    static OpCase bias_relu(Draw& d) {
        OpCase c;
        const int x = c.input(Element::Real, with_nans(d, {2, 16, 9, 10})), b = c.input(Element::Precise, d.normal({16}));
        c.outputs = {c.step(UnaryOp{}, {c.step(BiasOp{1}, {x, b})})};
        return c;
    }
    static OpCase conv_bias_relu(Draw& d) {
        OpCase c;
        const int x = c.input(Element::Real, with_nans(d, {2, 16, 9, 10})), w = c.input(Element::Precise, d.normal({24, 16, 3, 3})),
                  b = c.input(Element::Precise, d.normal({24}));
        const ConvOp conv{{.kernel = {3, 3}, .stride = {1, 1}, .dilation = {1, 1}, .pad_lo = {1, 1}, .pad_hi = {1, 1}}, 1};
        c.outputs = {c.step(UnaryOp{}, {c.step(BiasOp{1}, {c.step(conv, {x, w}), b})})};
        return c;
    }

  private:
    static Tensor with_nans(Draw& d, const Shape& shape) {
        Tensor x = d.normal(shape);
        for (const size_t at : {size_t{7}, static_cast<size_t>(x.numel()) - 1}) x.as<double>()[at] = std::nan("");
        return x;
    }
};

TEST_P(KeepsNaN, Cuda) {
    Backend* const b = backend_named("cuda");
    if (!b) GTEST_SKIP() << "backend cuda: " << why_not("cuda");
    for (const auto draw_case : {relu, bias_relu, conv_bias_relu}) {
        Draw draw("keeps_nan", 0);
        const OpCase c = draw_case(draw);
        const Problem problem = c.problem(b->target(), GetParam());
        const Tensor expected = op_testing::reference_outputs(problem, c.inputs, kContext)[0];
        const auto candidates = b->target().candidates(problem);
        EXPECT_FALSE(candidates.empty()) << text_of(problem);
        for (const Candidate& some : candidates)
            for (const Candidate& candidate : resolved(problem, some)) {
                const Tensor found = Trial(*b, problem, candidate, c.inputs).run()[0];
                int64_t wanted = 0, lost = 0;
                for (int64_t i = 0; i < found.numel(); ++i) {
                    if (!std::isnan(element(expected, i))) continue;
                    ++wanted;
                    lost += !std::isnan(element(found, i));
                }
                EXPECT_GT(wanted, 0);
                EXPECT_EQ(lost, 0) << "of " << wanted << " NaNs were lost by " << describe(problem, candidate);
            }
    }
}

INSTANTIATE_TEST_SUITE_P(All, KeepsNaN, ::testing::Values(DType::f64, DType::f32, DType::tf32, DType::bf16),
                         [](const auto& each) { return std::string(name_of(each.param)); });

TEST(OpCases, CoverEveryOp) {
    std::set<size_t> seen;
    for (const NamedCase& c : op_testing::op_cases())
        for (int number = 0; number < 8; ++number) {
            Draw draw(c.name, number);
            for (const auto& step : c.draw(draw).steps) seen.insert(step.op.index());
        }
    EXPECT_EQ(seen.size(), std::variant_size_v<Op>);
}

}  // namespace
}  // namespace convoy
