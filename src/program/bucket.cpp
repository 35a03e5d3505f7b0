// Small tensors travel together: a message costs the same time to begin however little it carries. The all_reduces of parameters' gradients over one group are
// gathered, in the order of traffic, until they fill a bucket; large ones go alone, in place. The last buckets are smaller and smaller, because little or nothing is computed any more while
// the last of all travels (late gradients are not the last of all). Sums that one node makes and that others wait for (a batch norm's)
// go together at once. All ranks of a group see the same ones in the same order and so make the same buckets.
#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"
#include "program/local_graph.h"

namespace convoy {

namespace {

constexpr int64_t kBucketBytes = 1 << 20;
constexpr int64_t kLeastBytes = 128 << 10;  // of a bucket that is closed because little is left

class Bucketing {
  public:
    Bucketing(const Graph& whole, LocalGraph& graph) : whole_(whole), graph_(graph) {}

    void run() {
        gather_siblings();
        gather_gradients();
        std::erase_if(graph_.nodes, [](const LocalNode& node) { return node.traffic && node.inputs.empty(); });
    }

  private:
    // By group, type, micro-batch and queue.
    using Key = std::tuple<std::vector<Rank>, DType, int, Queue>;
    Key key_of(const LocalNode& node) const {
        return {std::get<Collective>(*node.traffic).group, value(node.inputs[0]).desc.dtype, node.micro_batch, node.queue};
    }

    // What one node makes is there at one time, so the first one's place in the order serves all.
    void gather_siblings() {
        std::map<std::pair<NodeId, Key>, std::vector<size_t>> siblings;
        for (size_t n = 0; n < graph_.nodes.size(); ++n) {
            const LocalNode& node = graph_.nodes[n];
            const auto* collective = node.traffic ? std::get_if<Collective>(&*node.traffic) : nullptr;
            const bool sum = collective && collective->kind == Collective::Kind::AllReduce && node.queue == Queue::Activation;
            if (!sum || bytes_of(n) >= kBucketBytes) continue;
            siblings[{whole_.value(value(node.inputs[0]).value).producer, key_of(node)}].push_back(n);
        }
        for (const auto& [key, list] : siblings) {
            int64_t order = graph_.nodes[list[0]].order;
            for (const size_t n : list) order = std::min(order, graph_.nodes[n].order);
            merge(list, order);
        }
    }

    void gather_gradients() {
        std::map<Key, std::vector<size_t>> travellers;
        for (size_t n = 0; n < graph_.nodes.size(); ++n) {
            const LocalNode& node = graph_.nodes[n];
            if (node.gathers && bytes_of(n) < kBucketBytes) travellers[key_of(node)].push_back(n);
        }
        for (auto& [key, list] : travellers) {
            std::sort(list.begin(), list.end(), [&](size_t a, size_t b) { return graph_.nodes[a].order < graph_.nodes[b].order; });
            std::vector<size_t> bucket;
            int64_t filled = 0, left = 0;
            for (const size_t n : list) left += bytes_of(n);
            for (const size_t n : list) {
                bucket.push_back(n);
                filled += bytes_of(n);
                left -= bytes_of(n);
                const bool shrinks = std::get<Queue>(key) == Queue::Gradient;
                if (filled < kBucketBytes && (!shrinks || filled < kLeastBytes || filled < left)) continue;
                merge(bucket, graph_.nodes[n].order);
                bucket.clear();
                filled = 0;
            }
            if (!bucket.empty()) merge(bucket, graph_.nodes[bucket.back()].order);
        }
    }

    const LocalValue& value(int v) const { return graph_.values[static_cast<size_t>(v)]; }
    int64_t bytes_of(size_t n) const {
        const TensorDesc& desc = value(graph_.nodes[n].inputs[0]).desc;
        return numel(desc.shape) * size_of(desc.dtype);
    }

    // Into the one that comes first in the list: all inputs are made before it, since what makes gradients comes before all updates.
    void merge(const std::vector<size_t>& bucket, int64_t order) {
        if (bucket.size() == 1) return;
        const size_t at = *std::min_element(bucket.begin(), bucket.end());
        LocalNode all = graph_.nodes[at];
        all.inputs.clear();
        all.outputs.clear();
        all.like.clear();
        all.sent = 0;
        all.order = order;
        auto& members = std::get<Collective>(*all.traffic).members;
        for (const size_t n : bucket) {
            LocalNode& node = graph_.nodes[n];
            for (size_t m = at; m < n; ++m) {
                const auto& made = graph_.nodes[m].outputs;
                CONVOY_CHECK(std::find(made.begin(), made.end(), node.inputs[0]) == made.end(),
                             "the gradient of layer \"{}\" is made after a bucket that it belongs to", node.layer);
            }
            all.inputs.push_back(node.inputs[0]);
            all.outputs.push_back(node.outputs[0]);
            all.like.push_back(node.like[0]);
            all.sent += node.sent;
            members.push_back({node.layer, node.sent});
            node.inputs.clear();
        }
        if (members.front().layer != members.back().layer) all.layer = fmt::format("{} to {}", members.front().layer, members.back().layer);
        graph_.nodes[at] = std::move(all);
    }

    const Graph& whole_;
    LocalGraph& graph_;
};

}  // namespace

void bucket(const Graph& whole, LocalGraph& graph) { Bucketing(whole, graph).run(); }

}  // namespace convoy
