// One rank's view of the placed graph: every op becomes what this rank computes of it, every move the packing, the traffic and the unpacking of
// this rank's part. What is empty here is left out.
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "model/cost.h"
#include "place/transfers.h"
#include "program/local_graph.h"
#include "program/localise.h"

namespace convoy {

namespace {

class Lowering {
  public:
    Lowering(const LowerOptions& options, Rank rank)
        : graph_(options.graph),
          placed_(options.placed),
          plan_(options.plan),
          target_(options.target),
          dtype_(options.dtype),
          late_(options.late),
          rank_(rank),
          local_(options.placed.values.size(), kNone) {}

    LocalGraph run() {
        for (const auto& [name, value] : placed_.inputs)
            if (is_here(value)) result_.inputs.push_back({name, local(value)});
        find_states();
        find_needs();
        find_order();
        for (const PlacedNode& node : placed_.nodes) {
            reader_ = &node;
            if (node.node == kNone)
                lower_move(node);
            else if (is_here(node.outputs[0]))
                lower_op(node);
        }
        for (const auto& [name, value] : placed_.outputs) {
            if (!is_here(value)) continue;
            result_.values[static_cast<size_t>(local(value))].output = true;
            result_.outputs.push_back({name, local(value)});
        }
        for (const auto& [state, value] : placed_.stores)
            if (is_here(state)) result_.stores.push_back({local(state), local(value)});
        return std::move(result_);
    }

  private:
    const PlacedValue& form(int f) const { return placed_.values[static_cast<size_t>(f)]; }
    const Grid& grid(const PlacedValue& v) const { return plan_.grids[static_cast<size_t>(v.distribution.grid)]; }

    // This rank's place in the grid of a value, or kNone.
    int place_in(const PlacedValue& v) const {
        const int place = grid(v).place_of(rank_);
        return place < 0 ? kNone : place;
    }
    bool is_here(int f) const { return place_in(form(f)) != kNone; }
    const Box& box(int f) const { return form(f).boxes[static_cast<size_t>(place_in(form(f)))]; }
    const Box& box_of(const PlacedValue& v, Rank rank) const { return v.boxes[static_cast<size_t>(grid(v).place_of(rank))]; }

    // The forms that something before the updates reads, itself or in a form made from it.
    void find_needs() {
        backward_needs_.assign(placed_.values.size(), false);
        for (size_t n = placed_.nodes.size(); n-- > 0;) {
            const PlacedNode& node = placed_.nodes[n];
            const bool needs =
                node.node != kNone ? node.phase != Phase::Update : static_cast<bool>(backward_needs_[static_cast<size_t>(node.outputs[0])]);
            if (!needs) continue;
            for (const int f : node.inputs) backward_needs_[static_cast<size_t>(f)] = true;
        }
    }

    // Of each placed node: itself, or the traffic that the backward pass is soon to wait for.
    std::vector<int64_t> find_next_waits() const {
        std::vector<int64_t> next(placed_.nodes.size());
        std::iota(next.begin(), next.end(), int64_t{0});
        for (size_t n = 0; n < next.size(); ++n) {
            const PlacedNode& move = placed_.nodes[n];
            if (move.node != kNone || move.phase != Phase::Backward || queue_of(move) != Queue::Activation) continue;
            for (size_t before = n - std::min(n, kSoon - 1); before < n; ++before)
                if (next[before] == static_cast<int64_t>(before)) next[before] = static_cast<int64_t>(n);
        }
        return next;
    }

    // Gradient traffic belongs where its gradient is made, and behind traffic that is waited for soon after; all other traffic where it is needed.
    void find_order() {
        std::vector<int64_t> made(placed_.values.size(), 0);  // of each form: the position of what made it
        const std::vector<int64_t> next_wait = find_next_waits();
        const auto count = static_cast<int64_t>(placed_.nodes.size());
        for (size_t n = 0; n < placed_.nodes.size(); ++n) {
            const PlacedNode& node = placed_.nodes[n];
            reader_ = &node;
            int64_t at = static_cast<int64_t>(n);
            if (node.node == kNone && is_gradient_queue(queue_of(node)))
                at = next_wait[static_cast<size_t>(made[static_cast<size_t>(node.inputs[0])])];
            for (const int f : node.outputs) made[static_cast<size_t>(f)] = at;
            order_.push_back(at * count + static_cast<int64_t>(n));
        }
    }

    // All states in the order of the graph, so that every rank lists them alike.
    void find_states() {
        std::vector<bool> seen(graph_.values().size());
        for (size_t f = 0; f < placed_.values.size(); ++f) {
            const PlacedValue& v = placed_.values[f];
            const int state = graph_.value(v.value).state;
            if (state == kNone || seen[static_cast<size_t>(v.value)]) continue;
            seen[static_cast<size_t>(v.value)] = true;
            if (is_here(static_cast<int>(f)))
                local(static_cast<int>(f));
            else
                result_.elsewhere.push_back({.spec = graph_.states()[static_cast<size_t>(state)],
                                             .distribution = v.distribution,
                                             .desc = {.dtype = target_.storage(graph_.value(v.value).type.element, dtype_)},
                                             .order = static_cast<int>(f)});
        }
    }

    int add_value(LocalValue value) {
        result_.values.push_back(std::move(value));
        return static_cast<int>(result_.values.size()) - 1;
    }

    int local(int f) {
        int& known = local_[static_cast<size_t>(f)];
        if (known != kNone) return known;
        const PlacedValue& from = form(f);
        const Value& value = graph_.value(from.value);
        const Box& part = box(f);
        LocalValue result{.name = value.name,
                          .desc = {part.shape, target_.storage(value.type.element, dtype_), value.type.shape, part.origin},
                          .element = value.type.element,
                          .value = from.value,
                          .partial = !from.distribution.partial.empty()};
        if (value.state != kNone && is_home(f)) {
            result.state = static_cast<int>(result_.states.size());
            result_.states.push_back({.spec = graph_.states()[static_cast<size_t>(value.state)],
                                      .distribution = from.distribution,
                                      .desc = result.desc,
                                      .order = f});
        }
        result.input = value.producer == kNone && value.state == kNone;
        return known = add_value(std::move(result));
    }

    // The first form of a value is the state itself; the others were made from it.
    bool is_home(int f) const {
        for (size_t i = 0; i < static_cast<size_t>(f); ++i)
            if (placed_.values[i].value == form(f).value) return false;
        return true;
    }

    int wire(int f, const Shape& shape) {
        const LocalValue& like = result_.values[static_cast<size_t>(local(f))];
        return add_value({.name = like.name, .desc = TensorDesc::whole(shape, like.desc.dtype), .element = like.element});
    }

    void lower_op(const PlacedNode& placed) {
        const Node& node = graph_.node(placed.node);
        std::vector<ValueType> in_types, out_types;
        std::vector<Box> in_boxes, out_boxes;
        for (size_t i = 0; i < placed.inputs.size(); ++i) {
            in_types.push_back(graph_.value(node.inputs[i]).type);
            in_boxes.push_back(box(placed.inputs[i]));
        }
        bool empty = true;
        for (size_t o = 0; o < placed.outputs.size(); ++o) {
            out_types.push_back(graph_.value(node.outputs[o]).type);
            out_boxes.push_back(box(placed.outputs[o]));
            empty = empty && out_boxes.back().empty();
        }
        std::vector<int> inputs, outputs;
        for (const int f : placed.inputs) inputs.push_back(local(f));
        for (const int f : placed.outputs) outputs.push_back(local(f));
        if (empty) return;
        LocalOp part = localise(node.op, in_types, out_types, in_boxes, out_boxes);
        CONVOY_CHECK(part.inputs == in_boxes, "{} \"{}\" reads other boxes than it was given", name_of(node.op), node.layer);
        if (auto* norm = std::get_if<BatchNormGradInputOp>(&part.op); norm && !placed.global_norm)
            norm->count = numel(in_boxes[0].shape) / std::max<int64_t>(1, in_boxes[0].shape[1]);
        if (std::holds_alternative<ConcatOp>(part.op))
            std::erase_if(inputs, [&](int v) { return numel(result_.values[static_cast<size_t>(v)].desc.shape) == 0; });
        add_compute(part.op, inputs, outputs);
    }

    void add_compute(const Op& op, std::vector<int> inputs, std::vector<int> outputs) {
        LocalNode node = blank();
        std::vector<TensorDesc> in, out;
        std::vector<ValueType> in_types, out_types;
        const auto describe = [&](int v, auto& descs, auto& types) {
            const LocalValue& value = result_.values[static_cast<size_t>(v)];
            descs.push_back(value.desc);
            types.push_back({value.desc.shape, value.element});
        };
        for (const int v : inputs) describe(v, in, in_types);
        for (const int v : outputs) describe(v, out, out_types);
        node.problem = Problem::single(op, in, out, dtype_);
        node.work = cost_of(op, in_types, out_types).work;
        node.inputs = std::move(inputs);
        node.outputs = std::move(outputs);
        result_.nodes.push_back(std::move(node));
    }

    LocalNode blank() const { return {.layer = reader_->layer, .phase = reader_->phase, .micro_batch = reader_->micro_batch}; }

    // --- Moves ---

    void lower_move(const PlacedNode& node) {
        const int from = node.inputs[0], to = node.outputs[0];
        if (node.move.kind == Move::Kind::Exchange) return exchange(from, to);
        if (!is_here(to)) return;
        switch (node.move.kind) {
            case Move::Kind::Slice: return slice(from, to);
            case Move::Kind::AllReduce: return all_reduce(from, to, node.move.axes);
            case Move::Kind::ReduceScatter: return reduce_scatter(from, to, node.move.axes);
            case Move::Kind::AllGather: return all_gather(from, to, node.move.axes);
            default: return merge(from, to, node.move.axes);
        }
    }

    std::vector<Rank> group(int f, const std::vector<int>& axes) const { return grid(form(f)).group(rank_, axes); }
    int64_t item(int v) const { return size_of(result_.values[static_cast<size_t>(v)].desc.dtype); }
    int64_t elements(int v) const { return numel(result_.values[static_cast<size_t>(v)].desc.shape); }

    bool is_weight_gradient(int f) const {
        const ValueId of = graph_.value(form(f).value).gradient_of;
        return of != kNone && graph_.value(of).state != kNone;
    }
    // Whether traffic makes another form of it.
    bool moves_on(int f) const {
        return std::any_of(placed_.nodes.begin(), placed_.nodes.end(), [&](const PlacedNode& n) {
            return n.node == kNone && std::find(n.inputs.begin(), n.inputs.end(), f) != n.inputs.end();
        });
    }

    // Gradients of parameters, and what their updates exchange, have a queue of their own; unless the rest of the backward pass waits for them, as it does
    // for the sums of a batch norm. Those that the next step needs late do not keep the others waiting.
    Queue queue_of(const PlacedNode& move) const {
        const bool gradient = is_weight_gradient(move.inputs[0]) && !backward_needs_[static_cast<size_t>(move.outputs[0])];
        if (gradient && late_[static_cast<size_t>(graph_.value(form(move.inputs[0]).value).gradient_of)]) return Queue::Late;
        return gradient || move.phase == Phase::Update ? Queue::Gradient : Queue::Activation;
    }

    void add_traffic(Action action, int in, int out, Queue queue, int64_t sent) {
        LocalNode node = blank();
        node.traffic = std::move(action);
        node.inputs = {in};
        node.outputs = {out};
        node.queue = queue;
        node.sent = sent;
        node.order = order_[static_cast<size_t>(reader_ - placed_.nodes.data())];
        result_.nodes.push_back(std::move(node));
    }

    void slice(int from, int to) {
        if (box(to).empty()) return void(local(to));
        add_compute(SliceOp{box(to).within(box(from)).origin, box(to).shape}, {local(from)}, {local(to)});
    }

    void all_reduce(int from, int to, const std::vector<int>& axes) {
        const auto ranks = group(from, axes);
        const int in = local(from), out = local(to);
        if (elements(in) == 0) return;
        const auto p = static_cast<int64_t>(ranks.size());
        add_traffic(Collective{Collective::Kind::AllReduce, ranks, {}}, in, out, queue_of(*reader_),
                    2 * elements(in) * (p - 1) / p * item(in));
        result_.nodes.back().like = {parameter_of(from)};
        result_.nodes.back().gathers = is_weight_gradient(from) && !backward_needs_[static_cast<size_t>(to)] && !moves_on(to);
    }

    // The parameter whose gradient this is, when it lies here in the same part.
    int parameter_of(int f) {
        const ValueId of = graph_.value(form(f).value).gradient_of;
        if (of == kNone || graph_.value(of).state == kNone) return kNone;
        for (size_t i = 0; i < placed_.values.size(); ++i)
            if (placed_.values[i].value == of)
                return is_here(static_cast<int>(i)) && box(static_cast<int>(i)) == box(f) ? local(static_cast<int>(i)) : kNone;
        return kNone;
    }

    void reduce_scatter(int from, int to, const std::vector<int>& axes) {
        const auto ranks = group(from, axes);
        const int in = local(from), out = local(to);
        if (elements(in) == 0) return;
        Collective collective{Collective::Kind::ReduceScatter, ranks, {}};
        PackOp pack;
        for (const Rank r : ranks) {
            pack.boxes.push_back(box_of(form(to), r).within(box(from)));
            collective.counts.push_back(numel(pack.boxes.back().shape));
        }
        const int packed = wire(from, {elements(in)});
        add_compute(pack, {in}, {packed});
        add_traffic(std::move(collective), packed, out, queue_of(*reader_), (elements(in) - elements(out)) * item(in));
    }

    void all_gather(int from, int to, const std::vector<int>& axes) {
        const auto ranks = group(from, axes);
        const int in = local(from), out = local(to);
        if (elements(out) == 0) return;
        Collective collective{Collective::Kind::AllGather, ranks, {}};
        UnpackOp unpack{{}, Box::whole({0}), {}};
        for (const Rank r : ranks) {
            unpack.boxes.push_back(box_of(form(from), r).within(box(to)));
            collective.counts.push_back(numel(unpack.boxes.back().shape));
        }
        const int gathered = wire(to, {elements(out)});
        // A ring passes on everything but the piece of the next rank; on average that is (p - 1) pieces of this size.
        const int64_t sent = elements(in) * (static_cast<int64_t>(ranks.size()) - 1) * item(in);
        add_traffic(std::move(collective), in, gathered, queue_of(*reader_), sent);
        add_compute(unpack, {gathered}, {out});
    }

    // Every rank's statistics to every rank, and there the merge of (count, mean, variance).
    void merge(int from, int to, const std::vector<int>& axes) {
        const auto ranks = group(from, axes);
        const int in = local(from), out = local(to);
        if (elements(out) == 0) return;
        Collective collective{Collective::Kind::AllGather, ranks, {}};
        MergeStatsOp merging;
        const PlacedValue& statistics = form(from);
        for (const Rank r : ranks) {
            collective.counts.push_back(elements(in));
            merging.counts.push_back(statistics.counts[static_cast<size_t>(grid(statistics).place_of(r))]);
        }
        const auto p = static_cast<int64_t>(ranks.size());
        const int gathered = wire(from, {p, 2, box(from).shape[1]});
        add_traffic(std::move(collective), in, gathered, queue_of(*reader_), elements(in) * (p - 1) * item(in));
        add_compute(merging, {gathered}, {out});
    }

    void exchange(int from, int to) {
        const PlacedValue &have = form(from), &want = form(to);
        if (place_in(have) == kNone && place_in(want) == kNone) return;
        const Shape& shape = graph_.shape(have.value);
        const auto pieces = transfers_of(rank_, {grid(have).ranks, owned_boxes(have.distribution, grid(have), shape).list()},
                                         {grid(want).ranks, want.boxes.list()});
        Exchange traffic;
        PackOp pack;
        UnpackOp unpack{{}, Box::whole({0}), {}};
        int64_t sent = 0, received = 0;
        for (const Piece& piece : pieces) {
            const int64_t count = numel(piece.box.shape);
            if (piece.from == rank_ && piece.to == rank_) {
                unpack.kept = piece.box.within(box(from));
                unpack.kept_at = piece.box.within(box(to)).origin;
            } else if (piece.from == rank_) {
                pack.boxes.push_back(piece.box.within(box(from)));
                sent += count;
                add_peer(traffic.sends, piece.to, count);
            } else if (piece.to == rank_) {
                unpack.boxes.push_back(piece.box.within(box(to)));
                received += count;
                add_peer(traffic.receives, piece.from, count);
            }
        }
        const int any = place_in(have) != kNone ? from : to;
        const int out = place_in(want) != kNone ? local(to) : kNone;
        int arrived = kNone;
        if (sent + received > 0) {
            const int packed = wire(any, {sent});
            if (sent > 0) add_compute(pack, {local(from)}, {packed});
            arrived = wire(any, {received});
            add_traffic(std::move(traffic), packed, arrived, queue_of(*reader_), sent * item(packed));
        }
        if (out == kNone || elements(out) == 0) return;
        if (received == 0) return add_compute(SliceOp{unpack.kept.origin, unpack.kept.shape}, {local(from)}, {out});
        std::vector<int> inputs{arrived};
        if (!unpack.kept.empty()) inputs.push_back(local(from));
        add_compute(unpack, inputs, {out});
    }

    static void add_peer(std::vector<Exchange::Peer>& peers, Rank rank, int64_t elements) {
        if (!peers.empty() && peers.back().rank == rank)
            peers.back().elements += elements;
        else
            peers.push_back({rank, elements});
    }

    const Graph& graph_;
    const PlacedGraph& placed_;
    const Plan& plan_;
    const Target& target_;
    DType dtype_;
    const std::vector<bool>& late_;
    Rank rank_;
    std::vector<int> local_;
    const PlacedNode* reader_ = nullptr;  // the node being lowered
    std::vector<int64_t> order_;          // of each placed node
    std::vector<bool> backward_needs_;    // of each form
    LocalGraph result_;
};

}  // namespace

LocalGraph lower(const LowerOptions& options, Rank rank) { return Lowering(options, rank).run(); }

}  // namespace convoy
