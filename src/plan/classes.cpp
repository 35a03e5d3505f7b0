// Which ranks do the same. Two ranks are alike when they hold parts of the same shapes of every value, at the same edges of its spatial dims (where halos
// and padding differ); what they compute, send and keep is then the same, up to the names of the ranks they talk to.
#include <algorithm>
#include <map>

#include "plan/simulate.h"

namespace convoy {

namespace {

// A running hash (FNV-1a over 64-bit words).
class Hash {
  public:
    void add(int64_t word) {
        value_ ^= static_cast<uint64_t>(word);
        value_ *= 0x100000001b3;
        value_ ^= value_ >> 29;
    }
    uint64_t value() const { return value_; }

  private:
    uint64_t value_ = 0xcbf29ce484222325;
};

std::map<Rank, uint64_t> signatures(const Graph& graph, const Plan& plan, const PlacedGraph& placed) {
    std::map<Rank, Hash> hashes;
    for (size_t v = 0; v < placed.values.size(); ++v) {
        const PlacedValue& value = placed.values[v];
        const Shape& whole = graph.shape(value.value);
        const Grid& grid = plan.grids[static_cast<size_t>(value.distribution.grid)];
        for (size_t i = 0; i < grid.ranks.size(); ++i) {
            Hash& hash = hashes[grid.ranks[i]];
            hash.add(static_cast<int64_t>(v));
            if (value.boxes.same()) continue;
            const Box& box = value.boxes[i];
            for (int d = 0; d < box.shape.size(); ++d) {
                hash.add(box.shape[d]);
                if (d >= 2) hash.add((box.begin(d) == 0 ? 1 : 0) + (box.end(d) == whole[d] ? 2 : 0));
            }
        }
    }
    std::map<Rank, uint64_t> result;
    for (const auto& [rank, hash] : hashes) result.emplace(rank, hash.value());
    return result;
}

}  // namespace

std::vector<RankClass> compile_classes(const Graph& graph, const Plan& plan, const Target& target, const CompileOptions& options) {
    Compiler compiler(graph, plan, target, options);
    std::vector<RankClass> classes;
    std::map<uint64_t, size_t> known;
    for (const auto& [rank, signature] : signatures(graph, plan, compiler.placed())) {
        const auto [at, fresh] = known.emplace(signature, classes.size());
        if (fresh) classes.push_back({compiler.program(rank), {}});
        classes[at->second].ranks.push_back(rank);
    }
    return classes;
}

std::vector<RankClass> compile_all(const Graph& graph, const Plan& plan, const Target& target, const CompileOptions& options) {
    Compiler compiler(graph, plan, target, options);
    std::vector<RankClass> classes;
    for (const auto& [rank, signature] : signatures(graph, plan, compiler.placed())) classes.push_back({compiler.program(rank), {rank}});
    return classes;
}

}  // namespace convoy
