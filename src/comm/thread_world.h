// Ranks that are threads of one process. Messages are copied once, from the sender's memory to the receiver's; collectives work directly on all ranks'
// buffers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "comm/transport.h"

namespace convoy {

class ThreadWorld {
  public:
    // ranks_per_node above 0 pretends that nodes hold so many consecutive ranks each.
    explicit ThreadWorld(int size, int ranks_per_node = 0);
    ~ThreadWorld();
    ThreadWorld(const ThreadWorld&) = delete;
    ThreadWorld& operator=(const ThreadWorld&) = delete;

    int size() const;
    // The transport of a rank; it belongs to the world, which must outlive its use.
    Transport& rank(Rank rank);
    // Why the run was ended, if it was.
    std::optional<std::string> failure() const;

    struct Shared;

  private:
    std::shared_ptr<Shared> shared_;
    std::vector<std::unique_ptr<Transport>> transports_;
};

// Runs `body` once for each rank, each on its own thread, and waits for all. A rank that throws ends the run for all of them; then the first failure is thrown here,
// as the Error of the rank that failed, with its rank named.
void run_ranks(ThreadWorld& world, const std::function<void(Transport&)>& body);

}  // namespace convoy
