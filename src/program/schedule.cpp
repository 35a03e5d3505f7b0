// The order of execution. The graph's own order is kept, except that an update moves up to the point where its gradient is ready and nobody
// reads the old value any more: its gradient's memory is then free for the rest of the backward pass. Gradient traffic moves up the same way and
// runs beside the rest of the backward pass; what waits for it stays at the end.
#include <algorithm>
#include <numeric>

#include "program/local_graph.h"

namespace convoy {

void schedule(LocalGraph& graph) {
    const size_t count = graph.nodes.size();
    std::vector<std::vector<size_t>> readers(graph.values.size());
    std::vector<int> producer(graph.values.size(), kNone);
    for (size_t n = 0; n < count; ++n) {
        for (const int v : graph.nodes[n].inputs) readers[static_cast<size_t>(v)].push_back(n);
        for (const int v : graph.nodes[n].outputs) producer[static_cast<size_t>(v)] = static_cast<int>(n);
    }
    // The state that a node writes, through the value it stores.
    std::vector<std::vector<int>> overwrites(count);
    for (const LocalStore& store : graph.stores)
        if (const int p = producer[static_cast<size_t>(store.value)]; p != kNone) overwrites[static_cast<size_t>(p)].push_back(store.state);

    std::vector<size_t> ready(count);
    std::vector<bool> delayed(count, false);  // gradient traffic, and what needs its result
    for (size_t n = 0; n < count; ++n) {
        ready[n] = n;
        const LocalNode& node = graph.nodes[n];
        if (node.phase != Phase::Update) continue;
        const auto waits_for_traffic = [&](int v) {
            const int p = producer[static_cast<size_t>(v)];
            return p != kNone && delayed[static_cast<size_t>(p)];
        };
        delayed[n] = node.queue == Queue::Gradient || std::any_of(node.inputs.begin(), node.inputs.end(), waits_for_traffic);
        if (delayed[n] && node.queue != Queue::Gradient) continue;
        size_t at = 0;
        for (const int v : node.inputs)
            if (producer[static_cast<size_t>(v)] != kNone) at = std::max(at, ready[static_cast<size_t>(producer[static_cast<size_t>(v)])]);
        for (const int s : overwrites[n])
            for (const size_t r : readers[static_cast<size_t>(s)])
                if (r != n) at = std::max(at, r < n ? ready[r] : n);
        ready[n] = at;
    }
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return ready[a] < ready[b]; });
    std::vector<LocalNode> nodes;
    for (const size_t n : order) nodes.push_back(std::move(graph.nodes[n]));
    graph.nodes = std::move(nodes);
}

}  // namespace convoy
