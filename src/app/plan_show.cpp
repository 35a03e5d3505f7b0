// Plans on paper: `plan show` says what a plan makes of a model.
#include <algorithm>

#include "app/command.h"
#include "app/output.h"
#include "app/parser.h"
#include "app/ranks.h"
#include "app/table.h"
#include "base/json.h"
#include "model/autodiff.h"
#include "program/plan_report.h"
#include "train/config.h"
#include "train/plan_choice.h"

namespace convoy {

namespace {

struct PlanArguments {
    CommonOptions common;
    RankOptions ranks;
    std::string model, optimizer = "momentum";
};

std::string bytes(int64_t count) { return count == 0 ? "" : short_bytes(static_cast<double>(count)); }

// "2.1 MB", or "1.9 MB to 2.1 MB" where ranks differ.
std::string range(const PlanReport& report, int64_t RankSums::*field) {
    int64_t low = report.ranks[0].*field, high = low;
    for (const auto& rank : report.ranks) {
        low = std::min(low, rank.*field);
        high = std::max(high, rank.*field);
    }
    const auto text = [](int64_t count) { return short_bytes(static_cast<double>(count)); };
    return text(low) == text(high) ? text(high) : fmt::format("{} to {}", text(low), text(high));
}

void print(const Output& output, const PlanReport& report) {
    Table table({{"layer"},
                 {"kind"},
                 {"input"},
                 {"weight"},
                 {"output"},
                 {"local output"},
                 {"activations", Table::Align::Right},
                 {"gradients", Table::Align::Right}});
    bool uneven = false;
    for (const LayerReport& layer : report.layers) {
        std::string local = layer.local.empty() ? "" : to_string(layer.local);
        if (layer.smallest != layer.local) local += fmt::format(" > {}", to_string(layer.smallest));
        uneven = uneven || layer.smallest != layer.local;
        table.add({layer.layer, layer.kind, layer.input, layer.weight, layer.output, local, bytes(layer.activation_bytes),
                   bytes(layer.gradient_bytes)});
    }
    output.write(table.text());
    output.line("\nLocal outputs are those of the first rank{}; the last two columns are what the rank that sends most sends in a step.",
                uneven ? " (> of the rank that has least)" : "");
    const auto one = [&](int64_t count) { return short_bytes(static_cast<double>(count)); };
    output.line("sent by a rank in a step  {} of activations, {} of gradients", range(report, &RankSums::activation_bytes),
                range(report, &RankSums::gradient_bytes));
    output.line("memory of a rank          {} for a step, {} of state (one process: {} and {})", range(report, &RankSums::arena_bytes),
                range(report, &RankSums::state_bytes), one(report.one->arena_bytes), one(report.one->state_bytes));
}

int show(const PlanArguments& arguments) {
    const Output output(arguments.common.json);
    const ModelSource entry = known_model(arguments.model);
    const PlanChoice choice = plan_choice(arguments.ranks.plan, arguments.ranks.ranks);
    const ModelOptions shape = model_options(arguments.common, Mode::Training, std::max(4, choice.ranks));
    const Graph graph = training_graph(entry.make(shape), {.rule = {.rule = rule_named(arguments.optimizer)}});
    const UniformPlan uniform = plan_for(choice, graph);
    const SessionOptions session = session_options(arguments.common);
    const auto backend = make_backend(session.backend, {.threads = session.threads, .device = session.device});
    const PlanReport report = report_plan(graph, uniform.plan, backend->target(), session.dtype);

    const std::string name = choice.fixed ? arguments.ranks.plan : choice.spec;
    output.line("{}, batch {}, under {} on {} rank{}, {} for backend {}", entry.name, shape.batch,
                name.empty() ? "no plan" : fmt::format("plan {}", name), choice.ranks, choice.ranks == 1 ? "" : "s", name_of(session.dtype),
                session.backend);
    for (const Grid& grid : report.grids) output.line("grid {}", words_of(grid));
    output.line("");
    print(output, report);
    if (!uniform.unfollowed.empty()) output.write("\nLayers that could not follow the plan:\n" + text_of(uniform.unfollowed));

    output.result(placement_document(
        {.model = entry.name, .batch = shape.batch, .spec = choice.spec, .backend = session.backend, .dtype = session.dtype}, uniform,
        report));
    return 0;
}

}  // namespace

Command add_plan_show(Parser& plan) {
    Parser* const parser = plan.add_subcommand("show", "");
    describe(
        *parser,
        "Show what a plan makes of a model, without running it.\n"
        "For each layer where its input, weights and output lie, the shape that a rank computes and the bytes that it sends in a step; for "
        "the\n"
        "whole the memory of each rank, and the layers that could not follow the plan, with the reason. The JSON document holds the plan\n"
        "itself under \"plan\": saved to a file of its own it can be edited and given to --plan.",
        "  convoy plan show resnet18 --plan sample:2,height:2 --batch 8\n"
        "  convoy plan show alexnet --plan hybrid-fc --ranks 4 --batch 128\n"
        "  convoy plan show unet3d --plan depth:2,height:2 --input 1x64x64x64 --batch 1 --json plan.json");
    const auto arguments = std::make_shared<PlanArguments>();
    add_model(*parser, arguments->model)->required();
    add_plan_options(*parser, arguments->ranks);
    add_optimizer(*parser, arguments->optimizer);
    add_common(*parser, arguments->common, "4, or one for each rank");
    return {parser, [arguments] { return show(*arguments); }};
}

}  // namespace convoy
