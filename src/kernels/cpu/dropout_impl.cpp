// Dropout by the own kernels. Whether an element is kept depends on its row-major index in the whole tensor, so that all layouts, ranks and
// backends drop the same ones. Factors are made for stretches that are contiguous in the whole tensor; in the plain layout such a stretch is
// contiguous in memory too, in the others it is a column of pixels of one channel.
#include <array>
#include <cmath>

#include "kernels/cpu/own.h"

namespace convoy::cpu {

namespace {

using vec::VectorKernels;

bool accepts_dropout(const Problem& p) {
    if (!steps_are<DropoutOp>(p)) return false;
    const double probability = op_of<DropoutOp>(p).p;
    return probability >= 0 && probability < 1;
}

std::vector<Candidate> dropout_candidates(const Problem& p, const CpuContext& context) {
    constexpr double kPlain = 2, kOther = 5;  // making random numbers takes longer than reading memory
    std::vector<Candidate> result;
    for (const auto& layout : activation_layouts(shape_of(p, 0), context))
        result.push_back(candidate_of(
            p, context, {.layout = layout, .activations = {0, 1}, .in_place = {{1, 0}}, .slowness = layout.is_plain() ? kPlain : kOther}));
    return result;
}

// The smallest word that is kept: RandomStream::uniform of it is at least p.
uint32_t threshold_of(double p) {
    const auto kept = [&](double word) { return (word + 0.5) * 0x1p-32 >= p; };
    double word = std::max(0.0, std::ceil(p * 0x1p32 - 0.5));
    while (word > 0 && kept(word - 1)) --word;
    while (word < 0x1p32 - 1 && !kept(word)) ++word;
    return static_cast<uint32_t>(word);
}

// A part of a tensor as runs: stretches along its last dims that are contiguous in the whole tensor too.
struct Runs {
    Shape shape, global;
    Dims origin;
    int dims;  // the leading ones, which number the runs
    int64_t length = 1;

    // At most the dims from `first` on are taken into a run.
    Runs(const TensorDesc& desc, int64_t first_sample, int first)
        : shape(desc.shape), global(desc.global), origin(desc.origin), dims(desc.shape.size()) {
        if (dims > 0) origin[0] += first_sample;
        bool whole = true;
        while (dims > first && whole) {
            --dims;
            length *= shape[dims];
            whole = shape[dims] == global[dims];
        }
    }
    int64_t count() const { return product(shape, 0, dims); }
    // The index in the whole tensor of the first element of a run.
    uint64_t start(int64_t run) const {
        int64_t index = 0, stride = 1;
        for (int d = shape.size() - 1; d >= 0; --d) {
            index += (origin[d] + (d < dims ? run % shape[d] : 0)) * stride;
            if (d < dims) run /= shape[d];
            stride *= global[d];
        }
        return static_cast<uint64_t>(index);
    }
};

constexpr int64_t kPiece = 256;  // factors that are made at once

std::unique_ptr<Kernel> prepare_plain(const Runs& runs, vec::DropoutArgs args, const KernelRequest& request, const CpuContext& context,
                                      const VectorKernels& kernels) {
    const int64_t elements = numel(runs.shape);
    return make_kernel([=, x = static_cast<const float*>(request.inputs[0].data), y = static_cast<float*>(request.outputs[0].data),
                        parts = parts_for(context, elements), make = kernels.dropout_factors,
                        apply = kernels.dropout_apply](const StepContext& step) mutable {
        args.seed = step.seed;
        args.step = step.step;
        in_flat_parts(parts, elements, [&](int, int64_t begin, int64_t end) {
            std::array<float, kPiece> factors;
            for (int64_t i = begin; i < end;) {
                const int64_t offset = i % runs.length, count = std::min({end - i, runs.length - offset, kPiece});
                make(args, runs.start(i / runs.length) + static_cast<uint64_t>(offset), count, factors.data());
                apply(x + i, factors.data(), count, y + i);
                i += count;
            }
        });
    });
}

std::unique_ptr<Kernel> prepare_columns(const Runs& runs, vec::DropoutArgs args, const KernelRequest& request, const CpuContext& context,
                                        const VectorKernels& kernels) {
    const Blocks b = blocks_of(request.outputs[0].desc.shape, request.outputs[0].layout);
    const int64_t runs_per_channel = b.s / runs.length, pieces = (runs.length + kPiece - 1) / kPiece;
    return make_kernel([=, x = static_cast<const float*>(request.inputs[0].data), y = static_cast<float*>(request.outputs[0].data),
                        parts = parts_for(context, b.elements()), make = kernels.dropout_factors](const StepContext& step) mutable {
        args.seed = step.seed;
        args.step = step.step;
        // An item is a piece of a run in all lanes of a block.
        in_parts(parts, b.n * b.blocks * runs_per_channel * pieces, [&](int, int64_t begin, int64_t end) {
            std::array<float, kPiece> factors;
            for (int64_t item = begin; item < end; ++item) {
                const int64_t first = item % pieces * kPiece, run = item / pieces % runs_per_channel,
                              plane = item / pieces / runs_per_channel;
                const int64_t count = std::min(kPiece, runs.length - first), n = plane / b.blocks, block = plane % b.blocks;
                const int64_t at = (plane * b.s + run * runs.length + first) * b.lanes;
                for (int64_t l = 0; l < b.lanes; ++l) {
                    const int64_t channel = block * b.lanes + l;
                    if (channel < b.channels) {
                        const uint64_t start = runs.start((n * b.channels + channel) * runs_per_channel + run);
                        make(args, start + static_cast<uint64_t>(first), count, factors.data());
                    } else {
                        std::fill_n(factors.data(), count, 0.0f);
                    }
                    for (int64_t i = 0; i < count; ++i) {
                        const float factor = factors[static_cast<size_t>(i)];
                        y[at + i * b.lanes + l] = factor > 0 ? x[at + i * b.lanes + l] * factor : 0.0f;
                    }
                }
            }
        });
    });
}

std::unique_ptr<Kernel> prepare_dropout(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    const auto& op = op_of<DropoutOp>(request.problem);
    const Operand& y = request.outputs[0];
    vec::DropoutArgs args;
    args.stream = op.stream;
    args.threshold = threshold_of(op.p);
    args.scale = static_cast<float>(1 / (1 - op.p));
    if (y.layout.is_plain()) return prepare_plain(Runs(y.desc, op.first_sample, 0), args, request, context, kernels);
    return prepare_columns(Runs(y.desc, op.first_sample, 2), args, request, context, kernels);
}

}  // namespace

Case dropout_case() { return {accepts_dropout, dropout_candidates, prepare_dropout}; }

}  // namespace convoy::cpu
