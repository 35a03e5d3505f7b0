#include "comm/launch.h"

#include <cstdlib>
#include <map>

#include <gtest/gtest.h>

namespace convoy {

namespace {

constexpr const char* kVariables[] = {
    "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_SIZE", "PMI_RANK", "PMI_FD", "PMIX_RANK", "SLURM_PROCID",
    "SLURM_NTASKS",         "SLURM_STEP_NUM_TASKS"};

// With exactly these variables of launchers set.
template <class Ask>
auto with(const std::map<std::string, std::string>& variables, const Ask& ask) {
    for (const char* variable : kVariables) unsetenv(variable);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    const auto answer = ask();
    for (const char* variable : kVariables) unsetenv(variable);
    return answer;
}
std::optional<int> size_with(const std::map<std::string, std::string>& variables) { return with(variables, launched_size); }

TEST(Launch, KnowsTheLaunchers) {
    EXPECT_EQ(size_with({}), std::nullopt);
    EXPECT_EQ(size_with({{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMIX_RANK", "1"}}), 4);
    EXPECT_EQ(size_with({{"PMI_SIZE", "3"}, {"PMI_RANK", "0"}}), 3);
    EXPECT_EQ(size_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"PMIX_RANK", "0"}}), 2);
    EXPECT_EQ(size_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}), std::nullopt) << "a task or shell of Slurm without MPI's support";
    EXPECT_EQ(size_with({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"PMI_RANK", "1"}}), 2)
        << "the step's tasks, not the allocation's";
    EXPECT_EQ(size_with({{"OMPI_COMM_WORLD_SIZE", "many"}}), std::nullopt);
    EXPECT_EQ(size_with({{"OMPI_COMM_WORLD_SIZE", "0"}}), std::nullopt);
}

TEST(Launch, KnowsWhichRankThisIs) {
    EXPECT_EQ(with({}, launched_rank), 0);
    EXPECT_EQ(with({{"OMPI_COMM_WORLD_RANK", "3"}}, launched_rank), 3);
    EXPECT_EQ(with({{"PMI_RANK", "2"}}, launched_rank), 2);
    EXPECT_EQ(with({{"SLURM_PROCID", "1"}}, launched_rank), 1);
}

// Each task would be a run of its own.
TEST(Launch, KnowsAStepWithoutPmi) {
    const std::map<std::string, std::string> step{{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "4"}, {"SLURM_STEP_NUM_TASKS", "4"}};
    EXPECT_EQ(with(step, tasks_without_mpi), 4);
    for (const char* offered : {"PMIX_RANK", "PMI_RANK", "PMI_FD", "OMPI_COMM_WORLD_SIZE"}) {
        auto other = step;
        other[offered] = "1";
        EXPECT_EQ(with(other, tasks_without_mpi), std::nullopt) << offered;
    }
    EXPECT_EQ(with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}, tasks_without_mpi), std::nullopt) << "a batch script";
    EXPECT_EQ(with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "1"}}, tasks_without_mpi), std::nullopt)
        << "a shell";
    EXPECT_EQ(with({}, tasks_without_mpi), std::nullopt);
}

TEST(Launch, RefusesAnotherMpisLauncher) {
    EXPECT_NO_THROW(require_launched_world(4, 4));
    try {
        require_launched_world(4, 1);
        FAIL() << "no error";
    } catch (const Error& e) {
        const std::string text = e.what();
        EXPECT_NE(text.find("started 4 processes"), std::string::npos) << text;
        EXPECT_NE(text.find("the world has 1"), std::string::npos) << text;
        EXPECT_NE(text.find(mpi_status().detail), std::string::npos) << text;
    }
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
