#include "kernels/cpu/own.h"

#include <numeric>

#include "base/error.h"

namespace convoy::cpu {

namespace {

class CaseImplementation : public Implementation {
  public:
    CaseImplementation(std::string name, std::vector<Case> cases, const vec::VectorKernels& kernels)
        : name_(std::move(name)), cases_(std::move(cases)), kernels_(kernels) {}

    std::string_view name() const override { return name_; }

    std::vector<Candidate> candidates(const Problem& problem, const CpuContext& context) const override {
        const Case* const found = find(problem);
        if (!found) return {};
        auto result = found->candidates(problem, context);
        for (auto& candidate : result) candidate.algorithm = name_;
        return result;
    }

    std::unique_ptr<Kernel> prepare(const KernelRequest& request, const CpuContext& context) const override {
        const Case* const found = find(request.problem);
        CONVOY_CHECK(found, "{} was asked for {}, which it does not offer", name_, text_of(request.problem));
        return found->prepare(request, context, kernels_);
    }

  private:
    const Case* find(const Problem& problem) const {
        if (problem.compute != DType::f32) return nullptr;
        for (const auto& t : problem.tensors) {
            if (is_floating(t.dtype) && t.dtype != DType::f32) return nullptr;
            // An empty part has nothing to compute, and shapes of zeros have no layouts.
            if (numel(t.shape) == 0) return nullptr;
        }
        for (const auto& c : cases_)
            if (c.accepts(problem)) return &c;
        return nullptr;
    }

    std::string name_;
    std::vector<Case> cases_;
    const vec::VectorKernels& kernels_;
};

int64_t spatial_count(const Shape& shape) { return product(shape, 2, shape.size()); }

}  // namespace

std::unique_ptr<Implementation> implementation_of(std::string name, std::vector<Case> cases, const vec::VectorKernels& kernels) {
    return std::make_unique<CaseImplementation>(std::move(name), std::move(cases), kernels);
}

const vec::VectorKernels& vector_kernels() {
    static const vec::VectorKernels& best = *vec::vector_kernel_tables().tables[0];
    return best;
}

Candidate candidate_of(const Problem& problem, const CpuContext& context, const Offer& offer) {
    constexpr double kBytesPerSecond = 8e9, kCall = 1e-6;
    Candidate candidate;
    candidate.inputs.resize(static_cast<size_t>(problem.inputs));
    candidate.outputs.resize(static_cast<size_t>(problem.outputs));
    for (const int t : offer.activations) {
        if (is_input(problem, t)) candidate.inputs[static_cast<size_t>(t)] = offer.layout;
        if (is_output(problem, t)) candidate.outputs[static_cast<size_t>(t - problem.inputs)] = offer.layout;
    }
    double bytes = 0;
    int64_t elements = 0;
    for (int t = 0; t < problem.inputs + problem.outputs; ++t) {
        const auto& desc = problem.tensors[static_cast<size_t>(t)];
        const Layout& layout =
            is_input(problem, t) ? candidate.inputs[static_cast<size_t>(t)] : candidate.outputs[static_cast<size_t>(t - problem.inputs)];
        bytes += static_cast<double>(bytes_of(desc.shape, desc.dtype, layout.opaque.empty() ? layout : Layout::plain()));
        elements = std::max(elements, numel(desc.shape));
    }
    for (const auto& [output, input] : offer.in_place) candidate.in_place.emplace_back(output - problem.inputs, input);
    candidate.workspace_bytes = offer.workspace_bytes;
    candidate.seconds = kCall + offer.slowness * bytes / (kBytesPerSecond * parts_for(context, elements));
    return candidate;
}

std::vector<Layout> activation_layouts(const Shape& shape, const CpuContext& context) {
    const int rank = shape.size();
    if (rank < 3) return {Layout::plain()};
    return {Layout::blocked(rank, context.block), Layout::channels_last(rank), Layout::plain()};
}

Blocks blocks_of(const Shape& shape, const Layout& layout) {
    const int64_t n = shape[0], channels = shape[1], s = spatial_count(shape);
    if (layout.is_plain()) return {n, channels, s, 1, channels};
    if (layout == Layout::channels_last(shape.size())) return {n, 1, s, channels, channels};
    CONVOY_CHECK(layout.inner.size() == 1 && layout == Layout::blocked(shape.size(), layout.inner[0].size),
                 "own kernels got layout {} for {}", layout.text(), to_string(shape));
    const int64_t block = layout.inner[0].size;
    return {n, (channels + block - 1) / block, s, block, channels};
}

vec::Spans spans_of(const Blocks& b) {
    if (b.s == 1 && b.lanes == 1) return spans_of_rows(b.n, b.channels);
    if (b.blocks == 1 && b.lanes == b.channels) return spans_of_rows(b.n * b.s, b.channels);
    vec::Spans spans = spans_of_rows(b.s, b.lanes);
    spans.planes = b.n * b.blocks;
    spans.blocks = b.blocks;
    spans.channels = b.channels;
    return spans;
}

vec::Spans spans_of_rows(int64_t rows, int64_t lanes) {
    vec::Spans spans;
    spans.planes = 1;
    spans.elements = rows * lanes;
    spans.lanes = spans.channels = lanes;
    if (vec::kShortPeriod % lanes == 0) {
        spans.period = vec::kShortPeriod;
        spans.stored = lanes;
    } else {
        constexpr int64_t kVector = 16;
        spans.period = std::lcm(lanes, kVector);
        while (spans.period < vec::kShortPeriod) spans.period *= 2;
        spans.stored = spans.period;
    }
    // A unit fits into the first cache; sums are taken to double once per unit, which should be seldom.
    constexpr int64_t kUnit = 4096, kLeastPeriods = 8;
    spans.unit = std::max(kUnit / spans.period, kLeastPeriods) * spans.period;
    spans.units = (spans.elements + spans.unit - 1) / spans.unit;
    return spans;
}

int64_t memory_elements(const Operand& o) { return bytes_of(o.desc.shape, o.desc.dtype, o.layout) / size_of(o.desc.dtype); }

ChannelSums::ChannelSums(Scratch& memory, const vec::Spans& s, const CpuContext& context, int kinds_of_sums)
    : spans(s), parts(parts_for(context, s.planes * s.elements)), kinds(kinds_of_sums), stride(kinds * s.blocks * s.stored) {
    sums = memory.take<double>(parts * stride);
    scratch = memory.take<float>(parts * vec::kScratchPeriods * s.period);
}

double ChannelSums::total(int kind, int64_t channel) const {
    const int64_t at = (kind * spans.blocks + channel / spans.lanes) * spans.stored + channel % spans.lanes;
    double sum = 0;
    for (int part = 0; part < parts; ++part)
        for (int64_t repeat = 0; repeat < spans.stored; repeat += spans.lanes) sum += sums[part * stride + at + repeat];
    return sum;
}

}  // namespace convoy::cpu
