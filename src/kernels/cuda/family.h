// The cuda backend's ways of computing: one explicit, ordered list of families of kernels. Each is a list of cases; the first case that accepts a
// problem says which candidates there are and prepares the kernel of the one that was chosen.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/device.h"
#include "kernels/function_kernel.h"
#include "kernels/patterns.h"

namespace convoy::cuda {

// One kind of problem. The other two functions may rely on `accepts`. Candidates need no name and no estimate of time where memory is what limits
// them; both are filled in.
struct Case {
    bool (*accepts)(const Problem& problem);
    std::vector<Candidate> (*candidates)(const Problem& problem);
    std::unique_ptr<Kernel> (*prepare)(const KernelRequest& request, Device& device);
};

struct Family {
    std::string_view name;  // the first word of its algorithms' names
    std::vector<Case> cases;
};

// In the order in which they are asked.
const std::vector<Family>& families();

Family conv_family();
Family linear_family();
Family norm_family();
Family channel_family();
Family elementwise_family();
Family pointwise_family();
Family dropout_family();
Family pool_family();
Family resample_family();
Family cell_norm_family();
Family lrn_family();
Family softmax_family();
Family loss_family();
Family nll_family();
Family update_family();
Family rearrange_family();
Family local_conv_family();

// --- Offering candidates --------------------------------------------------------------------------------------------------------

struct Offer {
    Layout layout;                              // of the activations; all other operands are plain
    std::vector<int> activations;               // numbers of tensors
    std::vector<std::pair<int, int>> in_place;  // {output, input}, numbers of tensors
    int64_t workspace_bytes = 0;
};
Candidate candidate_of(const Problem& problem, const Offer& offer);

// Plain and channels-last; for a tensor with no spatial dims only plain.
std::vector<Layout> activation_layouts(const Shape& shape);

// A candidate for each layout of the activations, the first of which gives the shape.
std::vector<Candidate> in_each_layout(const Problem& problem, const std::vector<int>& activations,
                                      const std::vector<std::pair<int, int>>& in_place = {}, int64_t workspace_bytes = 0);
// The only candidate: everything plain.
std::vector<Candidate> only_plain(const Problem& problem, const std::vector<std::pair<int, int>>& in_place = {},
                                  int64_t workspace_bytes = 0);
// The only candidate: all operands in one layout, whichever it is.
std::vector<Candidate> in_any_one_layout(const Problem& problem, const std::vector<std::pair<int, int>>& in_place = {},
                                         int64_t workspace_bytes = 0);

// An estimate for a kernel that reads and writes every operand once.
double memory_seconds(const Problem& problem);

// Bug when the elements are not of T's size.
template <class T>
T* data_of(const KernelRequest& request, int tensor) {
    const Operand& o = operand(request, tensor);
    CONVOY_CHECK(static_cast<size_t>(size_of(o.desc.dtype)) == sizeof(T), "operand {} of {} is {}, but its kernel reads {} bytes", tensor,
                 request.algorithm, name_of(o.desc.dtype), sizeof(T));
    return static_cast<T*>(o.data);
}
inline DType dtype_of(const KernelRequest& request, int tensor) { return operand(request, tensor).desc.dtype; }

}  // namespace convoy::cuda
