#include "comm/launch.h"

#include <cstdlib>
#include <map>

#include <gtest/gtest.h>

namespace convoy {

namespace {

constexpr const char* kVariables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",    "PMI_RANK", "PMI_FD", "PMIX_RANK",
                                      "SLURM_PROCID",         "SLURM_NTASKS"};

// With exactly these variables of launchers set.
std::optional<int> size_with(const std::map<std::string, std::string>& variables) {
    for (const char* variable : kVariables) unsetenv(variable);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    const auto size = launched_size();
    for (const char* variable : kVariables) unsetenv(variable);
    return size;
}

TEST(Launch, KnowsTheLaunchers) {
    EXPECT_EQ(size_with({}), std::nullopt);
    EXPECT_EQ(size_with({{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMIX_RANK", "1"}}), 4);
    EXPECT_EQ(size_with({{"PMI_SIZE", "3"}, {"PMI_RANK", "0"}}), 3);
    EXPECT_EQ(size_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"PMIX_RANK", "0"}}), 2);
    EXPECT_EQ(size_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}), std::nullopt) << "a task or shell of Slurm without MPI's support";
    EXPECT_EQ(size_with({{"OMPI_COMM_WORLD_SIZE", "many"}}), std::nullopt);
}

TEST(Launch, SaysWhetherMpiIsThere) {
    const MpiStatus status = mpi_status();
    EXPECT_FALSE(status.detail.empty());
    if (!status.ready) {
        EXPECT_THROW(make_mpi_transport(), Error);
    }
}

}  // namespace

}  // namespace convoy
