// Convolutions, with what follows them: by cuDNN, or directly where the library has nothing.
#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "kernels/cuda/bias.h"
#include "kernels/cuda/direct_conv.h"
#include "kernels/cuda/family.h"
#include "kernels/cuda/library_conv.h"
#include "kernels/cuda/library_plan.h"
#include "kernels/cuda/library_workspace.h"
#include "kernels/cuda/read_types.h"
#include "kernels/cuda/views.h"
#include "program/key.h"

namespace convoy::cuda {

namespace {

// With the transforms that the type allows, and without any.
constexpr const char *kLibrary = "cudnn", *kLibraryExact = "cudnn-exact";

// --- What is offered ------------------------------------------------------------------------------------------------------------

std::optional<ConvProblem> recognised(const Problem& problem) {
    const auto conv = conv_problem(problem);
    if (!conv || (conv->direction == Direction::GradWeight && conv->bias != kNoTensor)) return std::nullopt;
    if (conv->activation && !can_follow_bias(*conv->activation)) return std::nullopt;
    return conv;
}

bool for_library(const Problem& problem, const ConvProblem& conv) {
    if (problem.compute == DType::f64) return false;
    for (const auto* pad : {&conv.window.pad_lo, &conv.window.pad_hi})
        for (const int64_t p : *pad)
            if (p < 0) return false;  // it cannot crop
    return std::none_of(problem.tensors.begin(), problem.tensors.end(), [](const TensorDesc& t) { return numel(t.shape) == 0; });
}

bool accepts(const Problem& p) { return recognised(p).has_value(); }

std::vector<Candidate> candidates(const Problem& p) {
    const auto conv = *recognised(p);
    const int rank = conv.window.rank() + 2;
    std::vector<Candidate> list;
    const auto by_library = [&](const char* name, bool transforms) {
        const double rate = p.compute == DType::bf16 ? 400e12 : p.compute == DType::tf32 ? 200e12 : 40e12;
        constexpr double kWithout = 1.3;  // a guess
        Candidate candidate = candidate_of(p, {.layout = library_layout(p.compute, rank),
                                               .activations = {conv.x, conv.w, conv.y},
                                               .workspace_bytes = library_workspace(p, transforms)});
        candidate.algorithm = name;
        candidate.seconds = memory_seconds(p) + work_of(p) / rate * (transforms == library_transforms(p.compute) ? 1 : kWithout);
        candidate.numerics = transforms ? Numerics::Fast : Numerics::Exact;
        candidate.input_types = read_types(p);
        if (conv.w < p.inputs && p.compute == DType::bf16) candidate.input_types[static_cast<size_t>(conv.w)] = DType::bf16;
        list.push_back(std::move(candidate));
    };
    if (for_library(p, conv)) {
        by_library(kLibrary, library_transforms(p.compute));
        if (library_transforms(p.compute)) by_library(kLibraryExact, false);
    }
    Candidate direct = only_plain(p)[0];
    direct.algorithm = "direct";
    direct.seconds = memory_seconds(p) + work_of(p) / 2e11;
    list.push_back(std::move(direct));
    return list;
}

std::unique_ptr<Kernel> prepare_direct(const KernelRequest& request, Device& device) {
    const auto conv = *recognised(request.problem);
    const DirectConv direct{conv.direction,          conv.window, conv.groups, operand(request, conv.x), operand(request, conv.w),
                            operand(request, conv.y)};
    const Operand& result = direct.direction == Direction::Forward     ? direct.y
                            : direct.direction == Direction::GradInput ? direct.x
                                                                       : direct.w;
    packs_of(volume_of(result.desc.shape, result.layout), 1);  // too large is said now, not in a step
    void* const bias = conv.bias == kNoTensor ? nullptr : operand(request, conv.bias).data;
    const auto activation = conv.activation;
    return make_kernel([&device, direct, bias, activation](const StepContext&) {
        start_direct_conv(device, direct);
        if (bias || activation) start_bias(device, direct.y, bias, activation ? &*activation : nullptr);
    });
}

std::unique_ptr<Kernel> prepare(const KernelRequest& request, Device& device) {
    const std::string name = request.algorithm.substr(request.algorithm.find(':') + 1);
    if (name == kLibrary || name == kLibraryExact) {
        std::string why;
        const bool transforms = name == kLibrary && library_transforms(request.problem.compute);
        if (auto kernel = library_conv(request, {*recognised(request.problem), transforms}, device, why)) return kernel;
        const std::string problem = key_of(request.problem);
        warn_once(problem, "{} is computed directly, which is slow, because the library has no way to do it here: {}", problem, why);
    }
    return prepare_direct(request, device);
}

}  // namespace

Family conv_family() { return {"conv", {{accepts, candidates, prepare}}}; }

}  // namespace convoy::cuda
