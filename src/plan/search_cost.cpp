#include "plan/search_cost.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "program/localise.h"

namespace convoy {

namespace {

constexpr double kBucketBytes = 1 << 20;  // small gradients share a message, as the compiler's buckets do

// The offsets of a part in the middle, one of the larger ones.
std::pair<int64_t, int64_t> middle_part(int64_t length, int64_t parts) {
    const int64_t rest = length % parts, small = length / parts;
    const int64_t part = rest == 0 ? parts / 2 : std::min(parts / 2, rest - 1);
    const int64_t begin = part * small + std::min(part, rest);
    return {begin, begin + small + (part < rest)};
}

bool takes_weight_gradient(const Op& op) {
    return std::holds_alternative<ConvGradWeightOp>(op) || std::holds_alternative<LinearGradWeightOp>(op) ||
           std::holds_alternative<LocalConvGradWeightOp>(op);
}

}  // namespace

StepCost& StepCost::operator+=(const StepCost& other) {
    compute += other.compute;
    backward += other.backward;
    latency += other.latency;
    transfer += other.transfer;
    gradient += other.gradient;
    gradient_latency += other.gradient_latency;
    memory += other.memory;
    return *this;
}

double step_seconds(const StepCost& cost) {
    // The first gradients come when the backward pass is under way, the last when it ends.
    const double hidden = std::min(0.95 * cost.gradient, 0.9 * cost.backward);
    return cost.waits() + cost.gradient - hidden;
}

// --- Local kernels ---

LocalKernels::Local LocalKernels::local(const LabelledOp& op, const std::vector<int>& parts) {
    const auto key = std::pair(op.node, parts);
    auto at = known_.find(key);
    if (at == known_.end()) at = known_.emplace(key, measure(op, parts)).first;
    return at->second;
}

LocalKernels::Local LocalKernels::measure(const LabelledOp& op, const std::vector<int>& parts) const {
    const auto cut = [&](const Shape& shape, const DimRoles& roles) {
        Box box = Box::whole(shape);
        for (int d = 0; d < shape.size(); ++d) {
            const DimRole& role = roles[static_cast<size_t>(d)];
            if (role.label == kNone || parts[static_cast<size_t>(role.label)] == 1) continue;
            const int64_t length = role.derived ? shape[d] : shape[d] / role.scale, scale = role.derived ? 1 : role.scale;
            const auto [begin, end] = middle_part(length, parts[static_cast<size_t>(role.label)]);
            box = box.with(d, begin * scale, end * scale);
        }
        return box;
    };
    std::vector<Box> in, out;
    for (size_t i = 0; i < op.inputs.size(); ++i) in.push_back(cut(op.inputs[i].shape, op.signature.inputs[i]));
    for (size_t o = 0; o < op.outputs.size(); ++o) out.push_back(cut(op.outputs[o].shape, op.signature.outputs[o]));
    const std::vector<Box> owned = in;
    const LocalOp part = localise(op.op, op.inputs, op.outputs, in, out);
    Local result;
    std::vector<TensorDesc> in_descs, out_descs;
    for (size_t i = 0; i < in.size(); ++i) {
        in_descs.push_back(
            {part.inputs[i].shape, target_.storage(op.inputs[i].element, dtype_), op.inputs[i].shape, part.inputs[i].origin});
        const bool weights = op.inputs[i].shape.size() < 2 || op.inputs[i].element != Element::Real;
        const int64_t beyond = numel(part.inputs[i].shape) - numel(intersection(part.inputs[i], owned[i]).shape);
        if (!weights) result.halo_bytes += beyond * item_bytes(op.inputs[i].element);
    }
    for (size_t o = 0; o < out.size(); ++o)
        out_descs.push_back({out[o].shape, target_.storage(op.outputs[o].element, dtype_), op.outputs[o].shape, out[o].origin});
    result.result_bytes = numel(out[0].shape) * item_bytes(op.outputs[0].element);
    result.seconds = cost_.kernel(Problem::single(part.op, in_descs, out_descs, dtype_)).seconds;
    return result;
}

// --- Grids ---

GridCosts::GridCosts(const SearchSpace& space, const Grid& grid, LocalKernels& kernels)
    : space_(space), grid_(grid), kernels_(kernels), known_(space.ops.size()) {
    CONVOY_CHECK(axes() <= kMostAxes, "a search on {} axes", axes());
    ranks_here_ = kernels.cost().seats()[0].ranks_here;
    for (unsigned mask = 0; mask < 1U << axes(); ++mask) {
        std::vector<Rank> members{grid.ranks[0]};
        int64_t stride = 1;
        for (int a = axes() - 1; a >= 0; --a) {
            const int size = grid.axes[static_cast<size_t>(a)].size;
            if (mask >> a & 1U) {
                const std::vector<Rank> one = members;
                for (int i = 1; i < size; ++i)
                    for (const Rank r : one) members.push_back(r + static_cast<Rank>(stride * i));
            }
            stride *= size;
        }
        const GroupShape shape = kernels.cost().shape_of_group(members);
        groups_.push_back({shape, shape.per_node < shape.size});
    }
}

std::vector<int> GridCosts::parts(const LabelledOp& op, const Choice& choice) const {
    std::vector<int> result(op.signature.labels.size(), 1);
    for (int a = 0; a < axes(); ++a)
        if (choice.label[static_cast<size_t>(a)] >= 0)
            result[static_cast<size_t>(choice.label[static_cast<size_t>(a)])] *= grid_.axes[static_cast<size_t>(a)].size;
    return result;
}

int GridCosts::splits(const Spread& spread) const {
    int result = 1;
    for (int a = 0; a < axes(); ++a)
        if (spread[a] >= 0) result *= grid_.axes[static_cast<size_t>(a)].size;
    return result;
}

double GridCosts::bytes_of(ValueId value) const {
    const ValueType& type = space_.graph->value(value).type;
    return static_cast<double>(numel(type.shape) * kernels_.item_bytes(type.element));
}

Spread GridCosts::needs(const LabelledOp& op, size_t operand, const Choice& choice) const {
    Spread spread;
    for (int a = 0; a < axes(); ++a) {
        const int label = choice.label[static_cast<size_t>(a)];
        const int dim = label >= 0 ? dim_of(op.signature.inputs[operand], label) : kNone;
        if (dim != kNone) spread[a] = static_cast<int16_t>(dim);
    }
    return spread;
}

// What is made: a sum along axes whose label it lacks.
Spread GridCosts::makes(const DimRoles& roles, const Choice& choice) const {
    Spread spread;
    for (int a = 0; a < axes(); ++a) {
        const int label = choice.label[static_cast<size_t>(a)];
        if (label < 0) continue;
        const int dim = dim_of(roles, label);
        spread[a] = dim == kNone ? kSum : static_cast<int16_t>(dim);
    }
    return spread;
}

Choice GridCosts::renamed(const LabelledOp& from, const Choice& choice, const LabelledOp& to) const {
    Choice result;
    for (int a = 0; a < axes(); ++a) {
        const int label = choice.label[static_cast<size_t>(a)];
        if (label >= 0)
            result.label[static_cast<size_t>(a)] =
                static_cast<int16_t>(to.label_named(from.signature.labels[static_cast<size_t>(label)].name));
    }
    return result;
}

std::vector<Choice> GridCosts::choices(size_t index) const {
    const LabelledOp& op = space_.ops[index].forward;
    std::vector<Choice> all{Choice{}};
    for (int a = 0; a < axes(); ++a) {
        std::vector<Choice> next;
        for (const Choice& so_far : all) {
            next.push_back(so_far);  // the axis does nothing
            for (size_t l = 0; l < op.signature.labels.size(); ++l) {
                Choice with = so_far;
                with.label[static_cast<size_t>(a)] = static_cast<int16_t>(l);
                if (parts(op, with)[l] > op.signature.labels[l].length) continue;
                const auto fits = [&](int dim) {
                    Spread spread = with.out;
                    spread[a] = static_cast<int16_t>(dim);
                    int64_t cut = 1;
                    for (int b = 0; b <= a; ++b)
                        if (spread[b] == dim) cut *= grid_.axes[static_cast<size_t>(b)].size;
                    return dim < op.outputs[0].shape.size() && op.outputs[0].shape[dim] >= cut;
                };
                const int dim = dim_of(op.signature.outputs[0], static_cast<int>(l));
                bool settled = false;
                // A sum goes into parts: by channels, as it came, or by samples; or it is completed everywhere where there is nothing to cut.
                for (const int to : dim == kNone ? std::vector<int>{1, 0} : std::vector<int>{dim}) {
                    if (!fits(to)) continue;
                    with.out[a] = static_cast<int16_t>(to);
                    next.push_back(with);
                    settled = true;
                }
                if (dim == kNone && !settled) next.push_back(with);
            }
        }
        all = std::move(next);
    }
    return all;
}

// The compiler's rule, with one form for every value: bytes that travel, and below a byte its preferences between equals.
Choice GridCosts::follow(size_t index, const std::vector<Spread>& reads) const {
    const SearchOp& op = space_.ops[index];
    const Signature& signature = op.forward.signature;
    Choice choice;
    const auto travel = [](int from, int to, double bytes, double p, bool derived) {
        const double rest = (p - 1) / p;
        if (from == to) return derived && to >= 0 ? 0.01 * bytes / p : 0;
        if (from == kSum) return (to >= 0 ? 1 : 2) * bytes * rest;
        if (from == kWhole) return 0.0;
        return to >= 0 ? bytes / p * rest : bytes * rest;
    };
    for (int a = 0; a < axes(); ++a) {
        const double p = grid_.axes[static_cast<size_t>(a)].size;
        double best = 1e300;
        for (int label = kWhole; label < static_cast<int>(signature.labels.size()); ++label) {
            double cost = 0;
            for (size_t i = 0; i < op.reads.size(); ++i) {
                const DimRoles& roles = signature.inputs[op.reads[i].operand];
                const int need = label >= 0 ? dim_of(roles, label) : kNone;
                if (op.reads[i].given)
                    cost += need >= 0 ? 0.25 : 0;
                else
                    cost +=
                        travel(reads[i][a], need, bytes_of(op.reads[i].value), p, need >= 0 && roles[static_cast<size_t>(need)].derived);
            }
            if (label >= 0 && !signature.outputs.empty() && dim_of(signature.outputs[0], label) != kNone) cost += 0.0625;
            if (cost >= best) continue;
            best = cost;
            choice.label[static_cast<size_t>(a)] = static_cast<int16_t>(label);
        }
    }
    if (!signature.outputs.empty()) choice.out = makes(signature.outputs[0], choice);
    for (int a = 0; a < axes(); ++a)
        if (choice.out[a] == kSum) choice.out[a] = kWhole;  // activations do not stay sums
    return choice;
}

// --- Traffic ---

StepCost GridCosts::collective(Collective::Kind kind, double bytes, unsigned mask) const {
    StepCost cost;
    const Group& g = group(mask);
    if (g.shape.size <= 1) return cost;
    const TrafficCost traffic = kernels_.cost().collective(kind, static_cast<int64_t>(bytes), g.shape);
    cost.latency = traffic.latency;
    cost.transfer = traffic.transfer;
    return cost;
}

StepCost GridCosts::move(double bytes, const Spread& from, const Spread& to) const {
    StepCost cost;
    Spread now = from;
    unsigned open = 0;
    int last = 0;
    for (int a = 0; a < axes(); ++a)
        if (now[a] == kSum && to[a] != kSum) {
            open |= 1U << a;
            last = a;
        }
    if (open != 0) {
        const double local = bytes / splits(now);
        const bool scatters = (open & (open - 1)) == 0 && to[last] >= 0;
        cost += collective(scatters ? Collective::Kind::ReduceScatter : Collective::Kind::AllReduce, local, open);
        for (int a = 0; a < axes(); ++a)
            if (open >> a & 1U) now[a] = scatters ? to[a] : kWhole;
    }
    unsigned changed = 0, gathered = 0;
    bool sliced = false;
    for (int a = 0; a < axes(); ++a) {
        if (now[a] == to[a]) continue;
        if (now[a] == kWhole)
            sliced = true;
        else
            (to[a] == kWhole ? gathered : changed) |= 1U << a;
    }
    if ((changed | gathered) == 0) return cost;  // at most a slice of what is there
    if (changed == 0 && !sliced) {
        cost += collective(Collective::Kind::AllGather, bytes / splits(to), gathered);
        return cost;
    }
    const Group& g = group(changed | gathered);
    const double received = bytes / splits(to) * (1 - 1.0 / g.shape.size);
    const TrafficCost traffic = kernels_.cost().exchange(g.shape.size - 1, static_cast<int64_t>(received), g.between_nodes, ranks_here_);
    cost.latency += traffic.latency;
    cost.transfer += traffic.transfer;
    return cost;
}

StepCost GridCosts::halo(const LabelledOp& op, const Choice& choice, int64_t bytes) const {
    StepCost cost;
    if (bytes == 0) return cost;
    unsigned mask = 0;
    int messages = 1;
    for (int a = 0; a < axes(); ++a) {
        const int label = choice.label[static_cast<size_t>(a)];
        if (label < 0) continue;
        const int dim = dim_of(op.signature.inputs[0], label);
        if (dim == kNone || !op.signature.inputs[0][static_cast<size_t>(dim)].derived) continue;
        mask |= 1U << a;
        messages *= 3;
    }
    const Group& g = group(mask);
    if (g.shape.size <= 1) return cost;
    const int peers = std::min(messages, g.shape.size) - 1;
    const TrafficCost traffic = kernels_.cost().exchange(peers, bytes, g.between_nodes, ranks_here_);
    cost.latency = traffic.latency;
    cost.transfer = traffic.transfer;
    return cost;
}

// --- Ops ---

void GridCosts::add_parameters(const SearchOp& op, const Choice& choice, StepCost& sum) {
    const bool norm =
        std::holds_alternative<BatchNormalizeOp>(op.forward.op);  // their gradients are the sums that the backward pass makes anyway
    for (const SearchParameter& p : op.parameters) {
        const Spread w = makes(op.forward.signature.inputs[p.operand], choice);
        unsigned summed = 0;
        for (int a = 0; a < axes(); ++a)
            if (w[a] == kSum) summed |= 1U << a;
        const double local = bytes_of(p.value) / splits(w);
        sum.memory += local * (p.learned() ? 2 + p.slots : 1);
        // A gradient without an update (a layer looked at by itself) travels all the same.
        const bool gradient = p.learned() || std::any_of(op.backward.begin(), op.backward.end(),
                                                         [](const LabelledOp& b) { return takes_weight_gradient(b.op); });
        if (!gradient) continue;
        if (p.learned()) {
            Choice as_weights;
            for (int a = 0; a < axes(); ++a)
                if (w[a] >= 0) as_weights.label[static_cast<size_t>(a)] = w[a];
            sum.compute +=
                kernels_.local(p.update, parts(p.update, as_weights)).seconds * std::min(1.0, local / 1e5);  // small updates are fused
        }
        if ((norm && kernels_.global_norm) || summed == 0) continue;
        const StepCost traffic = collective(Collective::Kind::AllReduce, local, summed);
        const double share = std::min(1.0, local / kBucketBytes);
        sum.gradient += traffic.transfer + traffic.latency * share;
        sum.gradient_latency += traffic.latency * share;
    }
}

StepCost GridCosts::compute(size_t index, const Choice& choice) {
    const SearchOp& op = space_.ops[index];
    const auto times = static_cast<double>(space_.micro_batches);
    StepCost sum;
    const auto own = kernels_.local(op.forward, parts(op.forward, choice));
    sum.compute = own.seconds;
    sum += halo(op.forward, choice, own.halo_bytes);
    const Spread made = op.forward.outputs.empty() ? Spread{} : makes(op.forward.signature.outputs[0], choice);
    if (op.statistics) {
        unsigned merged = 0;
        for (int a = 0; a < axes(); ++a)
            if (made[a] == kSum && kernels_.global_norm) merged |= 1U << a;
        sum += collective(Collective::Kind::AllGather, static_cast<double>(own.result_bytes) * group(merged).shape.size, merged);
    } else if (op.made != kNone) {
        sum += move(bytes_of(op.made), made, choice.out);
        // Backwards, dy comes as y lies, and is read as the op's gradients need it.
        Spread dy = made;
        for (int a = 0; a < axes(); ++a)
            if (dy[a] == kSum) dy[a] = kWhole;
        if (!op.backward.empty()) sum += move(bytes_of(op.made), choice.out, dy);
    }
    for (const LabelledOp& gradient : op.backward) {
        const Choice as = renamed(op.forward, choice, gradient);
        const auto part = kernels_.local(gradient, parts(gradient, as));
        sum.compute += part.seconds;
        sum.backward += part.seconds;
        if (!takes_weight_gradient(gradient.op)) sum += halo(gradient, as, part.halo_bytes);
        if (!std::holds_alternative<BatchNormGradSumsOp>(gradient.op) || !kernels_.global_norm) continue;
        const Spread sums = makes(gradient.signature.outputs[0], as);
        unsigned open = 0;
        for (int a = 0; a < axes(); ++a)
            if (sums[a] == kSum) open |= 1U << a;
        sum += collective(Collective::Kind::AllReduce, 2.0 * static_cast<double>(part.result_bytes), open);
    }
    for (double* part : {&sum.compute, &sum.backward, &sum.latency, &sum.transfer}) *part *= times;
    if (op.keeps) sum.memory += static_cast<double>(own.result_bytes);
    add_parameters(op, choice, sum);
    return sum;
}

const StepCost& GridCosts::cost(size_t op, const Choice& choice) {
    const uint64_t key = static_cast<uint64_t>(choice.label_key()) << 32 | choice.out.key();
    auto at = known_[op].find(key);
    if (at == known_[op].end()) at = known_[op].emplace(key, compute(op, choice)).first;
    return at->second;
}

StepCost GridCosts::read(size_t index, const SearchOp::Read& read, const Spread& from, const Choice& choice) {
    const SearchOp& op = space_.ops[index];
    StepCost cost;
    if (read.given) return cost;
    const Spread need = needs(op.forward, read.operand, choice);
    const double bytes = bytes_of(read.value);
    cost = move(bytes, from, need);
    // A form of its own, kept for the backward pass where weights are.
    if (op.free && cost.transfer > 0) cost.memory += bytes / splits(need);
    if (read.gradient) cost += move(bytes, makes(op.forward.signature.inputs[read.operand], choice), from);
    for (double* part : {&cost.latency, &cost.transfer}) *part *= space_.micro_batches;
    return cost;
}

StepCost GridCosts::evaluate(std::vector<Choice>& chosen, std::vector<StepCost>* each) {
    std::unordered_map<ValueId, Spread> lies;
    StepCost sum;
    if (each) each->assign(space_.ops.size(), {});
    for (size_t i = 0; i < space_.ops.size(); ++i) {
        const SearchOp& op = space_.ops[i];
        std::vector<Spread> reads;
        for (const auto& r : op.reads) reads.push_back(r.given ? Spread{} : lies[r.value]);
        if (!op.free) chosen[i] = follow(i, reads);
        StepCost own = cost(i, chosen[i]);
        for (size_t r = 0; r < reads.size(); ++r) own += read(i, op.reads[r], reads[r], chosen[i]);
        sum += own;
        if (each) (*each)[i] = own;
        if (op.made != kNone) lies[op.made] = chosen[i].out;
    }
    return sum;
}

}  // namespace convoy
