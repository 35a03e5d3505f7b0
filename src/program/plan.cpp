#include "program/plan.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/parse_json.h"

namespace convoy {

namespace {

Json to_json(const Placement& placement) {
    Json json = Json::array();
    for (const AxisPlacement& p : placement) {
        if (p.kind == AxisPlacement::Kind::Split)
            json.push_back({{"split", p.dim}});
        else
            json.push_back(p.kind == AxisPlacement::Kind::Partial ? "partial" : "replicate");
    }
    return json;
}

std::string text_of(const Json& json) {
    return json.is_structured() ? json.type_name() : json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

int whole_number(const Json& json, int least, const char* what) {
    require(json.is_number_integer() && json >= least && json <= std::numeric_limits<int>::max(),
            "{} is {}, expected a whole number of at least {}", what, text_of(json), least);
    return json.get<int>();
}

Placement placement_from_json(const Json& json, size_t axes) {
    Placement placement;
    for (const Json& p : json) {
        if (p.is_object())
            placement.push_back({AxisPlacement::Kind::Split, whole_number(p.at("split"), 0, "the dim of a split")});
        else if (p == "replicate" || p == "partial")
            placement.push_back({p == "partial" ? AxisPlacement::Kind::Partial : AxisPlacement::Kind::Replicate, 0});
        else
            fail("{} is no placement; expected \"replicate\", \"partial\" or {{\"split\": dim}}", text_of(p));
    }
    require(placement.empty() || placement.size() == axes, "a placement has {} entries, but its grid has {} axes", placement.size(), axes);
    return placement;
}

}  // namespace

Plan Plan::single() { return {{Grid::single()}, {LayerPlan{}}}; }

bool matches(const std::string& pattern, const std::string& name) {
    size_t p = 0, n = 0, star = std::string::npos, resume = 0;
    while (n < name.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            resume = n;
        } else if (p < pattern.size() && pattern[p] == name[n]) {
            ++p;
            ++n;
        } else if (star != std::string::npos) {
            p = star + 1;
            n = ++resume;
        } else {
            return false;
        }
    }
    return std::all_of(pattern.begin() + static_cast<std::ptrdiff_t>(p), pattern.end(), [](char c) { return c == '*'; });
}

const LayerPlan& layer_plan(const Plan& plan, const std::string& layer) {
    for (const LayerPlan& entry : plan.layers)
        if (matches(entry.layers, layer)) return entry;
    fail("the plan has no entry for layer \"{}\"; end the list with one for \"*\"", layer);
}

Json to_json(const Plan& plan) {
    Json grids = Json::array(), layers = Json::array();
    for (const Grid& grid : plan.grids) grids.push_back(to_json(grid));
    for (const LayerPlan& entry : plan.layers) {
        layers.push_back({{"layers", entry.layers},
                          {"grid", entry.grid},
                          {"input", to_json(entry.input)},
                          {"weight", to_json(entry.weight)},
                          {"output", to_json(entry.output)},
                          {"batch_norm", entry.global_norm ? "global" : "local"}});
        if (entry.state_axis >= 0) layers.back()["state_axis"] = entry.state_axis;
    }
    return {{"grids", grids}, {"layers", layers}};
}

Plan plan_from_json(const Json& json) {
    Plan plan;
    try {
        for (const Json& grid : json.at("grids")) plan.grids.push_back(grid_from_json(grid));
        for (const Json& entry : json.at("layers")) {
            LayerPlan layer{.layers = entry.at("layers"), .grid = whole_number(entry.at("grid"), 0, "the grid of layers")};
            require(layer.grid >= 0 && layer.grid < static_cast<int>(plan.grids.size()), "layers \"{}\" name grid {}, but there are {}",
                    layer.layers, layer.grid, plan.grids.size());
            const size_t axes = plan.grids[static_cast<size_t>(layer.grid)].axes.size();
            layer.input = placement_from_json(entry.value("input", Json::array()), axes);
            layer.weight = placement_from_json(entry.value("weight", Json::array()), axes);
            layer.output = placement_from_json(entry.value("output", Json::array()), axes);
            const std::string norm = entry.value("batch_norm", "global");
            require(norm == "global" || norm == "local", "batch_norm is \"{}\", expected \"global\" or \"local\"", norm);
            layer.global_norm = norm == "global";
            layer.state_axis = entry.contains("state_axis") ? whole_number(entry["state_axis"], -1, "state_axis") : -1;
            require(layer.state_axis < static_cast<int>(axes), "layers \"{}\" shard their state along axis {}, but their grid has {}",
                    layer.layers, layer.state_axis, axes);
            plan.layers.push_back(layer);
        }
    } catch (const Json::exception& e) {
        fail("the plan is not as expected (\"grids\" and \"layers\", each entry with \"layers\" and \"grid\"): {}", fault_of(e));
    }
    require(!plan.grids.empty(), "the plan has no grid");
    return plan;
}

}  // namespace convoy
