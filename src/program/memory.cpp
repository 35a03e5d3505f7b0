// The buffer plan. Traffic runs beside the computation: it begins when the list reaches it and is surely over where a computation waits for it (or
// for a later one of its queue), so what it reads and writes lives at least from the one point to the other.
//
// A *storage* is a piece of memory with a lifetime; several values may share one (a view, a result written in the place of an
// input). Storages whose lifetimes do not meet may overlap: the largest are placed first, each at the lowest offset that is free.
//
// Steps follow each other, so time is a circle: the instructions, and then the moment between two steps. What a carried instruction reads lives past that moment, into
// the next step.
#include <algorithm>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "program/local_graph.h"

namespace convoy {

namespace {

constexpr int64_t kAlignment = 64;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct StorageSpan {
    int64_t bytes = 0;
    int first = 0, last = 0;  // instructions; past the end, of the next step
    int64_t offset = 0;
};

// Whether they are ever in use together. A step takes `period`.
bool meet(const StorageSpan& a, const StorageSpan& b, int period) {
    return (a.first <= b.last && b.first <= a.last) || b.first <= a.last - period || a.first <= b.last - period;
}

// Gives every span an offset; returns the size of the whole.
int64_t place(std::vector<StorageSpan>& spans, bool reuse, int period) {
    std::vector<size_t> order(spans.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return spans[a].bytes > spans[b].bytes; });
    std::vector<size_t> placed;  // by offset
    int64_t total = 0;
    for (const size_t s : order) {
        StorageSpan& span = spans[s];
        CONVOY_CHECK(span.last - period < span.first, "memory is in use longer than a step takes");
        int64_t offset = reuse ? 0 : total;
        if (reuse) {
            int64_t best_gap = INT64_MAX;
            std::optional<int64_t> best;
            for (const size_t p : placed) {
                const StorageSpan& other = spans[p];
                if (!meet(span, other, period)) continue;
                const int64_t gap = other.offset - offset;
                if (gap >= span.bytes && gap < best_gap) {
                    best_gap = gap;
                    best = offset;
                }
                offset = std::max(offset, other.offset + other.bytes);
            }
            if (best) offset = *best;
        }
        span.offset = offset;
        placed.insert(
            std::upper_bound(placed.begin(), placed.end(), s, [&](size_t a, size_t b) { return spans[a].offset < spans[b].offset; }), s);
        total = std::max(total, offset + span.bytes);
    }
    return total;
}

class MemoryPlanner {
  public:
    MemoryPlanner(const LocalGraph& graph, bool reuse)
        : graph_(graph), reuse_(reuse), root_(graph.values.size()), last_(graph.values.size(), kNone) {
        std::iota(root_.begin(), root_.end(), 0);
        storage_.assign(graph.values.size(), kNone);
        within_.assign(graph.values.size(), 0);
        gathered_.assign(graph.values.size(), false);
        find_views();
        find_dues();
        find_waits();
        find_lifetimes();
    }

    Program run() {
        emit_values();
        for (const LocalNode& node : graph_.nodes)
            if (!is_view(node)) emit(node);
        program_.memory.arena_bytes = place(spans_, reuse_, period());
        for (size_t v = 0; v < root_.size(); ++v) {
            const auto root = static_cast<size_t>(root_[v]);
            if (storage_[root] != kNone) program_.slots[v].offset = spans_[static_cast<size_t>(storage_[root])].offset + within_[root];
        }
        for (const auto& [instruction, span] : workspaces_)
            std::get<Compute>(program_.instructions[static_cast<size_t>(instruction)].action).workspace_offset =
                spans_[static_cast<size_t>(span)].offset;
        program_.inputs = graph_.inputs;
        program_.outputs = graph_.outputs;
        return std::move(program_);
    }

  private:
    const LocalValue& value(int v) const { return graph_.values[static_cast<size_t>(v)]; }
    int root(int v) const { return root_[static_cast<size_t>(v)]; }
    int count() const { return static_cast<int>(listed_.size()); }
    int period() const { return count() + 1; }
    const LocalNode& node(int at) const { return *listed_[static_cast<size_t>(at)]; }
    int due(int at) const { return due_[static_cast<size_t>(at)]; }
    // When it runs, at the latest.
    int time(int at) const { return due(at) == kNone ? at : count() + due(at); }

    // Whether the boxes, one after the other, are the tensor itself in row-major order.
    static bool in_order(const std::vector<Box>& boxes, const Shape& shape) {
        const Dims strides = row_major_strides(shape);
        int64_t next = 0;
        for (const Box& box : boxes) {
            int64_t first = 0;
            bool started = false;  // past the first dim that is longer than one, all must be whole
            for (int d = 0; d < shape.size(); ++d) {
                first += box.origin[d] * strides[d];
                if (started && box.shape[d] != shape[d]) return false;
                started = started || box.shape[d] > 1;
            }
            if (box.empty()) continue;
            if (first != next) return false;
            next += numel(box.shape);
        }
        return next == numel(shape);
    }

    // A reshape of plain memory, packing what lies in order already, or a copy to a layout that lies in memory alike, is only another name for
    // it. Not for a state that this program overwrites: its old value would change.
    bool is_view(const LocalNode& node) const {
        if (node.traffic || node.inputs.empty() || node.apart) return false;
        const LocalValue &in = value(node.inputs[0]), &out = value(node.outputs[0]);
        const bool plain = !node.copy && node.problem.steps.size() == 1 && in.layout.is_plain() && out.layout.is_plain();
        const Op* op = plain ? &node.problem.steps[0].op : nullptr;
        const auto* pack = op ? std::get_if<PackOp>(op) : nullptr;
        const auto* unpack = op ? std::get_if<UnpackOp>(op) : nullptr;
        const bool reshape = op && (std::holds_alternative<ReshapeOp>(*op) || (pack && in_order(pack->boxes, in.desc.shape)) ||
                                    (unpack && unpack->kept.empty() && in_order(unpack->boxes, out.desc.shape)));
        const bool relabel = node.copy && in.desc.dtype == out.desc.dtype && equivalent(in.desc.shape, in.layout, out.layout);
        if (out.state != kNone || !(reshape || relabel)) return false;
        const int state = value(root(node.inputs[0])).state;
        const auto overwrites = [&](const LocalStore& store) { return value(store.state).state == state; };
        return state == kNone || std::none_of(graph_.stores.begin(), graph_.stores.end(), overwrites);
    }

    void find_views() {
        for (const LocalNode& node : graph_.nodes)
            if (is_view(node))
                root_[static_cast<size_t>(node.outputs[0])] = root(node.inputs[0]);
            else
                listed_.push_back(&node);
    }

    // For carried instructions the one of the next step before which they must run: it reads a state that they write, writes one that they read, or begins to make
    // again what they read from the arena.
    void find_dues() {
        const size_t roots = root_.size();
        const auto place = [&](int v) {  // a state, or a root of the arena
            const int state = value(root(v)).state;
            return static_cast<size_t>(state == kNone ? root(v) : static_cast<int>(roots) + state);
        };
        const int never = count();
        struct First {
            int read, written;
        };
        std::vector<First> first(roots + graph_.states.size(), {never, never});
        for (int at = 0; at < count(); ++at) {
            const bool stays = !node(at).carried || node(at).traffic;
            int begun = at;
            for (const int v : node(at).inputs) {
                if (stays) first[place(v)].read = std::min(first[place(v)].read, at);
                if (node(at).traffic) begun = std::min(begun, first[place(v)].written);  // what it sends lives as long as what it makes
            }
            for (const int v : node(at).outputs)
                if (stays || value(v).state == kNone) first[place(v)].written = std::min(first[place(v)].written, begun);
        }
        due_.assign(listed_.size(), kNone);
        std::vector<First> carried(roots + graph_.states.size(), {never, never});  // dues of carried ones that come later in the list
        for (int at = count(); at-- > 0;) {
            if (!node(at).carried || node(at).traffic) continue;
            int& due = due_[static_cast<size_t>(at)];
            due = never;
            for (const int v : node(at).inputs) due = std::min({due, first[place(v)].written, carried[place(v)].written});
            for (const int v : node(at).outputs) {
                const First &mine = first[place(v)], &later = carried[place(v)];
                due = std::min({due, mine.read, mine.written, later.read, later.written});
            }
            for (const int v : node(at).inputs) carried[place(v)].read = std::min(carried[place(v)].read, due);
            for (const int v : node(at).outputs) carried[place(v)].written = std::min(carried[place(v)].written, due);
        }
    }

    // What every instruction waits for on other queues, and for traffic when it is surely over. Who writes a state's next version into its memory waits for the
    // traffic that sends the old one.
    void find_waits() {
        std::vector<int> maker(graph_.values.size(), kNone);          // of each root: the traffic that wrote it
        std::vector<std::vector<int>> senders(graph_.states.size());  // of each state: the traffic that reads it
        for (int at = 0; at < count(); ++at) {
            std::vector<int> waits;
            const auto wait = [&](int by) {
                if (by != kNone && node(by).queue != node(at).queue && std::find(waits.begin(), waits.end(), by) == waits.end())
                    waits.push_back(by);
            };
            for (const int v : node(at).inputs) wait(maker[static_cast<size_t>(root(v))]);
            for (const int v : node(at).outputs)
                if (const int state = value(v).state; state != kNone)
                    for (const int by : senders[static_cast<size_t>(state)]) wait(by);
            for (const int v : node(at).inputs)
                if (const int state = value(root(v)).state; node(at).traffic && state != kNone)
                    senders[static_cast<size_t>(state)].push_back(at);
            for (const int v : node(at).outputs) maker[static_cast<size_t>(root(v))] = node(at).traffic ? at : kNone;
            waits_.push_back(std::move(waits));
        }
        for (int at = 0; at < count(); ++at) over_.push_back(node(at).carried ? 2 * count() : count());
        for (int i = 0; i < count(); ++i) {
            if (node(i).traffic) continue;
            for (const int w : waits_[static_cast<size_t>(i)])
                for (int t = 0; t <= w; ++t)
                    if (node(t).queue == node(w).queue) over_[static_cast<size_t>(t)] = std::min(over_[static_cast<size_t>(t)], time(i));
        }
        for (int at = 0; at < count(); ++at) {
            int& over = over_[static_cast<size_t>(at)];
            if (over == 2 * count())
                over = count();  // nobody waits for it
            else if (node(at).traffic && node(at).carried && over >= count())
                due_[static_cast<size_t>(at)] = over - count();
        }
    }

    // For every root (a value that is no view): the last instruction that reads it or a view of it. What is given from outside or read from
    // outside lives to the end.
    void find_lifetimes() {
        const auto extend = [](std::vector<int>& list, int root, int to) {
            int& last = list[static_cast<size_t>(root)];
            last = std::max(last, to);
        };
        for (int at = 0; at < count(); ++at)
            for (const int v : node(at).inputs) extend(last_, root(v), node(at).traffic ? at : time(at));
        read_last_ = last_;
        for (int at = 0; at < count(); ++at) {
            if (!node(at).traffic) continue;
            for (const auto* list : {&node(at).inputs, &node(at).outputs})
                for (const int v : *list) extend(last_, root(v), over_[static_cast<size_t>(at)]);
        }
        for (size_t v = 0; v < root_.size(); ++v)
            if (graph_.values[v].input || graph_.values[v].output) extend(last_, root_[v], count());
    }

    void emit_values() {
        for (size_t v = 0; v < graph_.values.size(); ++v) {
            const LocalValue& from = graph_.values[v];
            program_.slots.push_back({.name = from.name,
                                      .desc = from.desc,
                                      .layout = from.layout,
                                      .bytes = bytes_of(from.desc.shape, from.desc.dtype, from.layout),
                                      .state = value(root_[v]).state,
                                      .value = from.value,
                                      .partial = from.partial});
        }
        program_.states = graph_.states;
        program_.elsewhere = graph_.elsewhere;
        for (StateBinding& state : program_.states) {
            state.bytes = bytes_of(state.desc.shape, state.desc.dtype, state.layout);
            program_.memory.state_bytes += state.bytes;
        }
        for (const Binding& input : graph_.inputs) new_storage(input.slot, {0, 0});
    }

    int new_span(int64_t bytes, int first, int last) {
        spans_.push_back({aligned(bytes), first, last});
        return static_cast<int>(spans_.size()) - 1;
    }

    struct Made {
        int from, until;  // while it is being made
    };
    void new_storage(int v, const Made& made) {
        storage_[static_cast<size_t>(v)] = new_span(program_.slot(v).bytes, made.from, std::max(made.until, last_[static_cast<size_t>(v)]));
        program_.memory.unshared_bytes += aligned(program_.slot(v).bytes);
    }

    void emit(const LocalNode& node) {
        const int at = static_cast<int>(program_.instructions.size());
        Instruction instruction{.inputs = node.inputs,
                                .outputs = node.outputs,
                                .layer = node.layer,
                                .phase = node.phase,
                                .micro_batch = node.micro_batch,
                                .work = node.work};
        for (const int v : node.inputs) instruction.bytes += program_.slot(v).bytes;
        for (const int v : node.outputs) instruction.bytes += program_.slot(v).bytes;
        instruction.queue = node.queue;
        instruction.waits = waits_[static_cast<size_t>(at)];
        instruction.sent = node.sent;
        instruction.order = node.order;
        instruction.due = due(at);
        if (node.traffic) {
            instruction.action = *node.traffic;
            instruction.dtype = program_.slot(node.inputs[0]).desc.dtype;
        } else if (node.copy) {
            instruction.action = Copy{};
        } else {
            const int64_t workspace = node.candidate.workspace_bytes;
            if (workspace > 0) workspaces_.emplace_back(at, new_span(workspace, at, time(at)));
            instruction.dtype = node.problem.compute;
            instruction.action = Compute{.problem = node.problem, .algorithm = node.candidate.algorithm, .workspace_bytes = workspace};
        }
        const bool bucket = node.traffic && node.outputs.size() > 1;
        if (bucket) gather_outputs(node, at);
        for (size_t o = 0; o < node.outputs.size() && !bucket; ++o)
            if (value(node.outputs[o]).state == kNone && !((reuse_ || node.traffic) && take_input(node, static_cast<int>(o), at)))
                new_storage(node.outputs[o], {at, time(at)});
        program_.instructions.push_back(std::move(instruction));
    }

    // The results of a bucket, one after the other.
    void gather_outputs(const LocalNode& node, int at) {
        int64_t bytes = 0;
        int last = at;
        for (const int v : node.outputs) {
            within_[static_cast<size_t>(v)] = bytes;
            bytes += aligned(program_.slot(v).bytes);
            last = std::max(last, last_[static_cast<size_t>(v)]);
        }
        const int span = new_span(bytes, at, last);
        for (const int v : node.outputs) {
            storage_[static_cast<size_t>(v)] = span;
            gathered_[static_cast<size_t>(v)] = true;
        }
        program_.memory.unshared_bytes += bytes;
    }

    // Lets an output lie where an input lies that dies here, if the candidate can do it.
    bool take_input(const LocalNode& node, int output, int at) {
        const int out = node.outputs[static_cast<size_t>(output)];
        for (const auto& [o, i] : node.candidate.in_place) {
            const int in = root(node.inputs[static_cast<size_t>(i)]);
            const int storage = storage_[static_cast<size_t>(in)];
            const int last = (node.traffic ? read_last_ : last_)[static_cast<size_t>(in)];
            if (o != output || storage == kNone || last != at || gathered_[static_cast<size_t>(in)] ||
                program_.slot(in).bytes != program_.slot(out).bytes)
                continue;
            if (read_or_taken_otherwise(node, in, static_cast<size_t>(i))) continue;
            if (last_[static_cast<size_t>(out)] - period() >= spans_[static_cast<size_t>(storage)].first) continue;
            storage_[static_cast<size_t>(out)] = storage;
            spans_[static_cast<size_t>(storage)].last = std::max(at, last_[static_cast<size_t>(out)]);
            program_.memory.unshared_bytes += aligned(program_.slot(out).bytes);
            return true;
        }
        return false;
    }

    bool read_or_taken_otherwise(const LocalNode& node, int in, size_t operand) const {
        for (size_t j = 0; j < node.inputs.size(); ++j)
            if (j != operand && root(node.inputs[j]) == in) return true;
        for (const int v : node.outputs)
            if (storage_[static_cast<size_t>(v)] == storage_[static_cast<size_t>(in)]) return true;
        return false;
    }

    const LocalGraph& graph_;
    bool reuse_;
    std::vector<const LocalNode*> listed_;  // all but views: the instructions
    std::vector<int> due_;                  // of each instruction, as in the program
    std::vector<int> root_;                 // of each value: itself, or what it is a view of
    std::vector<int> last_;                 // of each root: the last instruction that reads it, or at which traffic that uses it is over
    std::vector<int> read_last_;            // the same without traffic's end
    std::vector<int> storage_;              // of each root in the arena: index into spans_
    std::vector<int64_t> within_;           // of each root: where it begins in its storage
    std::vector<bool> gathered_;            // of each root: whether its storage holds others too
    std::vector<std::vector<int>> waits_;   // of each instruction
    std::vector<int> over_;                 // of each instruction that is traffic: where it is surely over
    std::vector<StorageSpan> spans_;
    std::vector<std::pair<int, int>> workspaces_;  // instruction, span
    Program program_;
};

}  // namespace

Program plan_memory(const LocalGraph& graph, bool reuse) { return MemoryPlanner(graph, reuse).run(); }

}  // namespace convoy
