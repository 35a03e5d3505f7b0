#include "comm/launch.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace convoy {

namespace {

std::optional<int> number_in(const char* variable) {
    const char* const text = std::getenv(variable);
    if (text == nullptr) return std::nullopt;
    int value = 0;
    const char* const end = text + std::strlen(text);
    const auto result = std::from_chars(text, end, value);
    if (result.ec != std::errc() || result.ptr != end || value < 0) return std::nullopt;
    return value;
}

std::optional<int> size_in(const char* variable) {
    const auto size = number_in(variable);
    return size && *size > 0 ? size : std::nullopt;
}

// srun sets these for every task; only with PMI or PMIx does MPI find its ranks. A shell inside an allocation has neither.
bool slurm_offers_pmi() {
    return std::getenv("PMIX_RANK") != nullptr || std::getenv("PMI_RANK") != nullptr || std::getenv("PMI_FD") != nullptr;
}
bool is_slurm_task() { return std::getenv("SLURM_PROCID") != nullptr; }

}  // namespace

std::optional<int> launched_size() {
    for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
        if (const auto size = size_in(variable)) return size;
    if (!slurm_offers_pmi() || !is_slurm_task()) return std::nullopt;
    const auto step = size_in("SLURM_STEP_NUM_TASKS");
    return step ? step : size_in("SLURM_NTASKS");
}

int launched_rank() {
    for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"})
        if (const auto rank = number_in(variable)) return *rank;
    return 0;
}

// A batch script or a shell belongs to a step of one task, or to none.
std::optional<int> tasks_without_mpi() {
    if (launched_size() || slurm_offers_pmi() || !is_slurm_task()) return std::nullopt;
    const auto tasks = size_in("SLURM_STEP_NUM_TASKS");
    return tasks && *tasks > 1 ? tasks : std::nullopt;
}

void require_launched_world(int announced, int world) {
    if (announced == world) return;
    const std::string mpi = mpi_status().detail;
    fail(
        "the launcher started {} process{}, but to MPI ({}) the world has {}: the launcher belongs to another MPI than this program. Start "
        "it with the mpirun or "
        "mpiexec of {} (under Slurm: srun --mpi=pmix for Open MPI, --mpi=pmi2 for MPICH), or build Convoy with the launcher's MPI",
        announced, announced == 1 ? "" : "es", mpi, world, mpi);
}

}  // namespace convoy
