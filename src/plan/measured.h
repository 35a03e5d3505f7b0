// What was measured of a machine: seconds of kernels and of collectives. Tables, not models: plan/cost.h reads them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "program/program.h"

namespace convoy {

// How an instruction looks to the table: what it computes (ops, kernel sizes, algorithm, types), and its size. Two instructions of one family differ
// only in numbers that a fit over shapes can cover.
struct KernelShape {
    std::string family;         // "conv 3x3 pad 1x1 + bias + relu, f32, winograd"
    double work = 0;            // operations
    double bytes = 0;           // of all operands
    std::vector<double> sizes;  // further numbers that matter: results, channels in and out, samples
    bool operator==(const KernelShape&) const = default;
};
KernelShape shape_of(const Problem& problem, const std::string& algorithm);
// Of any instruction that is no traffic: computations and copies.
KernelShape shape_of(const Program& program, const Instruction& instruction);

struct KernelSample {
    KernelShape shape;
    int threads = 1;     // of the rank
    int busy = 1;        // ranks at work on the node at the same time
    double seconds = 0;  // median
    bool operator==(const KernelSample&) const = default;
};
using KernelTable = std::vector<KernelSample>;

// One collective, or exchange of messages, between `ranks` ranks over one class of links.
struct CollectiveSample {
    std::string kind;       // "all_reduce", "reduce_scatter", "all_gather", "exchange"
    std::string algorithm;  // "ring"; "auto" is what training takes
    std::string link;       // name of the LinkKind
    int ranks = 2;
    int64_t bytes = 0;  // of the whole vector; of an exchange: sent by each
    double seconds = 0;
    bool operator==(const CollectiveSample&) const = default;
};

Json to_json(const KernelSample& sample);
KernelSample kernel_sample_from_json(const Json& json);
Json to_json(const CollectiveSample& sample);
CollectiveSample collective_sample_from_json(const Json& json);

}  // namespace convoy
