#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/json.h"
#include "report/fields.h"
#include "report/views.h"

namespace convoy {

namespace {

constexpr size_t kMostInstants = 500, kMostRanks = 16;

std::vector<int64_t> numbers(const Json& list) {
    std::vector<int64_t> values;
    for (const Json& value : list) values.push_back(value.is_number() ? value.get<int64_t>() : 0);
    return values;
}

// The phase that most instructions around each one are of: the update of a layer runs as soon as it can, amid the backward pass.
std::vector<std::string> smoothed(const std::vector<std::string>& phases) {
    const auto count = static_cast<int64_t>(phases.size()), reach = std::max<int64_t>(1, count / 40);
    std::map<std::string, int64_t> around;
    std::vector<std::string> result;
    for (int64_t i = 0; i < std::min(reach, count); ++i) ++around[phases[static_cast<size_t>(i)]];
    for (int64_t i = 0; i < count; ++i) {
        if (i + reach < count) ++around[phases[static_cast<size_t>(i + reach)]];
        if (i - reach > 0) --around[phases[static_cast<size_t>(i - reach - 1)]];
        const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
        result.push_back(std::max_element(around.begin(), around.end(), less)->first);
    }
    return result;
}

std::vector<MemoryView::Band> bands_of(const std::vector<std::string>& phases) {
    std::vector<MemoryView::Band> bands;
    int64_t i = 0;
    for (const std::string& phase : smoothed(phases)) {
        if (bands.empty() || bands.back().phase != phase) bands.push_back({phase, i, i});
        bands.back().to = ++i;
    }
    return bands;
}

// Of each stretch of instructions the one that uses most.
std::vector<int64_t> chosen_instants(const std::vector<int64_t>& totals) {
    std::vector<int64_t> chosen;
    const size_t stretches = std::min(kMostInstants, totals.size());
    for (size_t i = 0; i < stretches; ++i) {
        const auto begin = totals.begin() + static_cast<std::ptrdiff_t>(i * totals.size() / stretches);
        const auto end = totals.begin() + static_cast<std::ptrdiff_t>((i + 1) * totals.size() / stretches);
        chosen.push_back(std::max_element(begin, end) - totals.begin());
    }
    return chosen;
}

// Ranks that hold the same are one row; of many rows those that hold most.
std::vector<MemoryView::OfRank> ranks_of(const Json& ranks) {
    std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> alike;
    std::map<std::pair<int64_t, int64_t>, int64_t> counts;
    int64_t index = 0;
    for (const Json& rank : ranks) {
        const std::pair<int64_t, int64_t> holds{fields::whole(rank, "arena_bytes"), fields::whole(rank, "state_bytes")};
        alike[holds].push_back(fields::whole(rank, "first", index++));
        counts[holds] += fields::whole(rank, "ranks", 1);
    }
    std::vector<MemoryView::OfRank> rows;
    const bool few = ranks.size() <= 8;
    for (const auto& [holds, members] : alike) {
        if (few && counts[holds] == static_cast<int64_t>(members.size()))
            for (const int64_t rank : members) rows.push_back({fmt::format("rank {}", rank), 1, holds.first, holds.second});
        else
            rows.push_back({counts[holds] == 1 ? fmt::format("rank {}", members[0])
                                               : fmt::format("rank {} and {} more", members[0], counts[holds] - 1),
                            counts[holds], holds.first, holds.second});
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) { return a.arena_bytes + a.state_bytes > b.arena_bytes + b.state_bytes; });
    if (few) std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.label < b.label; });
    rows.resize(std::min(rows.size(), kMostRanks));
    return rows;
}

}  // namespace

std::optional<MemoryView> memory_of(const Json& memory, const Json& ranks) {
    std::vector<std::string> layers, phases;
    for (const Json& layer : fields::list(memory, "layers")) layers.push_back(layer.is_string() ? layer.get<std::string>() : "");
    for (const Json& phase : fields::list(memory, "phases")) phases.push_back(phase.is_string() ? phase.get<std::string>() : "");
    const size_t count = layers.size();
    if (count == 0 || phases.size() != count) return std::nullopt;

    MemoryView view{.rank = fields::whole(memory, "rank"), .allocated_bytes = fields::whole(memory, "arena_bytes")};
    std::vector<std::pair<std::string, std::vector<int64_t>>> uses;
    for (const auto& [name, bytes] : fields::object(memory, "state_bytes").items()) {
        const int64_t held = bytes.is_number() ? bytes.get<int64_t>() : 0;
        view.allocated_bytes += held;
        uses.emplace_back(name, std::vector<int64_t>(count, held));
    }
    for (const auto& [name, bytes] : fields::object(memory, "bytes").items())
        if (bytes.is_array() && bytes.size() == count) uses.emplace_back(name, numbers(bytes));
    std::vector<int64_t> totals(count, 0);
    for (const auto& [name, bytes] : uses)
        for (size_t i = 0; i < count; ++i) totals[i] += bytes[i];

    view.at = chosen_instants(totals);
    for (const int64_t at : view.at) view.layers.push_back(layers[static_cast<size_t>(at)]);
    for (const auto& [name, bytes] : uses) {
        if (std::all_of(bytes.begin(), bytes.end(), [](int64_t b) { return b == 0; })) continue;
        MemoryView::Use use{name, {}};
        for (const int64_t at : view.at) use.bytes.push_back(bytes[static_cast<size_t>(at)]);
        view.uses.push_back(std::move(use));
    }
    view.bands = bands_of(phases);
    view.peak_layer = layers[static_cast<size_t>(std::max_element(totals.begin(), totals.end()) - totals.begin())];
    for (const Json& holder : fields::list(memory, "at_peak"))
        view.at_peak.push_back({fields::text(holder, "name"), fields::text(holder, "use"), fields::whole(holder, "bytes")});
    view.ranks = ranks_of(ranks);
    return view;
}

}  // namespace convoy
