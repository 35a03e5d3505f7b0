#include "kernels/cuda/target.h"

#include "base/error.h"
#include "kernels/cuda/family.h"
#include "kernels/cuda/read_types.h"
#include "program/storage.h"

namespace convoy::cuda {

DType CudaTarget::storage(Element element, DType compute) const {
    const bool known = compute == DType::f64 || compute == DType::f32 || compute == DType::tf32 || compute == DType::bf16;
    require(known, "the cuda backend computes in f64, f32, tf32 or bf16, not {}", name_of(compute));
    return stored_as(element, compute);
}

std::vector<Candidate> CudaTarget::candidates(const Problem& problem) const {
    if (!is_of_one_type(problem)) return {};
    for (const Family& family : families())
        for (const Case& each : family.cases) {
            if (!each.accepts(problem)) continue;
            auto list = each.candidates(problem);
            const auto types = read_types(problem);
            for (Candidate& candidate : list) {
                if (candidate.input_types.empty()) candidate.input_types = types;
                candidate.algorithm =
                    candidate.algorithm.empty() ? std::string(family.name) : fmt::format("{}:{}", family.name, candidate.algorithm);
                if (candidate.seconds == 0) candidate.seconds = memory_seconds(problem);
            }
            return list;
        }
    return {};
}

}  // namespace convoy::cuda
