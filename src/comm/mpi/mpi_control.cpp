#include "comm/mpi/mpi_control.h"

#include <algorithm>

#include "base/log.h"
#include "comm/mpi/mpi_calls.h"

namespace convoy {

namespace {

constexpr int kQuestion = 1, kEnd = 2, kAnswer = 3;  // tags; the lane is added to the last
constexpr int kNoLane = kLanes;                      // what `silent` asks about
constexpr auto kPeriod = std::chrono::milliseconds(50);

int size_of_group(MPI_Comm comm) {
    int size = 0;
    MPI_Comm_size(comm, &size);
    return size;
}

}  // namespace

MpiControl::MpiControl(MPI_Comm comm, std::chrono::milliseconds answer_limit)
    : comm_(comm), answer_limit_(answer_limit), ending_(static_cast<size_t>(size_of_group(comm))), thread_([this] { serve(); }) {}

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
    int there = 0;
    MPI_Status status;
    for (;;) {
        check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, kEnd, comm_, &there, &status), "MPI_Iprobe");
        if (!there) break;
        check_mpi(MPI_Recv(nullptr, 0, MPI_BYTE, status.MPI_SOURCE, kEnd, comm_, MPI_STATUS_IGNORE), "MPI_Recv");
        ending_[static_cast<size_t>(status.MPI_SOURCE)] = true;
    }
    for (;;) {
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
    return ask({key, static_cast<int32_t>(lane)}, ranks, Clock::now() + answer_limit_);
}

std::vector<Rank> MpiControl::silent(std::span<const Rank> ranks, Deadline deadline) {
    const auto answers = ask({0, kNoLane}, ranks, deadline);
    std::vector<Rank> silent;
    for (size_t i = 0; i < ranks.size(); ++i)
        if (!answers[i]) silent.push_back(ranks[i]);
    return silent;
}

bool MpiControl::any_announced_end() const {
    return std::any_of(ending_.begin(), ending_.end(), [](const std::atomic<bool>& ending) { return ending.load(); });
}

void MpiControl::announce_end() {
    int own = 0;
    MPI_Comm_rank(comm_, &own);
    for (Rank r = 0; r < static_cast<Rank>(ending_.size()); ++r) {
        MPI_Request sent;
        if (r != own && MPI_Isend(nullptr, 0, MPI_BYTE, r, kEnd, comm_, &sent) == MPI_SUCCESS) MPI_Request_free(&sent);
    }
}

std::vector<std::optional<int64_t>> MpiControl::ask(Question question, std::span<const Rank> ranks, Deadline deadline) {
    Asked& asked = keep({question, std::vector<int64_t>(ranks.size())});
    std::vector<MPI_Request> answers(ranks.size());
    for (size_t i = 0; i < ranks.size(); ++i) {
        const int tag = kAnswer + asked.question.lane;
        MPI_Request sent;
        check_mpi(MPI_Irecv(&asked.counts[i], sizeof(int64_t), MPI_BYTE, ranks[i], tag, comm_, &answers[i]), "MPI_Irecv");
        check_mpi(MPI_Isend(&asked.question, sizeof(Question), MPI_BYTE, ranks[i], kQuestion, comm_, &sent), "MPI_Isend");
        check_mpi(MPI_Request_free(&sent), "MPI_Request_free");
    }
    std::vector<std::optional<int64_t>> known(ranks.size());
    for (size_t i = 0; i < ranks.size(); ++i)
        if (wait_for(answers[i], deadline)) known[i] = asked.counts[i];
    return known;
}

}  // namespace convoy
