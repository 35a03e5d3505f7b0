// What ranks tell each other besides messages: how often they have come to a meeting, that the run has failed, and that they leave. A thread of its own listens, so
// that a rank which computes for long is told from one that is gone.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "comm/socket/sockets.h"

namespace convoy {

class SocketControl {
  public:
    // Sockets by rank; this rank's own is empty.
    SocketControl(Rank rank, std::vector<Socket> sockets, std::chrono::milliseconds answer_limit);
    ~SocketControl();
    SocketControl(const SocketControl&) = delete;
    SocketControl& operator=(const SocketControl&) = delete;

    std::atomic<int64_t>& arrivals(GroupKey key);
    std::vector<std::optional<int64_t>> ask(GroupKey key, std::span<const Rank> ranks);

    // Ends the run for all; the first failure counts.
    void fail_all(const std::string& why);
    std::optional<std::string> failure() const;
    bool failed() const { return failed_.load(); }

    // Waits, for at most so long, until the run has failed.
    void wait_for_failure(std::chrono::milliseconds limit);

    // Says good-bye and waits, for at most so long, until all others have, or the run has failed. Those that have not.
    std::vector<Rank> leave(std::chrono::milliseconds limit);

  private:
    struct Peer {
        Socket socket;
        std::mutex writing;
        bool open = false;
        bool left = false;  // has said good-bye
    };
    void tell(Rank rank, const std::string& text);
    void listen();
    void hear(Rank rank);
    void fail_with(const std::string& text);

    Rank rank_;
    std::vector<std::unique_ptr<Peer>> peers_;
    std::chrono::milliseconds answer_limit_;
    mutable std::mutex mutex_;  // of all below
    std::condition_variable changed_;
    std::map<GroupKey, std::atomic<int64_t>> counts_;
    std::map<std::pair<Rank, int64_t>, int64_t> answers_;  // by rank and question
    int64_t questions_ = 0;
    std::string why_;
    bool stop_ = false;
    std::atomic<bool> failed_{false};
    std::thread thread_;
};

}  // namespace convoy
