// Ranks that are processes under MPI. Each lane has a communicator of its own, so that lanes share no tags and no order. Between nodes messages go by sockets of our
// own where those cost less (node_sockets.h); MPI introduces the ranks to each other and carries all else.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "base/log.h"
#include "comm/algorithms/algorithms.h"
#include "comm/channel.h"
#include "comm/launch.h"
#include "comm/meeting.h"
#include "comm/mpi/end_signal.h"
#include "comm/mpi/mpi_calls.h"
#include "comm/mpi/mpi_control.h"
#include "comm/mpi/mpi_port.h"
#include "comm/mpi/node_sockets.h"
#include "comm/mpi/time_limit.h"

namespace convoy {

namespace {

// MPI from MPI_Init to MPI_Finalize. After an exception it does not finalise, which could wait for ranks that wait for this one; the launcher sees
// a process that ended too early.
class MpiLibrary {
  public:
    MpiLibrary() {
        int before = 0;
        MPI_Initialized(&before);
        require(before == 0, "MPI was started before, and a process can start it only once");
        // Over one TCP connection to a peer Open MPI 4 lets a small message of one thread wait until a large one of another is through. Over two it does not.
        // A setting of the user's stays; other libraries do not know the name.
        setenv("OMPI_MCA_btl_tcp_links", "2", 0);
        int provided = 0;
        check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
        require(provided == MPI_THREAD_MULTIPLE, "this MPI does not let several threads call it (MPI_THREAD_MULTIPLE), which Convoy needs");
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    }
    ~MpiLibrary() {
        if (std::uncaught_exceptions() == 0) MPI_Finalize();
    }
    // From here on there is a limit: MPI_Finalize has none.
    void end_within(std::chrono::milliseconds limit, std::function<void()> late) { end_.emplace(limit, std::move(late)); }
    MpiLibrary(const MpiLibrary&) = delete;
    MpiLibrary& operator=(const MpiLibrary&) = delete;

  private:
    HeldSignal held_;  // from MPI's own threads too
    std::optional<TimeLimit> end_;
};

double seconds(std::chrono::milliseconds limit) { return static_cast<double>(limit.count()) * 1e-3; }

// By which ranks count that they have come to the opening of a group, and to the end.
GroupKey opening_key(GroupKey group) { return group ^ 0x6f70656eULL; }
constexpr GroupKey kEndKey = 0x656e64ULL;

// Above those of collectives, and within what every MPI offers.
int opening_tag(GroupKey group) { return kMaxTag + 1 + 8192 + static_cast<int>(group % 8191); }

MPI_Comm copy_of_world() {
    MPI_Comm comm = MPI_COMM_NULL;
    check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
    return comm;
}

int world_rank() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

// The node of every rank, in the order in which nodes first appear.
std::vector<int> find_nodes(int ranks_per_node) {
    int size = 1, leader = world_rank();
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::vector<int> leaders(static_cast<size_t>(size)), nodes;
    if (ranks_per_node > 0) {
        for (int rank = 0; rank < size; ++rank) nodes.push_back(rank / ranks_per_node);
        return nodes;
    }
    MPI_Comm node = MPI_COMM_NULL;
    check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node), "MPI_Comm_split_type");
    check_mpi(MPI_Bcast(&leader, 1, MPI_INT, 0, node), "MPI_Bcast");
    MPI_Comm_free(&node);
    check_mpi(MPI_Allgather(&leader, 1, MPI_INT, leaders.data(), 1, MPI_INT, MPI_COMM_WORLD), "MPI_Allgather");
    std::map<int, int> number;
    for (const int l : leaders) nodes.push_back(number.emplace(l, static_cast<int>(number.size())).first->second);
    return nodes;
}

// Bytes as a count and a type: beyond what an int counts, one element of a type made for it.
class Extent {
  public:
    explicit Extent(size_t bytes) {
        if (bytes <= static_cast<size_t>(std::numeric_limits<int>::max())) {
            count = static_cast<int>(bytes);
            return;
        }
        constexpr size_t kBlock = 1 << 20;
        MPI_Datatype block;
        MPI_Type_contiguous(kBlock, MPI_BYTE, &block);
        std::array<int, 2> lengths{static_cast<int>(bytes / kBlock), static_cast<int>(bytes % kBlock)};
        std::array<MPI_Aint, 2> offsets{0, static_cast<MPI_Aint>(bytes / kBlock * kBlock)};
        std::array<MPI_Datatype, 2> types{block, MPI_BYTE};
        check_mpi(MPI_Type_create_struct(2, lengths.data(), offsets.data(), types.data(), &type), "MPI_Type_create_struct");
        check_mpi(MPI_Type_commit(&type), "MPI_Type_commit");
        MPI_Type_free(&block);
        count = 1;
    }
    ~Extent() {
        if (type != MPI_BYTE) MPI_Type_free(&type);  // messages under way keep it
    }
    Extent(const Extent&) = delete;
    Extent& operator=(const Extent&) = delete;

    int count = 0;
    MPI_Datatype type = MPI_BYTE;
};

class MpiTransport : public Transport {
  public:
    MpiTransport(std::unique_ptr<MpiLibrary> library, const MpiOptions& options)
        : Transport("mpi", world_rank(), find_nodes(options.ranks_per_node)), library_(std::move(library)), options_(options) {
        for (MPI_Comm& comm : lanes_) comm = copy_of_world();
        control_comm_ = copy_of_world();
        control_ = std::make_unique<MpiControl>(control_comm_, options.answer_limit);
        end_signal_ = std::make_unique<EndSignal>([this] { report_end(); });
        sockets_ = connect_nodes(rank(), nodes(), options);
    }

    ~MpiTransport() override {
        if (std::uncaught_exceptions() > 0) return;
        try {
            leave();
        } catch (const Error& e) {
            fail_all(e.what());
        }
        library_->end_within(options_.limit, [this_rank = rank(), limit = options_.limit] {
            log_line("error: ",
                     fmt::format("rank {} waited {:.3g} s for MPI to end, to which all ranks had come", this_rank, seconds(limit)));
            _exit(1);
        });
        end_signal_.reset();
        control_.reset();
        for (auto& [key, group] : groups_) {
            group.shared.reset();
            MPI_Comm_free(&group.comm);
        }
        for (MPI_Comm& comm : lanes_) MPI_Comm_free(&comm);
        MPI_Comm_free(&control_comm_);
    }

    Request send(const Address& to, std::span<const std::byte> data) override {
        if (by_socket(to.peer)) return marked(sockets_->send(to, data), to.lane);
        const Extent extent(data.size());
        MPI_Request request;
        check_mpi(MPI_Isend(data.data(), extent.count, extent.type, to.peer, to.tag, comm_of(to.lane), &request), "MPI_Isend");
        return posted(request, to.lane);
    }

    Request receive(const Address& from, std::span<std::byte> data) override {
        if (by_socket(from.peer)) return marked(sockets_->receive(from, data), from.lane);
        const Extent extent(data.size());
        MPI_Request request;
        check_mpi(MPI_Irecv(data.data(), extent.count, extent.type, from.peer, from.tag, comm_of(from.lane), &request), "MPI_Irecv");
        return posted(request, from.lane);
    }

    bool done(Request& request) override {
        if (!request.active) return true;
        if (sockets_) sockets_->progress(request.lane);
        if (request.by_socket) {
            if (!SocketLanes::done(request)) return false;
            sockets_->finish(request);
            return true;
        }
        MPI_Request unpacked = unpack(request);
        int done = 0;
        check_mpi(MPI_Test(&unpacked, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (done == 0) return false;
        request.active = false;
        open_.fetch_sub(1, std::memory_order_relaxed);
        return true;
    }

    // Both ways move on while either is waited for.
    bool wait(std::span<Request> requests, Deadline deadline) override {
        for (Request& request : requests) {
            Patience patience;
            Glance glance;
            while (!done(request)) {
                if (!request.by_socket) {
                    if (!patience.pause(deadline)) return false;
                } else if (sockets_->lost(request) && !control_->announced_end(SocketLanes::peer_of(request))) {
                    const Rank peer = SocketLanes::peer_of(request);
                    withdraw(requests);
                    throw RunFailed(gone_text(peer));
                } else if (open_.load(std::memory_order_relaxed) > 0) {
                    int none = 0;
                    check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_of(request.lane), &none, MPI_STATUS_IGNORE), "MPI_Iprobe");
                    if (!patience.pause(deadline)) return false;
                } else if (!glance.pause()) {
                    if (Clock::now() >= deadline) return false;
                    sockets_->sleep(request, kLook);
                }
            }
        }
        return true;
    }

    // MPI cannot take a message back reliably, and whoever gives up ends the run, so it stays in MPI's hands.
    void withdraw(std::span<Request> requests) override {
        for (Request& request : requests) {
            if (request.active && request.by_socket) sockets_->withdraw(request);
            request.active = false;
        }
    }

    std::atomic<int64_t>& arrivals(GroupKey key) override { return control_->arrivals(key); }

    std::vector<std::optional<int64_t>> arrivals_of(GroupKey key, Lane lane, std::span<const Rank> ranks) override {
        return control_->ask(key, lane, ranks);
    }

    std::unique_ptr<Port> open(const std::vector<Rank>& group, Lane lane) override {
        const auto place = static_cast<int>(std::find(group.begin(), group.end(), rank()) - group.begin());
        const GroupKey key = group_key(group, lane);
        const auto [at, added] = groups_.try_emplace(key);
        if (added) {
            meet(group, lane);
            const TimeLimit guard(options_.limit, [&] {
                fail_all(fmt::format(
                    "rank {} waited {:.3g} s for MPI while opening groups (ranks {} on the {} queue), to which all of them had come",
                    rank(), seconds(options_.limit), fmt::join(group, ", "), name_of(lane)));
            });
            at->second = make_group(group, lane, static_cast<int>(key % 16384));
        }
        return std::make_unique<MpiPort>(at->second.comm, at->second.shared.get(), place);
    }

    std::string between_nodes() const override { return sockets_ ? "sockets" : name(); }

    void leave() override {
        if (std::exchange(left_, true)) return;
        std::vector<Rank> all(static_cast<size_t>(size()));
        std::iota(all.begin(), all.end(), 0);
        const Meeting meeting = meeting_at(kEndKey, all);
        const LaneWorkScope scope(work(Lane::Service), {.kind = Traffic::Barrier, .label = "the end of the run", .ranks = all});
        MPI_Request all_here = MPI_REQUEST_NULL;
        check_mpi(MPI_Ibarrier(control_comm_, &all_here), "MPI_Ibarrier");
        if (wait_for(all_here, Clock::now() + options_.limit)) return;
        fail("rank {} waited {:.3g} s for all ranks to end; {}", rank(), seconds(options_.limit), absent(meeting));
    }

    // Other ranks that wait for the same get a second to say so too.
    void fail_all(const std::string& why) override {
        if (ending_.exchange(true))
            for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
        log_line("error: ", fmt::format("rank {} ended the run: {}", rank(), why));
        // MPI_Abort may hang when the network is gone.
        std::thread([limit = options_.abort_limit] {
            std::this_thread::sleep_for(limit);
            _exit(1);
        }).detach();
        if (control_) control_->announce_end();
        std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(options_.abort_limit / 2, std::chrono::seconds(1)));
        MPI_Abort(MPI_COMM_WORLD, 1);
        _exit(1);
    }

  private:
    static constexpr std::chrono::milliseconds kLook{20};     // how long a sleep may be before the deadline is looked at again
    static constexpr std::chrono::milliseconds kReport{400};  // what a launcher's last second leaves for questions
    static constexpr std::chrono::milliseconds kLong{1000};

    // This rank has come to one more.
    Meeting meeting_at(GroupKey key, const std::vector<Rank>& group) {
        Meeting meeting{.key = key, .begun = &arrivals(key)};
        std::copy_if(group.begin(), group.end(), std::back_inserter(meeting.others), [&](Rank r) { return r != rank(); });
        meeting.begun->fetch_add(1, std::memory_order_relaxed);
        return meeting;
    }

    std::string absent(const Meeting& meeting) {
        const std::string missing = missing_at(*this, Lane::Service, {&meeting, 1});
        return missing.empty() ? "all ranks had arrived" : "not arrived: " + missing;
    }

    // All ranks of a group come together by messages, which have a limit and leave the core to others, before MPI's calls, which do neither: after compiling and
    // tuning ranks may be far apart.
    void meet(const std::vector<Rank>& group, Lane lane) {
        const GroupKey key = group_key(group, lane);
        const Meeting meeting = meeting_at(opening_key(key), group);
        Channel channel(*this, Lane::Service, options_.limit);
        Steps steps(channel, opening_tag(key));
        const auto place = static_cast<int>(std::find(group.begin(), group.end(), rank()) - group.begin());
        const LaneWorkScope scope(work(Lane::Service), {.kind = Traffic::Barrier, .label = "opening groups", .ranks = group});
        steps.begin();
        try {
            barrier_dissemination({steps, group, place});
        } catch (const TimedOut&) {
            fail("rank {} waited {:.3g} s while opening groups (ranks {} on the {} queue); {}", rank(), seconds(options_.limit),
                 fmt::join(group, ", "), name_of(lane), absent(meeting));
        } catch (const RunFailed& e) {
            throw RunFailed(fmt::format("{}; rank {} was opening groups (ranks {} on the {} queue)", e.what(), rank(),
                                        fmt::join(group, ", "), name_of(lane)));
        }
    }

    // What this rank waits for when it is told to end: said when some of those that it waits for are gone without a word, or when it has waited for long. Where this
    // rank or those that it waits for have said why the run ends there is nothing to add.
    void report_end() {
        const auto start = Clock::now();
        std::vector<std::pair<Lane, LaneWork::Now>> busy;
        std::vector<Rank> others;
        for (int i = 0; i < kLanes; ++i) {
            const auto now = work(static_cast<Lane>(i)).now();
            if (!now || ending_) continue;
            busy.emplace_back(static_cast<Lane>(i), *now);
            for (const Rank r : now->ranks)
                if (r != rank() && std::find(others.begin(), others.end(), r) == others.end()) others.push_back(r);
        }
        std::vector<Rank> gone = control_->silent(others, start + kReport);
        std::erase_if(gone, [this](Rank r) { return control_->announced_end(r); });
        std::sort(gone.begin(), gone.end());
        for (const auto& [lane, now] : busy) {
            std::vector<Rank> missed;
            for (const Rank r : gone)
                if (std::find(now.ranks.begin(), now.ranks.end(), r) != now.ranks.end()) missed.push_back(r);
            const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(start - now.since);
            if (missed.empty() && (waited < kLong || control_->any_announced_end())) continue;
            const std::string who =
                missed.empty() ? "all of them respond" : fmt::format("not responding: rank {}", fmt::join(missed, ", rank "));
            log_line("error: ", fmt::format("rank {} was told to end (SIGTERM) after {:.3g} s in {}; {}", rank(), seconds(waited),
                                            Channel::describe(lane, now.kind, now.label, now.ranks), who));
        }
        std::this_thread::sleep_until(start + kReport);  // others ask this rank
    }

    MPI_Comm comm_of(Lane lane) const { return lanes_[static_cast<size_t>(lane)]; }
    bool by_socket(Rank peer) const { return sockets_ && nodes()[static_cast<size_t>(peer)] != nodes()[static_cast<size_t>(rank())]; }
    static Request marked(Request request, Lane lane) {
        request.lane = lane;
        request.by_socket = true;
        return request;
    }
    Request posted(MPI_Request request, Lane lane) {
        open_.fetch_add(1, std::memory_order_relaxed);
        Request packed = pack(request);
        packed.lane = lane;
        return packed;
    }

    struct Group {
        MPI_Comm comm = MPI_COMM_NULL;
        std::unique_ptr<MpiShared> shared;
    };

    Group make_group(const std::vector<Rank>& group, Lane lane, int tag) const {
        MPI_Group all, some;
        MPI_Comm comm = MPI_COMM_NULL;
        check_mpi(MPI_Comm_group(comm_of(lane), &all), "MPI_Comm_group");
        check_mpi(MPI_Group_incl(all, static_cast<int>(group.size()), group.data(), &some), "MPI_Group_incl");
        check_mpi(MPI_Comm_create_group(comm_of(lane), some, tag, &comm), "MPI_Comm_create_group");
        MPI_Group_free(&some);
        MPI_Group_free(&all);
        return {comm, on_one_node(nodes(), group) ? MpiShared::make(comm) : nullptr};
    }

    std::unique_ptr<MpiLibrary> library_;  // first in, last out
    MpiOptions options_;
    std::array<MPI_Comm, kLanes> lanes_{};
    MPI_Comm control_comm_ = MPI_COMM_NULL;
    std::unique_ptr<MpiControl> control_;
    std::unique_ptr<SocketLanes> sockets_;  // to ranks on other nodes; null where MPI carries those messages too
    std::atomic<int> open_{0};              // messages in MPI's hands, which move only inside its calls
    std::map<GroupKey, Group> groups_;
    std::atomic<bool> ending_{false};
    bool left_ = false;
    std::unique_ptr<EndSignal> end_signal_;
};

}  // namespace

MpiStatus mpi_status() {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(text, &length);
    std::string detail(text, static_cast<size_t>(length));
    detail = detail.substr(0, detail.find_first_of(",\n"));
    std::replace(detail.begin(), detail.end(), '\t', ' ');
    return {true, detail};
}

std::unique_ptr<Transport> make_mpi_transport(const MpiOptions& options) {
    auto library = std::make_unique<MpiLibrary>();
    const auto limit = std::max<std::chrono::milliseconds>(options.limit, std::chrono::minutes(1));
    const TimeLimit guard(limit, [this_rank = world_rank(), limit] {
        log_line("error: ", fmt::format("rank {} waited {:.3g} s for all ranks to begin", this_rank, seconds(limit)));
        _exit(1);
    });
    return std::make_unique<MpiTransport>(std::move(library), options);
}

}  // namespace convoy
