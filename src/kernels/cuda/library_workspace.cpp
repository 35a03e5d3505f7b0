#include "kernels/cuda/library_workspace.h"

#include <algorithm>
#include <cstdlib>

#include "kernels/cuda/cudnn_graph.h"
#include "kernels/cuda/engine_cache.h"
#include "kernels/cuda/library_plan.h"
#include "kernels/cuda/scratch.h"
#include "kernels/cuda/slices.h"
#include "program/key.h"

namespace convoy::cuda {

namespace {

constexpr int64_t kAlignment = Scratch::kAlignment, kPage = 4096;

// Always whole pages: what comes to be known is no more than what was planned before.
int64_t pages(int64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// (No device is known when candidates are offered; too little for another one only means another choice.)
std::string key_for(const Problem& problem, bool transforms) {
    return fmt::format("cuDNN {}, scratch bytes of ways {}{}: {}", cudnnGetVersion(), kWays,
                       transforms == library_transforms(problem.compute) ? "" : " without transforms", key_of(problem));
}

const TensorDesc& tensor(const Problem& problem, int t) { return problem.tensors[static_cast<size_t>(t)]; }

// The input with its padding around it.
int64_t padding_bytes(const Window& window, const TensorDesc& x) {
    if (window.pad_lo == window.pad_hi) return 0;
    Shape around = x.shape;
    for (int d = 0; d < window.rank(); ++d) around[2 + d] += window.pad_lo[d] + window.pad_hi[d];
    return numel(around) * size_of(x.dtype) + kAlignment;
}

int64_t slice_bytes(const Problem& problem, const ConvProblem& conv) {
    const Shape &x = tensor(problem, conv.x).shape, &w = tensor(problem, conv.w).shape, &y = tensor(problem, conv.y).shape;
    const SliceProblem slices{problem.compute, x[1], y[1], work_of(problem)};
    if (conv.direction != Direction::GradWeight || conv.groups != 1 || conv.window.pad_lo != conv.window.pad_hi) return 0;
    constexpr int64_t kScales = int64_t{4} << 20;  // at most
    const bool halved = problem.compute == DType::tf32;
    int64_t most = 0;
    for (const int count : {1, 2, 3}) {
        if (!can_cut(slices, count)) continue;
        const int parts = halved ? parts_of_batch(x, count) : 1;
        const int64_t elements = numel(x) / count / parts + parts * numel(w) + (halved ? numel(y) / parts : 0);
        most = std::max(most, elements * size_of(DType::f16) + kScales);
    }
    return most;
}

// The input and the weights with as many channels as tensor cores want.
int64_t widened_bytes(const Shape& x, const Shape& w) {
    constexpr int64_t kPack = 8;
    if (x[1] % kPack == 0) return 0;
    const auto widened = [](const Shape& shape) { return numel(shape) / shape[1] * ((shape[1] + kPack - 1) / kPack * kPack); };
    return (widened(x) + widened(w)) * size_of(DType::bf16) + 2 * kAlignment;
}

int64_t bytes_for_any_way(const Problem& problem, bool transforms) {
    constexpr int64_t kLeast = int64_t{4} << 20, kMost = int64_t{2} << 30;
    int64_t bytes = 0;
    for (const TensorDesc& t : problem.tensors) bytes += numel(t.shape) * size_of(t.dtype);
    const auto conv = *conv_problem(problem);
    int64_t copies = padding_bytes(conv.window, tensor(problem, conv.x)) + slice_bytes(problem, conv);
    const int64_t times = !transforms ? 2 : problem.compute == DType::f32 ? 8 : 4;
    if (problem.compute != DType::bf16) return pages(std::clamp(times * bytes, kLeast, kMost) + copies);
    // With bf16 few engines are chosen that need much: for gradients of weights, whose sums are made in parts.
    const int64_t much = conv.direction == Direction::GradWeight ? int64_t{1} << 30 : int64_t{128} << 20;
    copies += widened_bytes(tensor(problem, conv.x).shape, tensor(problem, conv.w).shape);
    return pages(std::clamp(bytes, kLeast, much) + copies);
}

}  // namespace

int64_t library_workspace(const Problem& problem, bool transforms) {
    const int64_t any = bytes_for_any_way(problem, transforms);
    const auto known = EngineCache::shared().find(key_for(problem, transforms));
    return known ? std::clamp(pages(static_cast<int64_t>(std::atoll(known->c_str())) + kAlignment), kPage, any) : any;
}

void remember_workspace(const Problem& problem, bool transforms, int64_t bytes) {
    const std::string key = key_for(problem, transforms), text = std::to_string(bytes);
    if (EngineCache::shared().find(key) != text) EngineCache::shared().store(key, text);
}

}  // namespace convoy::cuda
