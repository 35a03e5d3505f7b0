#include "app/search_report.h"

#include <algorithm>
#include <cmath>

#include "app/table.h"
#include "base/json.h"
#include "plan/sizes.h"

namespace convoy {

namespace {

std::string ms(double seconds) {
    const double value = 1e3 * seconds;
    return value >= 1000 ? grouped(std::llround(value)) : fmt::format("{:.3g}", value);
}
std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

Json to_json(const ScoredPlan& plan) {
    Json json{{"name", plan.name}, {"estimate_ms", 1e3 * plan.estimate}, {"fits", plan.fits}};
    if (plan.simulated)
        json.update({{"step_ms", 1e3 * plan.seconds},
                     {"compute_ms", 1e3 * plan.compute_seconds},
                     {"exposed_ms", 1e3 * plan.waiting_seconds},
                     {"memory", plan.memory},
                     {"activation_bytes_sent", plan.activation_sent},
                     {"gradient_bytes_sent", plan.gradient_sent}});
    if (plan.joules > 0) json["energy_j"] = plan.joules;
    if (!plan.failure.empty()) json["failure"] = plan.failure;
    return json;
}

// What waits most: computation, traffic that is not hidden, or the memory that ruled a faster plan out.
std::string limit_of(const SearchResult& result) {
    const ScoredPlan& best = result.best;
    const auto faster = std::any_of(result.plans.begin(), result.plans.end(),
                                    [&](const ScoredPlan& p) { return p.simulated && !p.fits && p.seconds < 0.98 * best.seconds; });
    if (faster) return "memory";
    if (best.waiting_seconds < 0.5 * best.seconds) return "compute";
    double latency = 0, transfer = 0;
    for (const LayerChoice& layer : result.layers) {
        latency += layer.cost.latency + layer.cost.gradient_latency;
        transfer += layer.cost.transfer + layer.cost.gradient - layer.cost.gradient_latency;
    }
    return latency > transfer ? "latency" : "bandwidth";
}

std::string sign(double seconds) { return fmt::format("{}{}", seconds < 0 ? "-" : "+", ms(std::abs(seconds))); }

}  // namespace

std::string summary(const SearchResult& result, const SearchCase& what) {
    const ScoredPlan& best = result.best;
    std::string text = fmt::format("plan       {} on {} rank{}\n", best.name, what.ranks, what.ranks == 1 ? "" : "s");
    text += fmt::format("step       {} ms predicted, {} samples/s; {} of it waiting for traffic\n", ms(best.seconds),
                        short_number(static_cast<double>(what.batch) / best.seconds), percent(best.waiting_seconds / best.seconds));
    if (result.data && best.name != "data") {
        if (result.data->fits)
            text += fmt::format("           {} ms by samples alone (data parallelism): {:.2f}x\n", ms(result.data->seconds),
                                result.data->seconds / best.seconds);
        else
            text += fmt::format("           data parallelism cannot be done: {}\n", result.data->failure);
    }
    text += fmt::format("memory     {} of {} on the rank that uses most\n", size_text(best.memory),
                        result.memory_limit > 0 ? size_text(result.memory_limit) : "an unknown amount");
    text += fmt::format("limited by {}\n", limit_of(result));
    if (best.name == kUnsplit)
        text += "           no layer gains from being split: every rank computes the whole step, and one rank alone is as fast\n";
    return text;
}

void print(const Output& output, const SearchResult& result, size_t most) {
    Table plans(
        {{"plan"}, {"step ms", Table::Align::Right}, {"waiting ms", Table::Align::Right}, {"memory", Table::Align::Right}, {"note"}});
    for (const ScoredPlan& plan : result.plans)
        plans.add({plan.name, plan.simulated ? ms(plan.seconds) : "", plan.simulated ? ms(plan.waiting_seconds) : "",
                   plan.simulated ? size_text(plan.memory) : "", plan.failure});
    output.line("Plans that were simulated, the best of {} shape{} of grids ({}) among them:\n", result.grids, result.grids == 1 ? "" : "s",
                result.exact ? "each searched exactly" : "searched by dynamic programming that keeps the best few thousand ways");
    output.write(plans.text());
    if (result.layers.empty()) return;
    Table layers({{"layer"},
                  {"split by"},
                  {"ms", Table::Align::Right},
                  {"by samples ms", Table::Align::Right},
                  {"limited by"},
                  {"next best"},
                  {"ms more", Table::Align::Right}});
    size_t count = 0;
    for (size_t i = 0; i < result.layers.size();) {
        // Layers in a row with the same split and reasons are one line.
        const LayerChoice& first = result.layers[i];
        size_t end = i + 1;
        double seconds = first.cost.waits() + first.cost.gradient, data = first.data_seconds, extra = first.next_extra;
        for (; end < result.layers.size(); ++end) {
            const LayerChoice& next = result.layers[end];
            if (next.choice != first.choice || next.limit != first.limit || next.next != first.next) break;
            seconds += next.cost.waits() + next.cost.gradient;
            data += next.data_seconds;
            extra = std::min(extra, next.next_extra);
        }
        const std::string name =
            end - i == 1 ? first.layer : fmt::format("{} .. {} ({})", first.layer, result.layers[end - 1].layer, end - i);
        if (most == 0 || count < most)
            layers.add({name, first.choice, ms(seconds), data > 0 ? ms(data) : "", first.limit, first.next,
                        first.next.empty() ? "" : sign(extra)});
        ++count;
        i = end;
    }
    output.line(
        "\nLayers with weights. Their times are the search's estimate, with traffic in full; \"ms more\" is what the next best choice for "
        "a layer");
    output.line("would add to the step (the least of a row), all others as they are{}:\n",
                most > 0 && count > most ? fmt::format("; the first {} of {} rows, --all shows them all", most, count) : "");
    output.write(layers.text());
}

void print(const Output& output, const std::vector<WhatIf>& gains) {
    Table table({{"layer"},
                 {"ms now", Table::Align::Right},
                 {"groups", Table::Align::Right},
                 {"ms grouped", Table::Align::Right},
                 {"filters", Table::Align::Right},
                 {"ms with them", Table::Align::Right},
                 {"time per operation"}});
    for (const WhatIf& w : gains)
        table.add({w.layer, ms(w.seconds), w.groups > 1 ? fmt::format("{}", w.groups) : "-", w.groups > 1 ? ms(w.grouped_seconds) : "-",
                   grouped(w.filters), ms(w.wider_seconds),
                   fmt::format("{}{:.0f} %", w.wider_gain() > 0 ? "-" : "+", 100 * std::abs(w.wider_gain()))});
    output.line(
        "\nWhat if: convolutions that would gain most from groups, or from twice as many filters (another network, not another plan):\n");
    output.write(table.text());
}

void print(const Output& output, const FreeResult& result, Objective objective) {
    Table table({{"ranks", Table::Align::Right},
                 {"batch", Table::Align::Right},
                 {"micro-batches", Table::Align::Right},
                 {"plan"},
                 {"step ms", Table::Align::Right},
                 {"samples/s", Table::Align::Right},
                 {"memory", Table::Align::Right},
                 {fmt::format("by {}", name_of(objective))}});
    for (size_t i = 0; i < result.cases.size(); ++i) {
        const CaseResult& c = result.cases[i];
        const ScoredPlan& best = c.search.best;
        table.add({grouped(c.what.ranks), grouped(c.what.batch), fmt::format("{}", c.what.micro_batches),
                   c.possible() ? best.name : c.failure, c.possible() ? ms(best.seconds) : "",
                   c.possible() ? short_number(static_cast<double>(c.what.batch) / best.seconds) : "",
                   c.possible() ? size_text(best.memory) : "",
                   i == result.best ? "best"
                   : c.possible()   ? fmt::format("{:.2f}x", c.score / result.cases[result.best].score)
                                    : ""});
    }
    output.write(table.text());
    output.line("");
}

Json to_json(const SearchResult& result, const SearchCase& what) {
    Json plans = Json::array(), layers = Json::array();
    for (const ScoredPlan& plan : result.plans) plans.push_back(to_json(plan));
    for (const LayerChoice& layer : result.layers)
        layers.push_back({{"layer", layer.layer},
                          {"choice", layer.choice},
                          {"limit", layer.limit},
                          {"compute_ms", 1e3 * layer.cost.compute},
                          {"activation_traffic_ms", 1e3 * (layer.cost.latency + layer.cost.transfer)},
                          {"gradient_traffic_ms", 1e3 * layer.cost.gradient},
                          {"data_parallel_ms", 1e3 * layer.data_seconds},
                          {"next_best", layer.next},
                          {"next_best_adds_ms", 1e3 * layer.next_extra}});
    Json json = to_json(result.best);
    json.update({{"ranks", what.ranks},
                 {"batch", what.batch},
                 {"micro_batches", what.micro_batches},
                 {"samples_per_s", static_cast<double>(what.batch) / result.best.seconds},
                 {"data_parallel_step_ms", result.data && result.data->fits ? Json(1e3 * result.data->seconds) : Json(nullptr)},
                 {"memory_limit", result.memory_limit},
                 {"limit", limit_of(result)},
                 {"grids_searched", result.grids},
                 {"exact", result.exact},
                 {"plan", convoy::to_json(result.best.plan)},
                 {"plans", plans},
                 {"layers", layers}});
    return json;
}

Json to_json(const std::vector<WhatIf>& gains) {
    Json list = Json::array();
    for (const WhatIf& w : gains)
        list.push_back({{"layer", w.layer},
                        {"ms", 1e3 * w.seconds},
                        {"groups", w.groups},
                        {"grouped_ms", 1e3 * w.grouped_seconds},
                        {"filters", w.filters},
                        {"wider_ms", 1e3 * w.wider_seconds},
                        {"wider_gain_per_operation", w.wider_gain()}});
    return list;
}

}  // namespace convoy
