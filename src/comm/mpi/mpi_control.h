// How far each rank has come, for the message when a wait takes too long. A thread answers other ranks' questions a few times a second, so a rank that
// computes, or waits elsewhere, still answers, while one that is stopped or cut off does not.
#pragma once

#include <mpi.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "comm/launch.h"
#include "comm/transport.h"

namespace convoy {

class MpiControl {
  public:
    // A communicator of its own, so that nothing else is in the way.
    MpiControl(MPI_Comm comm, std::chrono::milliseconds answer_limit);
    ~MpiControl();
    MpiControl(const MpiControl&) = delete;
    MpiControl& operator=(const MpiControl&) = delete;

    // This rank's count.
    std::atomic<int64_t>& arrivals(GroupKey key);
    // Other ranks' counts; nothing for those that do not answer within the limit. Once per lane: the run ends afterwards.
    std::vector<std::optional<int64_t>> ask(GroupKey key, Lane lane, std::span<const Rank> ranks);
    // Which of them do not answer before the deadline. Once, beside what is asked about lanes.
    std::vector<Rank> silent(std::span<const Rank> ranks, Deadline deadline);

    // Tells the others that this rank is about to end the run, and that it has said why.
    void announce_end();
    // Whether this one, or any, has.
    bool announced_end(Rank rank) const { return ending_[static_cast<size_t>(rank)].load(); }
    bool any_announced_end() const;

  private:
    struct Question {
        GroupKey key;
        int32_t lane;
    };
    struct Answer {
        int64_t count;
        MPI_Request request;
    };
    struct Asked {  // and not, or not yet, answered by all
        Question question;
        std::vector<int64_t> counts;
    };
    void serve();
    void answer_all();
    Asked& keep(Asked asked);
    std::vector<std::optional<int64_t>> ask(Question question, std::span<const Rank> ranks, Deadline deadline);

    MPI_Comm comm_;
    std::chrono::milliseconds answer_limit_;
    std::mutex mutex_;
    std::condition_variable stop_;
    bool stopping_ = false;
    std::vector<std::atomic<bool>> ending_;  // by rank
    std::map<GroupKey, std::atomic<int64_t>> counts_;
    std::vector<std::unique_ptr<Answer>> answers_;  // MPI may still read them
    std::vector<std::unique_ptr<Asked>> asked_;     // and write these
    std::thread thread_;
};

}  // namespace convoy
