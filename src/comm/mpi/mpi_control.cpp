#include "comm/mpi/mpi_control.h"

#include "base/log.h"
#include "comm/mpi/mpi_calls.h"

namespace convoy {

namespace {

constexpr int kQuestion = 1, kAnswer = 2;  // tags; the lane is added to the latter
constexpr auto kPeriod = std::chrono::milliseconds(50);

}  // namespace

MpiControl::MpiControl(MPI_Comm comm, std::chrono::milliseconds answer_limit)
    : comm_(comm), answer_limit_(answer_limit), thread_([this] { serve(); }) {}

MpiControl::~MpiControl() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    stop_.notify_all();
    thread_.join();
}

std::atomic<int64_t>& MpiControl::arrivals(GroupKey key) {
    const std::lock_guard lock(mutex_);
    return counts_[key];
}

void MpiControl::serve() {
    std::unique_lock lock(mutex_);
    while (!stop_.wait_for(lock, kPeriod, [this] { return stopping_; })) {
        lock.unlock();
        try {
            answer_all();
        } catch (const Error& e) {  // only the message of another rank's failure suffers
            warn("cannot answer another rank: {}", e.what());
            return;
        }
        lock.lock();
    }
}

void MpiControl::answer_all() {
    for (;;) {
        int there = 0;
        MPI_Status status;
        check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, kQuestion, comm_, &there, &status), "MPI_Iprobe");
        if (!there) return;
        Question question{};
        check_mpi(MPI_Recv(&question, sizeof(question), MPI_BYTE, status.MPI_SOURCE, kQuestion, comm_, MPI_STATUS_IGNORE), "MPI_Recv");
        answers_.push_back(std::make_unique<Answer>());
        Answer& answer = *answers_.back();
        answer.count = arrivals(question.key).load();
        check_mpi(
            MPI_Isend(&answer.count, sizeof(answer.count), MPI_BYTE, status.MPI_SOURCE, kAnswer + question.lane, comm_, &answer.request),
            "MPI_Isend");
    }
}

MpiControl::Asked& MpiControl::keep(Asked asked) {
    const std::lock_guard lock(mutex_);
    asked_.push_back(std::make_unique<Asked>(std::move(asked)));
    return *asked_.back();
}

std::vector<std::optional<int64_t>> MpiControl::ask(GroupKey key, Lane lane, std::span<const Rank> ranks) {
    Asked& asked = keep({{key, static_cast<int32_t>(lane)}, std::vector<int64_t>(ranks.size())});
    std::vector<MPI_Request> answers(ranks.size());
    for (size_t i = 0; i < ranks.size(); ++i) {
        const int tag = kAnswer + asked.question.lane;
        MPI_Request sent;
        check_mpi(MPI_Irecv(&asked.counts[i], sizeof(int64_t), MPI_BYTE, ranks[i], tag, comm_, &answers[i]), "MPI_Irecv");
        check_mpi(MPI_Isend(&asked.question, sizeof(Question), MPI_BYTE, ranks[i], kQuestion, comm_, &sent), "MPI_Isend");
        check_mpi(MPI_Request_free(&sent), "MPI_Request_free");
    }
    const Deadline deadline = Clock::now() + answer_limit_;
    std::vector<std::optional<int64_t>> known(ranks.size());
    for (size_t i = 0; i < ranks.size(); ++i)
        if (wait_for(answers[i], deadline)) known[i] = asked.counts[i];
    return known;
}

}  // namespace convoy
