// Collectives of a group of ranks on one lane. Calls block; every rank of the group makes the same calls in the same order. Whatever the algorithm,
// the result has the same bits on every rank and from run to run: the order of summation depends only on the group's size.
//
// Buffers: counts are elements; memory is dense and aligned for its type. The places of a group are 0 to size-1, in the order in which its ranks are listed.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "comm/channel.h"
#include "comm/collective_table.h"
#include "comm/meeting.h"

namespace convoy {

class Steps;

class Communicator {
  public:
    // `group` has no rank twice and holds the channel's own. Making one is collective over the group (see Transport::open). The channel must outlive it.
    Communicator(Channel& channel, std::vector<Rank> group);
    ~Communicator();
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;

    int size() const { return static_cast<int>(group_.size()); }
    // This rank's place in the group.
    int place() const { return place_; }
    // Whether all its ranks are on one node.
    bool one_node() const { return one_node_; }
    const std::vector<Rank>& group() const { return group_; }
    Channel& channel() const { return channel_; }

    // What Auto chooses by; the same on every rank. Starts as the transport's defaults.
    void set_table(CollectiveTable table) { table_ = std::move(table); }
    // How large the pieces are in which messages overlap with combining (1 MiB, or 128 KiB for gradients between nodes, unless set); the same on every rank.
    void set_segment_bytes(int64_t bytes);
    // What Auto would run for this call; Library only where the transport has its own for it.
    Algorithm choice(const CollectiveCall& call) const;

    // An algorithm that the collective does not have is an Error; Library means the best of ours where the transport has none of its own.
    //
    // data: count elements, in place: afterwards the combination over all ranks. f64, f32, bf16, i64, i32, u8.
    void all_reduce(std::byte* data, int64_t count, DType dtype, ReduceOp op = ReduceOp::Sum, Algorithm algorithm = Algorithm::Auto);
    // in: the pieces of all places, one after the other, counts[i] elements for place i; out: this place's piece, combined over all ranks.
    // out may be this place's piece of `in` itself, but may not overlap it otherwise. f64, f32, bf16, i64, i32, u8.
    void reduce_scatter(const std::byte* in, std::byte* out, std::span<const int64_t> counts, DType dtype, ReduceOp op = ReduceOp::Sum,
                        Algorithm algorithm = Algorithm::Auto);
    // in: counts[place()] elements; out: all pieces one after the other. `in` may be this place's piece of `out` itself. Any type.
    void all_gather(const std::byte* in, std::byte* out, std::span<const int64_t> counts, DType dtype,
                    Algorithm algorithm = Algorithm::Auto);
    // in: send_counts[i] elements for place i, one after the other; out: receive_counts[i] elements from place i. No overlap. Any type.
    void all_to_all(const std::byte* in, std::span<const int64_t> send_counts, std::byte* out, std::span<const int64_t> receive_counts,
                    DType dtype, Algorithm algorithm = Algorithm::Auto);
    // data: count elements; afterwards those of place `root`. Any type.
    void broadcast(std::byte* data, int64_t count, DType dtype, int root, Algorithm algorithm = Algorithm::Auto);
    void barrier(Algorithm algorithm = Algorithm::Auto);

  private:
    void check(const CollectiveCall& call, Algorithm algorithm) const;
    void run(const CollectiveCall& call, Algorithm algorithm);
    void run_library(const CollectiveCall& call);
    void run_messages(const CollectiveCall& call, Algorithm algorithm);
    [[noreturn]] void give_up(Traffic kind, const std::vector<Rank>& waiting_for);

    Channel& channel_;
    std::vector<Rank> group_;
    int place_ = 0;
    bool one_node_ = true;
    CollectiveTable table_;
    Meeting meeting_;
    std::unique_ptr<Port> port_;
    std::unique_ptr<Steps> steps_;
};

// All communicators of a rank. Those that are opened together are made in an order that is the same everywhere, whatever the order in which a rank lists
// the groups it belongs to. Each is made once.
class Communicators {
  public:
    using Wanted = std::pair<Channel*, std::vector<Rank>>;
    Communicators() = default;
    explicit Communicators(const std::vector<Wanted>& wanted) { open(wanted); }
    // Makes those that are not there yet, which is collective over their groups.
    void open(const std::vector<Wanted>& wanted);
    // Bug when it was not opened.
    Communicator& at(const Channel& channel, const std::vector<Rank>& group) const;
    // For those that are opened from now on.
    void set_table(CollectiveTable table) { table_ = std::move(table); }

  private:
    std::optional<CollectiveTable> table_;
    std::map<std::pair<Lane, std::vector<Rank>>, std::unique_ptr<Communicator>> made_;
};

}  // namespace convoy
