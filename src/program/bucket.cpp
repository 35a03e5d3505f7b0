// Small gradients travel together: a message costs the same time to begin however little it carries. The all_reduces of parameters' gradients over one group are
// gathered, in the order of traffic, until they fill a bucket; large ones go alone, in place. All ranks of a group see the same ones in the same order and so
// make the same buckets.
#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"
#include "program/local_graph.h"

namespace convoy {

namespace {

constexpr int64_t kBucketBytes = 1 << 20;

class Bucketing {
  public:
    explicit Bucketing(LocalGraph& graph) : graph_(graph) {}

    void run() {
        std::map<std::tuple<std::vector<Rank>, DType, int>, std::vector<size_t>> travellers;  // by group, type and micro-batch
        for (size_t n = 0; n < graph_.nodes.size(); ++n) {
            const LocalNode& node = graph_.nodes[n];
            if (node.gathers && bytes_of(n) < kBucketBytes)
                travellers[{std::get<Collective>(*node.traffic).group, value(node.inputs[0]).desc.dtype, node.micro_batch}].push_back(n);
        }
        for (auto& [key, list] : travellers) {
            std::sort(list.begin(), list.end(), [&](size_t a, size_t b) { return graph_.nodes[a].order < graph_.nodes[b].order; });
            std::vector<size_t> bucket;
            int64_t filled = 0;
            for (const size_t n : list) {
                bucket.push_back(n);
                filled += bytes_of(n);
                if (filled < kBucketBytes) continue;
                merge(bucket);
                bucket.clear();
                filled = 0;
            }
            if (!bucket.empty()) merge(bucket);
        }
        std::erase_if(graph_.nodes, [](const LocalNode& node) { return node.traffic && node.inputs.empty(); });
    }

  private:
    const LocalValue& value(int v) const { return graph_.values[static_cast<size_t>(v)]; }
    int64_t bytes_of(size_t n) const {
        const TensorDesc& desc = value(graph_.nodes[n].inputs[0]).desc;
        return numel(desc.shape) * size_of(desc.dtype);
    }

    // Into the one that comes first in the list: what makes gradients comes before all updates, and with them all of these.
    void merge(const std::vector<size_t>& bucket) {
        if (bucket.size() == 1) return;
        const size_t at = *std::min_element(bucket.begin(), bucket.end());
        LocalNode whole = graph_.nodes[at];
        whole.inputs.clear();
        whole.outputs.clear();
        whole.like.clear();
        whole.sent = 0;
        auto& members = std::get<Collective>(*whole.traffic).members;
        for (const size_t n : bucket) {
            LocalNode& node = graph_.nodes[n];
            for (size_t m = at; m < n; ++m) {
                const auto& made = graph_.nodes[m].outputs;
                CONVOY_CHECK(std::find(made.begin(), made.end(), node.inputs[0]) == made.end(),
                             "the gradient of layer \"{}\" is made after a bucket that it belongs to", node.layer);
            }
            whole.inputs.push_back(node.inputs[0]);
            whole.outputs.push_back(node.outputs[0]);
            whole.like.push_back(node.like[0]);
            whole.sent += node.sent;
            whole.order = std::max(whole.order, node.order);
            members.push_back({node.layer, node.sent});
            node.inputs.clear();
        }
        whole.layer = fmt::format("{} to {}", members.front().layer, members.back().layer);
        graph_.nodes[at] = std::move(whole);
    }

    LocalGraph& graph_;
};

}  // namespace

void bucket(LocalGraph& graph) { Bucketing(graph).run(); }

}  // namespace convoy
