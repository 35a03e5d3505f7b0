// The algorithms of collectives, over messages alone. Each works for any number of ranks and leaves the same bits on all of them. Costs, for p
// ranks and n bytes, as (messages one after the other, bytes sent per rank):
//
//     all_reduce      ring                2(p-1), 2n(p-1)/p           recursive doubling   log2 p, n log2 p
//                     Rabenseifner        2 log2 p, 2n(p-1)/p         tree                 2 log2 p, up to n log2 p
//                     hierarchical        inside a node, then between nodes
//     all_gather      ring, pairwise      p-1, n(p-1)/p               Bruck                log2 p, n(p-1)/p
//     reduce_scatter  ring, pairwise      p-1, n(p-1)/p
//
// Recursive doubling and Rabenseifner need a power of two: other counts first fold the excess ranks into neighbours (two more messages of n).
// Internal to this module.
#pragma once

#include "comm/algorithms/steps.h"

namespace convoy {

// All in place on `count` elements.
void all_reduce_ring(const Team& team, const Elements& elements, std::byte* data, int64_t count);
void all_reduce_recursive_doubling(const Team& team, const Elements& elements, std::byte* data, int64_t count);
void all_reduce_rabenseifner(const Team& team, const Elements& elements, std::byte* data, int64_t count);
void all_reduce_tree(const Team& team, const Elements& elements, std::byte* data, int64_t count);
// `nodes` has the node of each place.
void all_reduce_hierarchical(const Team& team, const std::vector<int>& nodes, const Elements& elements, std::byte* data, int64_t count);

// `counts` in elements; see Communicator.
void reduce_scatter_ring(const Team& team, const Elements& elements, const std::byte* in, std::byte* out, std::span<const int64_t> counts);
void reduce_scatter_pairwise(const Team& team, const Elements& elements, const std::byte* in, std::byte* out,
                             std::span<const int64_t> counts);

// The rest moves bytes only: counts in bytes. This place's piece of `out` is already there, except for Bruck, which takes it from there too.
void all_gather_ring(const Team& team, std::byte* out, std::span<const int64_t> counts);
void all_gather_pairwise(const Team& team, std::byte* out, std::span<const int64_t> counts);
void all_gather_bruck(const Team& team, std::byte* out, std::span<const int64_t> counts);
void all_to_all_pairwise(const Team& team, const std::byte* in, std::span<const int64_t> send_counts, std::byte* out,
                         std::span<const int64_t> receive_counts);
void broadcast_tree(const Team& team, std::byte* data, int64_t bytes, int root);
void barrier_dissemination(const Team& team);

}  // namespace convoy
