#include "train/plan_choice.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/parse_json.h"
#include "base/suggest.h"

namespace convoy {

namespace {

bool is_json(const std::string& text) { return !text.empty() && text[0] == '{'; }

bool is_file(const std::string& text) {
    std::error_code ignored;
    return text.size() > 5 && text.compare(text.size() - 5, 5, ".json") == 0 ? true : std::filesystem::is_regular_file(text, ignored);
}

Plan parse(const std::string& text, const std::string& where) {
    const Json json = parse_json(text, where);
    try {
        Plan plan = plan_from_json(json);
        for (const Grid& grid : plan.grids) validate(grid);
        return plan;
    } catch (const Error& error) {
        fail("{}: {}", where, error.what());
    }
}

PlanChoice fixed_choice(Plan plan, int ranks, const std::string& where) {
    const int needs = ranks_of(plan);
    require(ranks == 0 || ranks == needs, "{} needs {} rank{}, but there {} {}", where, needs, needs == 1 ? "" : "s",
            ranks == 1 ? "is" : "are", ranks);
    return {.spec = "", .fixed = std::move(plan), .ranks = needs};
}

}  // namespace

PlanChoice plan_choice(const std::string& text, int ranks) {
    if (text.empty())
        return {.spec = ranks > 1 ? "data" : "",
                .fixed = ranks > 1 ? std::nullopt : std::optional(Plan::single()),
                .ranks = std::max(1, ranks)};
    // What it stands for is found once there is a graph.
    if (text == "auto") return {.spec = text, .fixed = std::nullopt, .ranks = std::max(1, ranks)};
    if (is_json(text)) return fixed_choice(parse(text, "the plan"), ranks, "the plan");
    if (is_file(text)) return fixed_choice(parse(read_file(text), text), ranks, fmt::format("the plan in {}", text));
    // Without layers only the words are looked at.
    return {.spec = text, .fixed = std::nullopt, .ranks = ranks_of(plan_from_spec(text, ranks, Graph{}).plan)};
}

std::string text_of(const PlanChoice& choice) {
    if (!choice.fixed) return choice.spec;
    return *choice.fixed == Plan::single() ? "" : to_json(*choice.fixed).dump();
}

UniformPlan plan_for(const PlanChoice& choice, const Graph& graph) {
    require(choice.spec != "auto",
            "plan auto is for train and simulate; `convoy plan MODEL --output plan.json` makes a plan for other commands");
    if (!choice.fixed) return plan_from_spec(choice.spec, choice.ranks, graph);
    std::set<std::string> layers;
    for (const Node& node : graph.nodes()) layers.insert(node.layer);
    const std::vector<std::string> known(layers.begin(), layers.end());
    for (const LayerPlan& entry : choice.fixed->layers) {
        const bool used = std::any_of(known.begin(), known.end(), [&](const std::string& layer) { return matches(entry.layers, layer); });
        require(used, "the plan has an entry for \"{}\", but the model has no such layer{}", entry.layers,
                did_you_mean(entry.layers, known));
    }
    return {*choice.fixed, {}};
}

std::string text_of(const std::vector<Unfollowed>& unfollowed) {
    std::vector<std::pair<std::string, std::string>> lines;  // what they share; the layers
    for (const Unfollowed& u : unfollowed) {
        std::string why = fmt::format("{}, {}", u.axis, u.reason);
        const auto same = std::find_if(lines.begin(), lines.end(), [&](const auto& line) { return line.first == why; });
        if (same == lines.end())
            lines.emplace_back(std::move(why), u.layer);
        else
            same->second += ", " + u.layer;
    }
    std::string text;
    for (const auto& [why, layers] : lines) text += fmt::format("  along {}: {}\n", why, layers);
    return text;
}

}  // namespace convoy
