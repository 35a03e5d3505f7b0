#include "comm/communicator.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "comm/algorithms/algorithms.h"

namespace convoy {

namespace {

// Between nodes gradients go in small pieces, of which few are under way at a time: what is more urgent goes between them. Smaller ones, of 64 KiB, let activations pass sooner where the
// network itself knows no priorities (ResNet-50 on two hosts at 1 Gbit/s: 0.99 s a step instead of 1.03), but cost more processor time, which counts where it does (0.97 instead of 0.94).
constexpr int64_t kGradientSegmentBetweenNodes = 256 << 10;

// Above the callers' tags and within what every MPI offers.
int tag_of(GroupKey key) { return kMaxTag + 1 + static_cast<int>(key % 8192); }

bool reduces(Traffic kind) { return kind == Traffic::AllReduce || kind == Traffic::ReduceScatter; }

void copy_bytes(std::byte* dst, const std::byte* src, int64_t bytes) {
    if (dst != src && bytes > 0) std::memcpy(dst, src, static_cast<size_t>(bytes));
}

// What stands in where the transport has nothing of its own.
Algorithm substitute(Traffic kind, int64_t bytes) {
    switch (kind) {
        case Traffic::AllReduce: return bytes <= 16 << 10 ? Algorithm::RecursiveDoubling : Algorithm::Rabenseifner;
        case Traffic::Broadcast: return Algorithm::Tree;
        case Traffic::Barrier: return Algorithm::RecursiveDoubling;
        default: return Algorithm::Pairwise;
    }
}

std::vector<int64_t> times(std::span<const int64_t> counts, int64_t factor) {
    std::vector<int64_t> products;
    for (const int64_t c : counts) products.push_back(c * factor);
    return products;
}

void run_all_reduce(const Team& team, const std::vector<int>& nodes, const CollectiveCall& call, Algorithm algorithm) {
    const Elements elements{size_of(call.dtype), combine_of(call.dtype, call.op), team.steps.segment_bytes()};
    switch (algorithm) {
        case Algorithm::Ring: return all_reduce_ring(team, elements, call.out, call.count);
        case Algorithm::RecursiveDoubling: return all_reduce_recursive_doubling(team, elements, call.out, call.count);
        case Algorithm::Rabenseifner: return all_reduce_rabenseifner(team, elements, call.out, call.count);
        case Algorithm::Tree: return all_reduce_tree(team, elements, call.out, call.count);
        default: return all_reduce_hierarchical(team, nodes, elements, call.out, call.count);
    }
}

void run_reduce_scatter(const Team& team, const CollectiveCall& call, Algorithm algorithm) {
    const Elements elements{size_of(call.dtype), combine_of(call.dtype, call.op), team.steps.segment_bytes()};
    if (algorithm == Algorithm::Ring)
        reduce_scatter_ring(team, elements, call.in, call.out, call.counts);
    else
        reduce_scatter_pairwise(team, elements, call.in, call.out, call.counts);
}

void run_all_gather(const Team& team, const CollectiveCall& call, Algorithm algorithm) {
    const auto counts = times(call.counts, size_of(call.dtype));
    const auto own = static_cast<size_t>(team.place);
    copy_bytes(call.out + offsets_of(counts)[own], call.in, counts[own]);
    switch (algorithm) {
        case Algorithm::Ring: return all_gather_ring(team, call.out, counts);
        case Algorithm::Bruck: return all_gather_bruck(team, call.out, counts);
        default: return all_gather_pairwise(team, call.out, counts);
    }
}

// A group of one.
void run_alone(const CollectiveCall& call) {
    if (call.kind == Traffic::AllReduce || call.kind == Traffic::Broadcast || call.kind == Traffic::Barrier) return;
    copy_bytes(call.out, call.in, call.counts[0] * size_of(call.dtype));
}

}  // namespace

Communicator::Communicator(Channel& channel, std::vector<Rank> group)
    : channel_(channel),
      group_(std::move(group)),
      table_(CollectiveTable::defaults(channel.transport().name())),
      meeting_(make_meeting(channel.transport(), group_, channel.lane())),
      steps_(std::make_unique<Steps>(channel, tag_of(meeting_.key))) {
    const auto self = std::find(group_.begin(), group_.end(), channel.transport().rank());
    CONVOY_CHECK(self != group_.end(), "rank {} makes a communicator of ranks {}", channel.transport().rank(), fmt::join(group_, ", "));
    for (const Rank rank : group_) {
        CONVOY_CHECK(rank >= 0 && rank < channel.transport().size(), "rank {} of a world of {}", rank, channel.transport().size());
        CONVOY_CHECK(std::count(group_.begin(), group_.end(), rank) == 1, "rank {} twice in a group", rank);
    }
    place_ = static_cast<int>(self - group_.begin());
    one_node_ = on_one_node(channel.transport().nodes(), group_);
    if (!one_node_ && (channel.lane() == Lane::Gradient || channel.lane() == Lane::Late))
        steps_->set_segment_bytes(kGradientSegmentBetweenNodes);
    if (size() > 1) port_ = channel.transport().open(group_, channel.lane());
}

Communicator::~Communicator() = default;

void Communicator::set_segment_bytes(int64_t bytes) {
    CONVOY_CHECK(bytes >= 8, "pieces of {} bytes; expected at least one element", bytes);
    steps_->set_segment_bytes(bytes);
}

void Communicator::all_reduce(std::byte* data, int64_t count, DType dtype, ReduceOp op, Algorithm algorithm) {
    run({.kind = Traffic::AllReduce, .dtype = dtype, .op = op, .in = data, .out = data, .count = count}, algorithm);
}

void Communicator::reduce_scatter(const std::byte* in, std::byte* out, std::span<const int64_t> counts, DType dtype, ReduceOp op,
                                  Algorithm algorithm) {
    run({.kind = Traffic::ReduceScatter, .dtype = dtype, .op = op, .in = in, .out = out, .counts = counts}, algorithm);
}

void Communicator::all_gather(const std::byte* in, std::byte* out, std::span<const int64_t> counts, DType dtype, Algorithm algorithm) {
    run({.kind = Traffic::AllGather, .dtype = dtype, .in = in, .out = out, .counts = counts}, algorithm);
}

void Communicator::all_to_all(const std::byte* in, std::span<const int64_t> send_counts, std::byte* out,
                              std::span<const int64_t> receive_counts, DType dtype, Algorithm algorithm) {
    run({.kind = Traffic::AllToAll, .dtype = dtype, .in = in, .out = out, .counts = send_counts, .other_counts = receive_counts},
        algorithm);
}

void Communicator::broadcast(std::byte* data, int64_t count, DType dtype, int root, Algorithm algorithm) {
    run({.kind = Traffic::Broadcast, .dtype = dtype, .in = data, .out = data, .count = count, .root = root}, algorithm);
}

void Communicator::barrier(Algorithm algorithm) { run({.kind = Traffic::Barrier}, algorithm); }

Algorithm Communicator::choice(const CollectiveCall& call) const {
    const Algorithm chosen = table_.choose(call.kind, size(), one_node_, bytes_of(call));
    const bool possible = chosen != Algorithm::Library || (port_ && port_->offers(call));
    return possible ? chosen : substitute(call.kind, bytes_of(call));
}

void Communicator::check(const CollectiveCall& call, Algorithm algorithm) const {
    const auto per_place = static_cast<size_t>(size());
    const bool by_place =
        reduces(call.kind) ? call.kind == Traffic::ReduceScatter : call.kind == Traffic::AllGather || call.kind == Traffic::AllToAll;
    CONVOY_CHECK(!by_place || call.counts.size() == per_place, "{} of {} ranks with {} counts", name_of(call.kind), size(),
                 call.counts.size());
    CONVOY_CHECK(call.kind != Traffic::AllToAll || call.other_counts.size() == per_place, "all_to_all of {} ranks with {} receive counts",
                 size(), call.other_counts.size());
    CONVOY_CHECK(call.root >= 0 && call.root < size(), "root {} in a group of {}", call.root, size());
    if (reduces(call.kind)) combine_of(call.dtype, call.op);
    if (algorithm == Algorithm::Auto) return;
    const auto known = algorithms_of(call.kind);
    require(std::find(known.begin(), known.end(), algorithm) != known.end(), "{} has no algorithm {}", name_of(call.kind),
            name_of(algorithm));
}

void Communicator::run(const CollectiveCall& call, Algorithm algorithm) {
    check(call, algorithm);
    if (size() == 1) {
        channel_.charge(call.kind, 0);
        return run_alone(call);
    }
    if (algorithm == Algorithm::Auto) algorithm = choice(call);
    if (algorithm == Algorithm::Library && !port_->offers(call)) algorithm = substitute(call.kind, bytes_of(call));
    meeting_.begun->fetch_add(1, std::memory_order_relaxed);
    const LaneWorkScope scope(channel_.transport().work(channel_.lane()),
                              {.kind = call.kind, .label = channel_.label(), .ranks = group_, .key = meeting_.key});
    try {
        if (algorithm == Algorithm::Library)
            run_library(call);
        else
            run_messages(call, algorithm);
    } catch (const RunFailed& e) {
        throw channel_.failed_in(e, call.kind, channel_.label(), group_);
    }
}

void Communicator::run_library(const CollectiveCall& call) {
    channel_.charge(call.kind, optimal_bytes(call, place_, size()));
    if (!port_->run(call, channel_.deadline())) give_up(call.kind, {});
}

void Communicator::run_messages(const CollectiveCall& call, Algorithm algorithm) {
    const Team team{*steps_, group_, place_};
    steps_->begin();
    try {
        switch (call.kind) {
            case Traffic::AllReduce: {
                std::vector<int> nodes;
                for (const Rank rank : group_) nodes.push_back(channel_.transport().nodes()[static_cast<size_t>(rank)]);
                run_all_reduce(team, nodes, call, algorithm);
                break;
            }
            case Traffic::ReduceScatter: run_reduce_scatter(team, call, algorithm); break;
            case Traffic::AllGather: run_all_gather(team, call, algorithm); break;
            case Traffic::AllToAll:
                all_to_all_pairwise(team, call.in, times(call.counts, size_of(call.dtype)), call.out,
                                    times(call.other_counts, size_of(call.dtype)));
                break;
            case Traffic::Broadcast: broadcast_tree(team, call.out, call.count * size_of(call.dtype), call.root); break;
            case Traffic::Barrier: barrier_dissemination(team); break;
            case Traffic::Transfer: break;
        }
    } catch (const TimedOut& late) {
        give_up(call.kind, late.waiting_for);
    }
    channel_.charge(call.kind, steps_->bytes_sent());
}

// Ranks that have begun fewer collectives of this communicator than this rank have not arrived.
void Communicator::give_up(Traffic kind, const std::vector<Rank>& waiting_for) {
    const std::string missing = missing_at(channel_.transport(), channel_.lane(), {&meeting_, 1});
    std::string who = "not arrived: " + missing;
    if (missing.empty() && waiting_for.empty()) who = "all ranks had arrived";
    if (missing.empty() && !waiting_for.empty())
        who = fmt::format("all ranks had arrived, data did not from rank {}", fmt::join(waiting_for, ", "));
    fail("rank {} waited {:.3g} s in {}; {}", channel_.transport().rank(), static_cast<double>(channel_.limit().count()) * 1e-3,
         Channel::describe(channel_.lane(), kind, channel_.label(), group_), who);
}

}  // namespace convoy
