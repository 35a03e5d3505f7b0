// The vocabulary of collectives: which there are, how they reduce, which algorithm runs them, and one call as a value. Plain values, no traffic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace convoy {

// What moved bytes, for counters and messages. Transfer is traffic between two ranks.
enum class Traffic : uint8_t { AllReduce, ReduceScatter, AllGather, AllToAll, Broadcast, Barrier, Transfer };
constexpr int kTrafficKinds = 7;
// "all_reduce"
std::string_view name_of(Traffic kind);
// Error names the known ones.
Traffic traffic_named(std::string_view name);

// How elements are combined. bf16 is added in f32 and rounded after each addition.
enum class ReduceOp : uint8_t { Sum, Max, Min };
std::string_view name_of(ReduceOp op);

// Auto takes the choice from a CollectiveTable. Library is the transport's own: MPI's collective, or shared memory among threads.
enum class Algorithm : uint8_t { Auto, Library, Ring, RecursiveDoubling, Rabenseifner, Tree, Hierarchical, Pairwise, Bruck };
// "recursive_doubling"
std::string_view name_of(Algorithm algorithm);
// Error names the known ones.
Algorithm algorithm_named(std::string_view name);
// What may be asked for, Auto left out. Every one of them works for any number of ranks.
std::vector<Algorithm> algorithms_of(Traffic kind);

// One collective as one rank of a group sees it. Only the fields that the kind uses are set; counts are elements, by place in the group.
struct CollectiveCall {
    Traffic kind = Traffic::Barrier;
    DType dtype = DType::u8;
    ReduceOp op = ReduceOp::Sum;
    const std::byte* in = nullptr;  // AllReduce: the same as out
    std::byte* out = nullptr;
    int64_t count = 0;                      // AllReduce, Broadcast: elements
    std::span<const int64_t> counts;        // ReduceScatter: results; AllGather: contributions; AllToAll: what goes to each
    std::span<const int64_t> other_counts;  // AllToAll: what comes from each
    int root = 0;                           // Broadcast: place in the group
};

// Bytes that decide on the algorithm: of the whole vector; for AllToAll what this rank sends.
int64_t bytes_of(const CollectiveCall& call);

// Bytes the rank at this place sends with a bandwidth-optimal algorithm: (p-1)/p of the vector for ReduceScatter and AllGather when it divides,
// twice that for AllReduce. What the library's own algorithms are charged with.
int64_t optimal_bytes(const CollectiveCall& call, int place, int size);

// Elements before the piece of each place, with the total at the end.
std::vector<int64_t> offsets_of(std::span<const int64_t> counts);
// The pieces of `count` elements over `parts`: as even as can be, the first ones larger.
std::vector<int64_t> even_counts(int64_t count, int parts);

}  // namespace convoy
