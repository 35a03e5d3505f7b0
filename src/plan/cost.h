// How long things take on a machine: kernels by measurement, by interpolation over measured shapes, or by the roofline; collectives by the
// latency-bandwidth model of each algorithm on the links they cross. Every answer says where it comes from and how far off it may be.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plan/machine.h"
#include "program/program.h"

namespace convoy {

struct CostOptions {
    int ranks = 1;    // of the run: decides how many share a node
    int threads = 0;  // of each rank, where devices join; 0: all of the node's, shared out
};

enum class CostSource : uint8_t { Measured, Interpolated, Roofline };
std::string_view name_of(CostSource source);

struct Estimate {
    double seconds = 0;
    double error = 0;  // relative, as seen where it could be checked; of the roofline: a guess
    CostSource source = CostSource::Roofline;
};

// A group of ranks as the machine sees it.
struct GroupShape {
    int size = 2;
    int per_node = 1;         // members on a node
    int groups_per_node = 1;  // groups that do the same at the same time on a node
    bool operator==(const GroupShape&) const = default;
};

struct TrafficCost {
    double latency = 0, transfer = 0;  // seconds, alone on its links
    int link = 0;                      // the slowest that it crosses
    double compute_share = 0;
    std::string algorithm;
    double seconds() const { return latency + transfer; }
};

class CostModel {
  public:
    // The machine must outlive it. Error when the machine has too few seats.
    CostModel(const Machine& machine, const CostOptions& options);
    ~CostModel();
    CostModel(const CostModel&) = delete;
    CostModel& operator=(const CostModel&) = delete;

    const Machine& machine() const { return machine_; }
    const std::vector<Seat>& seats() const { return seats_; }
    int threads(Rank rank) const;
    const DeviceKind& device(Rank rank) const;

    // What the roofline says, whatever was measured.
    double roofline(const KernelShape& shape, DType compute, Rank rank) const;
    // A computation on a rank's device, as one instruction. The algorithm may be left open.
    Estimate kernel(const Problem& problem, const std::string& algorithm = "", Rank rank = 0) const;
    Estimate kernel(const KernelShape& shape, DType compute, Rank rank = 0) const;

    GroupShape shape_of_group(const std::vector<Rank>& group) const;
    // `bytes` of the whole vector, with the algorithm that takes least.
    TrafficCost collective(Collective::Kind kind, int64_t bytes, const GroupShape& group) const;
    // One algorithm: ring, recursive_doubling, rabenseifner, tree, pairwise, hierarchical. Error for what the kind does not have.
    TrafficCost collective(Collective::Kind kind, int64_t bytes, const GroupShape& group, const std::string& algorithm) const;
    // Messages of one rank, all at once: the most that goes one way, and whether any leaves the node.
    TrafficCost exchange(int messages, int64_t bytes, bool between_nodes, int senders_per_node = 1) const;

    // Any instruction of a program of this rank.
    Estimate compute(const Program& program, const Instruction& instruction) const;
    TrafficCost traffic(const Program& program, const Instruction& instruction) const;

  private:
    struct Fits;
    const Machine& machine_;
    CostOptions options_;
    std::vector<Seat> seats_;
    std::unique_ptr<Fits> fits_;
};

}  // namespace convoy
