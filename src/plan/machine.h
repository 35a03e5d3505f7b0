// A machine on paper: devices, nodes, links and what was measured of them. What the planner knows of hardware; it is made by hand, taken from a
// preset, or measured by `convoy profile`. A plain value: JSON in, JSON out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "place/grid.h"
#include "plan/measured.h"
#include "tensor/dtype.h"

namespace convoy {

// What one rank computes on: a GPU, or a core of a processor.
struct DeviceKind {
    struct Rate {
        DType dtype = DType::f32;
        double peak = 0;      // operations a second, as its maker says
        double measured = 0;  // in large convolutions; 0: not measured
        bool operator==(const Rate&) const = default;
    };
    std::string name;
    std::vector<Rate> rates;
    int64_t memory_bytes = 0;
    double memory_bandwidth = 0;            // bytes a second, of one device by itself
    double launch_seconds = 0;              // what every instruction takes beside its work
    double half_elements = 0;               // results of a kernel at which it reaches half of the rate; 0: small ones are as fast
    double idle_watts = 0, busy_watts = 0;  // 0: not known
    bool joins = false;  // several of a node can work as one rank (cores), with a thread on each; their memory is the host's
    bool operator==(const DeviceKind&) const = default;
};

// How many times as long traffic takes in a step, where ranks are late and data cold, as by itself.
struct InStep {
    double latency = 1, transfer = 1;
    bool operator==(const InStep&) const = default;
};

// One class of links. A message of n bytes takes latency + n / bandwidth.
struct LinkKind {
    std::string name;
    double latency = 0;            // seconds
    double bandwidth = 0;          // bytes a second, in each direction
    bool shared = false;           // by all ranks of a node, as a network card is; otherwise each rank has its own
    double combine_bandwidth = 0;  // bytes a second that a reduction adds up on the way; 0: as fast as it travels
    double compute_share = 0;      // part of a device's computing that traffic takes away while it runs
    InStep in_step;
    bool operator==(const LinkKind&) const = default;
};

struct NodeKind {
    std::string name;
    int64_t count = 1;            // 0: as many as are asked for; only the last kind
    int devices = 1;              // on one node
    int device = 0, inside = 0;   // which of the machine's devices, and of its links
    int crowd = 1;                // nodes like this one that share one board, memory and all (hosts made of namespaces)
    double price_per_hour = 0;    // of a node; 0: not known
    double memory_bandwidth = 0;  // bytes a second of all its devices together; 0: each has memory of its own
    double watts = 0;             // of a node without its devices
    bool operator==(const NodeKind&) const = default;
};

struct Machine {
    std::string name;
    std::string target = "roofline";  // the backend whose programs run: "cpu", "cuda"; "roofline": a description without kernels
    std::vector<DeviceKind> devices;
    std::vector<LinkKind> links;
    std::vector<NodeKind> nodes;
    int network = 0;  // the link between nodes
    KernelTable kernels;
    std::vector<CollectiveSample> collectives;
    bool operator==(const Machine&) const = default;
};

// Error names the field, what was expected and what was found.
void validate(const Machine& machine);
Json to_json(const Machine& machine);
// Validated. Error says what is missing or absurd.
Machine machine_from_json(const Json& json);

std::vector<std::string> machine_presets();
// "v100": round figures from published sources, unlimited nodes. Error with a suggestion when there is none of that name.
Machine machine_preset(const std::string& name);

// Where a rank sits: ranks fill the nodes one after the other.
struct Seat {
    int64_t node = 0;    // counted over all kinds
    int kind = 0;        // of the node
    int ranks_here = 1;  // ranks of the run on this node
};
// How many ranks fit; -1: any number.
int64_t seats(const Machine& machine);
// All ranks of a run of `ranks`. Where devices join, a run with fewer ranks than one node has devices shares them out. Error when there are too few.
std::vector<Seat> seating(const Machine& machine, int ranks);
// Nodes that a run of so many ranks needs, and what they cost a second (0: a price is not known).
int64_t nodes_for(const Machine& machine, int ranks);
double price_per_second(const Machine& machine, int ranks);

}  // namespace convoy
