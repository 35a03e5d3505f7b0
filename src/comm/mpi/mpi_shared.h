// All-reduce among processes of one node through memory that they share. Data passes through small blocks that stay in the cache: each rank copies its
// block in, all of them combine a share each, and each copies the others' shares out.
// Saves the system calls of messages, and memory traffic; but every line goes through another core's cache, so it depends on how near the cores are.
#pragma once

#include <mpi.h>

#include <atomic>
#include <memory>

#include "comm/transport.h"

namespace convoy {

// The memory of one group on one lane. Rounds are counted over its whole life; a communicator made again goes on counting.
class MpiShared {
  public:
    // Collective over `comm`, whose ranks are on one node. Nothing, on every rank, when MPI cannot share memory among them.
    static std::unique_ptr<MpiShared> make(MPI_Comm comm);
    ~MpiShared();
    MpiShared(const MpiShared&) = delete;
    MpiShared& operator=(const MpiShared&) = delete;

    // False when the deadline passed.
    bool all_reduce(const CollectiveCall& call, Deadline deadline);
    bool barrier(Deadline deadline);

  private:
    // What lies at the start of each rank's part; blocks follow.
    struct alignas(64) Head {
        std::atomic<uint64_t> signals;
    };
    static constexpr int64_t kBlockBytes = 256 << 10;
    static constexpr int kBlocks = 2;  // one is filled while the other may still be read

    MpiShared() = default;
    std::byte* block(int place, uint64_t round) const;
    void signal();
    bool wait_for_all(Deadline deadline) const;
    void copy_in(const CollectiveCall& call, int64_t first, int64_t count) const;
    void combine_share(const CollectiveCall& call, int64_t first, int64_t count) const;
    void copy_out(const CollectiveCall& call, int64_t first, int64_t count) const;

    MPI_Win window_ = MPI_WIN_NULL;
    std::vector<Head*> heads_;  // by place
    int place_ = 0;
    uint64_t signals_ = 0;  // that this rank has given
    uint64_t round_ = 0;    // the one whose block is in use
};

}  // namespace convoy
