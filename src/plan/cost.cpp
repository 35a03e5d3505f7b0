#include "plan/cost.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "base/error.h"
#include "plan/collective_cost.h"
#include "plan/kernel_fit.h"

namespace convoy {

namespace {

constexpr double kOfPeak = 0.7;         // what a large convolution reaches where nobody measured
constexpr double kRooflineError = 0.4;  // of a kernel that was never measured

double rate(const DeviceKind& device, DType dtype) {
    const auto find = [&](DType wanted) {
        return std::find_if(device.rates.begin(), device.rates.end(), [&](const DeviceKind::Rate& r) { return r.dtype == wanted; });
    };
    auto at = find(dtype);
    if (at == device.rates.end()) at = find(DType::f32);
    if (at == device.rates.end()) at = device.rates.begin();
    return at->measured > 0 ? at->measured : kOfPeak * at->peak;
}

DType compute_type(const Program& program, const Instruction& instruction) {
    const auto* compute = std::get_if<Compute>(&instruction.action);
    return compute ? compute->problem.compute : program.dtype;
}

}  // namespace

std::string_view name_of(CostSource source) {
    constexpr std::string_view names[] = {"measured", "interpolated", "roofline"};
    return names[static_cast<size_t>(source)];
}

// One fit for each setting that occurs: kind of node, threads, ranks busy.
struct CostModel::Fits {
    struct Key {
        int kind, threads, busy;
        bool operator<(const Key& other) const { return std::tie(kind, threads, busy) < std::tie(other.kind, other.threads, other.busy); }
    };
    std::map<Key, KernelFit> by_setting;
};

CostModel::CostModel(const Machine& machine, const CostOptions& options)
    : machine_(machine), options_(options), seats_(seating(machine, options.ranks)), fits_(std::make_unique<Fits>()) {
    for (Rank r = 0; r < options.ranks; ++r) {
        const Seat& seat = seats_[static_cast<size_t>(r)];
        const Fits::Key key{seat.kind, threads(r), seat.ranks_here * machine.nodes[static_cast<size_t>(seat.kind)].crowd};
        if (fits_->by_setting.count(key)) continue;
        const auto roofline = [this, r](const KernelShape& shape) { return this->roofline(shape, DType::f32, r); };
        fits_->by_setting.emplace(key, KernelFit(machine.kernels, key.threads, key.busy, roofline));
    }
}

CostModel::~CostModel() = default;

const DeviceKind& CostModel::device(Rank rank) const {
    const NodeKind& node = machine_.nodes[static_cast<size_t>(seats_[static_cast<size_t>(rank)].kind)];
    return machine_.devices[static_cast<size_t>(node.device)];
}

int CostModel::threads(Rank rank) const {
    const Seat& seat = seats_[static_cast<size_t>(rank)];
    if (!device(rank).joins) return 1;
    if (options_.threads > 0) return options_.threads;
    return std::max(1, machine_.nodes[static_cast<size_t>(seat.kind)].devices / seat.ranks_here);
}

double CostModel::roofline(const KernelShape& shape, DType compute, Rank rank) const {
    const DeviceKind& d = device(rank);
    const Seat& seat = seats_[static_cast<size_t>(rank)];
    const NodeKind& node = machine_.nodes[static_cast<size_t>(seat.kind)];
    const double threads = this->threads(rank);
    double bandwidth = d.memory_bandwidth * threads;
    if (node.memory_bandwidth > 0) bandwidth = std::min(bandwidth, node.memory_bandwidth / (seat.ranks_here * node.crowd));
    double speed = rate(d, compute) * threads;
    // Small tensors do not fill a device. A weight gradient is small, but it is summed over what is not: the larger of what is read and made counts.
    if (d.half_elements > 0 && shape.sizes.size() == 6) {
        const auto& s = shape.sizes;
        const double elements = std::max(s[0] * s[1] * s[2], s[3] * s[4] * s[5]);
        speed *= elements / (elements + d.half_elements);
    }
    return d.launch_seconds + std::max(shape.work / speed, shape.bytes / bandwidth);
}

Estimate CostModel::kernel(const KernelShape& shape, DType compute, Rank rank) const {
    if (!machine_.kernels.empty()) {
        const Seat& seat = seats_[static_cast<size_t>(rank)];
        const Fits::Key key{seat.kind, threads(rank), seat.ranks_here * machine_.nodes[static_cast<size_t>(seat.kind)].crowd};
        const auto answer = fits_->by_setting.at(key).find(shape);
        if (answer.found) return {answer.seconds, answer.error, answer.exact ? CostSource::Measured : CostSource::Interpolated};
    }
    return {roofline(shape, compute, rank), kRooflineError, CostSource::Roofline};
}

Estimate CostModel::kernel(const Problem& problem, const std::string& algorithm, Rank rank) const {
    return kernel(convoy::shape_of(problem, algorithm), problem.compute, rank);
}

Estimate CostModel::compute(const Program& program, const Instruction& instruction) const {
    return kernel(convoy::shape_of(program, instruction), compute_type(program, instruction), program.rank);
}

// --- Traffic ---

GroupShape CostModel::shape_of_group(const std::vector<Rank>& group) const {
    std::map<int64_t, int> on_node;
    int most = 1, ranks_there = 1;
    for (const Rank r : group) {
        const Seat& seat = seats_[static_cast<size_t>(r)];
        const int count = ++on_node[seat.node];
        if (count < most) continue;
        most = count;
        ranks_there = seat.ranks_here;
    }
    return {static_cast<int>(group.size()), most, std::max(1, ranks_there / most)};
}

TrafficCost CostModel::collective(Collective::Kind kind, int64_t bytes, const GroupShape& group) const {
    TrafficCost best;
    if (group.size <= 1 || bytes == 0) return best;
    if (const auto measured = measured_collective(machine_, kind, bytes, group)) return *measured;
    for (const std::string& algorithm : collective_algorithms(kind)) {
        const TrafficCost cost = collective(kind, bytes, group, algorithm);
        if (best.algorithm.empty() || cost.seconds() < best.seconds()) best = cost;
    }
    return best;
}

TrafficCost CostModel::collective(Collective::Kind kind, int64_t bytes, const GroupShape& group, const std::string& algorithm) const {
    return collective_cost(machine_, kind, bytes, group, algorithm);
}

TrafficCost CostModel::exchange(int messages, int64_t bytes, bool between_nodes, int senders_per_node) const {
    if (messages == 0) return {};
    return exchange_cost(machine_, messages, bytes, between_nodes, senders_per_node);
}

TrafficCost CostModel::traffic(const Program& program, const Instruction& instruction) const {
    if (const auto* collective = std::get_if<Collective>(&instruction.action)) {
        // A wire holds the whole vector; an all_reduce works on its outputs in place.
        const bool gathers = collective->kind == Collective::Kind::AllGather;
        int64_t bytes = 0;
        for (const SlotId id : gathers ? instruction.outputs : instruction.inputs) bytes += program.slot(id).bytes;
        return this->collective(collective->kind, bytes, shape_of_group(collective->group));
    }
    const auto& exchange = std::get<Exchange>(instruction.action);
    const int64_t item = size_of(instruction.dtype);
    const Seat& own = seats_[static_cast<size_t>(program.rank)];
    int64_t out = 0, in = 0;
    bool leaves = false;
    std::set<Rank> peers;
    const auto count = [&](const std::vector<Exchange::Peer>& list, int64_t& sum) {
        for (const auto& [rank, elements] : list) {
            sum += elements * item;
            peers.insert(rank);
            leaves = leaves || seats_[static_cast<size_t>(rank)].node != own.node;
        }
    };
    count(exchange.sends, out);
    count(exchange.receives, in);
    return this->exchange(static_cast<int>(peers.size()), std::max(out, in), leaves, leaves ? own.ranks_here : 1);
}

}  // namespace convoy
