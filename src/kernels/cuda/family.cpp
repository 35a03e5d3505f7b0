#include "kernels/cuda/family.h"

#include <algorithm>

namespace convoy::cuda {

const std::vector<Family>& families() {
    static const std::vector<Family> list{conv_family(),      linear_family(),    norm_family(), channel_family(),  elementwise_family(),
                                          pointwise_family(), dropout_family(),   pool_family(), resample_family(), cell_norm_family(),
                                          lrn_family(),       softmax_family(),   loss_family(), nll_family(),      update_family(),
                                          rearrange_family(), local_conv_family()};
    return list;
}

Candidate candidate_of(const Problem& problem, const Offer& offer) {
    Candidate candidate{.workspace_bytes = offer.workspace_bytes};
    for (int t = 0; t < problem.inputs + problem.outputs; ++t) {
        const bool active = std::find(offer.activations.begin(), offer.activations.end(), t) != offer.activations.end();
        (t < problem.inputs ? candidate.inputs : candidate.outputs).push_back(active ? offer.layout : Layout::plain());
    }
    for (const auto& [output, input] : offer.in_place) candidate.in_place.emplace_back(output - problem.inputs, input);
    return candidate;
}

std::vector<Layout> activation_layouts(const Shape& shape) {
    if (shape.size() < 3) return {Layout::plain()};
    return {Layout::plain(), Layout::channels_last(shape.size())};
}

std::vector<Candidate> in_each_layout(const Problem& problem, const std::vector<int>& activations,
                                      const std::vector<std::pair<int, int>>& in_place, int64_t workspace_bytes) {
    std::vector<Candidate> result;
    for (const Layout& layout : activation_layouts(shape_of(problem, activations[0])))
        result.push_back(candidate_of(problem, {layout, activations, in_place, workspace_bytes}));
    return result;
}

std::vector<Candidate> only_plain(const Problem& problem, const std::vector<std::pair<int, int>>& in_place, int64_t workspace_bytes) {
    return {candidate_of(problem, {Layout::plain(), {}, in_place, workspace_bytes})};
}

std::vector<Candidate> in_any_one_layout(const Problem& problem, const std::vector<std::pair<int, int>>& in_place,
                                         int64_t workspace_bytes) {
    std::vector<int> all;
    for (int t = 0; t < problem.inputs + problem.outputs; ++t) all.push_back(t);
    return {candidate_of(problem, {Layout::same(), all, in_place, workspace_bytes})};
}

double memory_seconds(const Problem& problem) {
    constexpr double kStart = 2e-6, kBytesPerSecond = 3e12;
    double bytes = 0;
    for (int t = 0; t < problem.inputs + problem.outputs; ++t) {
        const TensorDesc& desc = problem.tensors[static_cast<size_t>(t)];
        bytes += static_cast<double>(numel(desc.shape) * size_of(desc.dtype));
    }
    return kStart + bytes / kBytesPerSecond;
}

}  // namespace convoy::cuda
