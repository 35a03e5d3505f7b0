// The order of execution. The graph's own order is kept, except that an update moves up to the point where its gradient is ready and nobody
// reads the old value any more: its gradient's memory is then free for the rest of the backward pass. Gradient traffic moves up the same way and
// runs beside the rest of the backward pass; what waits for it stays at the end.
//
// While a halo or a batch norm's sums travel, what does not need them runs.
//
// All ranks begin their traffic in one order. A rank that waits for some traffic has then begun all that comes before it, so no two ranks can wait for
// each other.
#include <algorithm>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "program/local_graph.h"

namespace convoy {

namespace {

class Scheduling {
  public:
    explicit Scheduling(LocalGraph& graph)
        : graph_(graph),
          count_(graph.nodes.size()),
          readers_(graph.values.size()),
          producer_(graph.values.size(), kNone),
          overwrites_(count_) {
        for (size_t n = 0; n < count_; ++n) {
            for (const int v : graph.nodes[n].inputs) readers_[static_cast<size_t>(v)].push_back(n);
            for (const int v : graph.nodes[n].outputs) producer_[static_cast<size_t>(v)] = static_cast<int>(n);
        }
        for (const LocalStore& store : graph.stores)
            if (const int p = producer_[static_cast<size_t>(store.value)]; p != kNone)
                overwrites_[static_cast<size_t>(p)].push_back(store.state);
    }

    void run() {
        std::vector<size_t> order = in_traffic_order(preferred_order());
        fill_waits(order);
        std::vector<LocalNode> nodes;
        for (const size_t n : order) nodes.push_back(std::move(graph_.nodes[n]));
        graph_.nodes = std::move(nodes);
    }

  private:
    const LocalNode& node(size_t n) const { return graph_.nodes[n]; }

    // Whether it makes gradients of weights, which the rest of the backward pass does not need.
    bool makes_weight_gradients(size_t n) const {
        if (node(n).traffic || node(n).phase != Phase::Backward || node(n).work == 0) return false;
        const auto is_late = [&](size_t reader) { return node(reader).phase == Phase::Update; };
        return std::all_of(node(n).outputs.begin(), node(n).outputs.end(), [&](int v) {
            const auto& readers = readers_[static_cast<size_t>(v)];
            return std::all_of(readers.begin(), readers.end(), is_late);
        });
    }

    // The traffic that the backward pass is soon to wait for.
    std::optional<size_t> next_wait(size_t n) const {
        for (size_t m = n + 1; m < std::min(count_, n + kSoon); ++m)
            if (node(m).traffic && node(m).queue == Queue::Activation && node(m).phase == Phase::Backward) return m;
        return std::nullopt;
    }

    // By twice the place at which each is ready, plus one for what comes behind it.
    std::vector<size_t> preferred_order() const {
        std::vector<size_t> ready(count_);
        std::vector<bool> delayed(count_, false);  // gradient traffic, and what needs its result
        for (size_t n = 0; n < count_; ++n) {
            ready[n] = 2 * n;
            if (const auto wait = next_wait(n); wait && makes_weight_gradients(n)) ready[n] = 2 * *wait + 1;
            if (node(n).phase != Phase::Update) continue;
            const auto waits_for_traffic = [&](int v) {
                const int p = producer_[static_cast<size_t>(v)];
                return p != kNone && delayed[static_cast<size_t>(p)];
            };
            const bool traffic = is_gradient_queue(node(n).queue);
            delayed[n] = traffic || std::any_of(node(n).inputs.begin(), node(n).inputs.end(), waits_for_traffic);
            if (delayed[n] && !traffic) continue;
            // For traffic it waits no sooner than the backward pass does: behind what runs meanwhile.
            const auto over = [&](size_t m) { return ready[m] + (node(m).traffic ? 1 : 0); };
            size_t at = 0;
            for (const int v : node(n).inputs)
                if (const int p = producer_[static_cast<size_t>(v)]; p != kNone) at = std::max(at, over(static_cast<size_t>(p)));
            for (const int s : overwrites_[n])
                for (const size_t r : readers_[static_cast<size_t>(s)])
                    if (r != n) at = std::max(at, r < n ? over(r) : 2 * n);
            ready[n] = at;
        }
        std::vector<size_t> order(count_);
        std::iota(order.begin(), order.end(), size_t{0});
        std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return ready[a] < ready[b]; });
        return order;
    }

    // The preferred order, with nodes held back until the traffic that comes before theirs has begun.
    std::vector<size_t> in_traffic_order(const std::vector<size_t>& preferred) const {
        std::vector<size_t> traffic, order, held;
        for (size_t n = 0; n < count_; ++n)
            if (node(n).traffic) traffic.push_back(n);
        std::sort(traffic.begin(), traffic.end(), [&](size_t a, size_t b) { return node(a).order < node(b).order; });
        if (traffic.empty()) return preferred;
        std::vector<bool> done(count_, false);
        size_t next = 0;  // of `traffic`
        const auto possible = [&](size_t n) {
            if (node(n).traffic && traffic[next] != n) return false;
            for (const int v : node(n).inputs)
                if (const int p = producer_[static_cast<size_t>(v)]; p != kNone && !done[static_cast<size_t>(p)]) return false;
            for (const int s : overwrites_[n])
                for (const size_t r : readers_[static_cast<size_t>(s)])
                    if (r != n && !done[r]) return false;
            return true;
        };
        const auto emit = [&](size_t n) {
            done[n] = true;
            order.push_back(n);
            if (node(n).traffic) ++next;
        };
        for (const size_t n : preferred) {
            if (!possible(n)) {
                held.push_back(n);
                continue;
            }
            emit(n);
            for (size_t h = 0; h < held.size();) {  // what this has set free, in order
                if (possible(held[h])) {
                    emit(held[h]);
                    held.erase(held.begin() + static_cast<std::ptrdiff_t>(h));
                    h = 0;
                } else {
                    ++h;
                }
            }
        }
        CONVOY_CHECK(held.empty(), "the traffic of layer \"{}\" has no place in the order", node(held[0]).layer);
        return order;
    }

    // Where a computation would wait for traffic that has only just begun, work that does not depend on it comes first: a convolution's weight gradient runs
    // while the halo that its input gradient needs is on its way.
    void fill_waits(std::vector<size_t>& order) const {
        const auto reads = [&](size_t n, size_t from) {
            const auto& made = node(from).outputs;
            return std::any_of(node(n).inputs.begin(), node(n).inputs.end(),
                               [&](int v) { return std::find(made.begin(), made.end(), v) != made.end(); });
        };
        for (size_t p = 1; p < order.size(); ++p) {
            const LocalNode& traffic = node(order[p - 1]);
            if (!traffic.traffic || traffic.queue != Queue::Activation || node(order[p]).traffic || !reads(order[p], order[p - 1]))
                continue;
            for (size_t j = p + 1; j < std::min(order.size(), p + kSoon); ++j) {
                const LocalNode& other = node(order[j]);
                bool free = !other.traffic && other.phase == Phase::Backward && other.work > 0 && overwrites_[order[j]].empty();
                for (size_t k = p; free && k < j; ++k) free = !reads(order[j], order[k]);
                if (!free) continue;
                std::rotate(order.begin() + static_cast<std::ptrdiff_t>(p), order.begin() + static_cast<std::ptrdiff_t>(j),
                            order.begin() + static_cast<std::ptrdiff_t>(j) + 1);
                break;
            }
        }
    }

    LocalGraph& graph_;
    size_t count_;
    std::vector<std::vector<size_t>> readers_;
    std::vector<int> producer_;
    std::vector<std::vector<int>> overwrites_;  // of each node: the states whose next version it makes
};

}  // namespace

void schedule(LocalGraph& graph) { Scheduling(graph).run(); }

}  // namespace convoy
