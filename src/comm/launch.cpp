#include "comm/launch.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace convoy {

namespace {

std::optional<int> number_in(const char* variable) {
    const char* const text = std::getenv(variable);
    if (text == nullptr) return std::nullopt;
    int value = 0;
    const char* const end = text + std::strlen(text);
    const auto result = std::from_chars(text, end, value);
    if (result.ec != std::errc() || result.ptr != end || value < 1) return std::nullopt;
    return value;
}

}  // namespace

std::optional<int> launched_size() {
    for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
        if (const auto size = number_in(variable)) return size;
    // srun sets SLURM_NTASKS for every task; only with PMI or PMIx does MPI find its ranks. A shell inside an allocation has neither.
    const bool pmi = std::getenv("PMIX_RANK") != nullptr || std::getenv("PMI_RANK") != nullptr || std::getenv("PMI_FD") != nullptr;
    if (pmi && std::getenv("SLURM_PROCID") != nullptr) return number_in("SLURM_NTASKS");
    return std::nullopt;
}

}  // namespace convoy
