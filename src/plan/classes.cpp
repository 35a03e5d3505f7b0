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

// By rank; 0 for one that no grid holds.
std::vector<uint64_t> signatures(const Graph& graph, const Plan& plan, const PlacedGraph& placed) {
    Rank highest = 0;
    for (const Grid& grid : plan.grids) highest = std::max(highest, *std::max_element(grid.ranks.begin(), grid.ranks.end()));
    std::vector<Hash> hashes(static_cast<size_t>(highest) + 1);
    std::vector<bool> used(hashes.size());
    for (size_t g = 0; g < plan.grids.size(); ++g)
        for (const Rank r : plan.grids[g].ranks) {
            hashes[static_cast<size_t>(r)].add(static_cast<int64_t>(g));
            used[static_cast<size_t>(r)] = true;
        }
    for (const PlacedValue& value : placed.values) {
        if (value.boxes.same()) continue;
        const Shape& whole = graph.shape(value.value);
        const Grid& grid = plan.grids[static_cast<size_t>(value.distribution.grid)];
        for (size_t i = 0; i < grid.ranks.size(); ++i) {
            Hash& hash = hashes[static_cast<size_t>(grid.ranks[i])];
            const Box& box = value.boxes[i];
            for (int d = 0; d < box.shape.size(); ++d) {
                hash.add(box.shape[d]);
                if (d >= 2) hash.add((box.begin(d) == 0 ? 1 : 0) + (box.end(d) == whole[d] ? 2 : 0));
            }
        }
    }
    std::vector<uint64_t> result;
    for (size_t r = 0; r < hashes.size(); ++r) result.push_back(used[r] ? std::max<uint64_t>(1, hashes[r].value()) : 0);
    return result;
}

}  // namespace

std::vector<RankClass> compile_classes(const Graph& graph, const Plan& plan, const Target& target, const CompileOptions& options) {
    Compiler compiler(graph, plan, target, options);
    std::vector<RankClass> classes;
    std::map<uint64_t, size_t> known;
    const auto all = signatures(graph, plan, compiler.placed());
    for (Rank rank = 0; rank < static_cast<Rank>(all.size()); ++rank) {
        const uint64_t signature = all[static_cast<size_t>(rank)];
        if (signature == 0) continue;
        const auto [at, fresh] = known.emplace(signature, classes.size());
        if (fresh) classes.push_back({compiler.program(rank), {}});
        classes[at->second].ranks.push_back(rank);
    }
    return classes;
}

std::vector<RankClass> compile_all(const Graph& graph, const Plan& plan, const Target& target, const CompileOptions& options) {
    Compiler compiler(graph, plan, target, options);
    std::vector<RankClass> classes;
    const auto all = signatures(graph, plan, compiler.placed());
    for (Rank rank = 0; rank < static_cast<Rank>(all.size()); ++rank)
        if (all[static_cast<size_t>(rank)] != 0) classes.push_back({compiler.program(rank), {rank}});
    return classes;
}

}  // namespace convoy
