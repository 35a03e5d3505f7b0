// Chooses the fastest kernels and layouts for a model's step, by measuring, and shows what was chosen and what it gains.

#include "app/command.h"
#include "app/output.h"
#include "app/own_processors.h"
#include "app/parser.h"
#include "app/ranks.h"
#include "app/table.h"
#include "app/tuning.h"
#include "base/json.h"
#include "model/autodiff.h"

namespace convoy {

namespace {

struct TuneArguments {
    CommonOptions common;
    RankOptions ranks;
    TuningArguments tuning;
    std::string model;
    bool all = false;
};

std::string milliseconds(double seconds) { return fmt::format("{:.3f}", seconds * 1e3); }

void print(const Output& output, const Tuning& tuning, bool all) {
    Table table({{"layer"},
                 {"what"},
                 {"times", Table::Align::Right},
                 {"untuned"},
                 {"ms", Table::Align::Right},
                 {"tuned"},
                 {"ms", Table::Align::Right},
                 {"gain", Table::Align::Right}});
    size_t same = 0, shown = 0;
    for (const TunedChoice& c : tuning.choices) {
        if (c.untuned == c.tuned && c.untuned_seconds == c.tuned_seconds && !all) {
            ++same;
            continue;
        }
        ++shown;
        table.add({c.layer, c.what, std::to_string(c.count), c.untuned, milliseconds(c.untuned_seconds), c.tuned,
                   milliseconds(c.tuned_seconds), fmt::format("{:.0f} %", 100 * (1 - c.tuned_seconds / c.untuned_seconds))});
    }
    if (shown > 0) output.write("\n" + table.text() + "\n");
    if (same > 0) output.line("{} more problems keep what they have; --all lists them too", same);
    output.line("copies between layouts: {} ms untuned, {} ms tuned", milliseconds(tuning.untuned_copies),
                milliseconds(tuning.tuned_copies));
    output.line("{}", summary_of(tuning));
}

Json to_json(const Tuning& tuning) {
    Json choices = Json::array();
    for (const TunedChoice& c : tuning.choices)
        choices.push_back({{"layer", c.layer},
                           {"what", c.what},
                           {"problem", c.problem},
                           {"count", c.count},
                           {"untuned", c.untuned},
                           {"untuned_ms", c.untuned_seconds * 1e3},
                           {"tuned", c.tuned},
                           {"tuned_ms", c.tuned_seconds * 1e3}});
    return {{"uses_tuned", tuning.costs != nullptr},
            {"untuned_step_ms", tuning.verdict ? Json(tuning.verdict->untuned_seconds * 1e3) : Json(nullptr)},
            {"tuned_step_ms", tuning.verdict ? Json(tuning.verdict->tuned_seconds * 1e3) : Json(nullptr)},
            {"measured", tuning.measured},
            {"known", tuning.known},
            {"seconds", tuning.seconds},
            {"untuned_copies_ms", tuning.untuned_copies * 1e3},
            {"tuned_copies_ms", tuning.tuned_copies * 1e3},
            {"choices", std::move(choices)}};
}

int tune_command(const TuneArguments& arguments, Ranks& ranks) {
    const Output output(arguments.common.json, !ranks.leads());
    const ModelSource entry = known_model(arguments.model);
    const PlanChoice choice = choose_plan(arguments.ranks, ranks);
    const Model model = entry.make(model_options(arguments.common, Mode::Training, 32));
    const Graph graph = training_graph(model, {.rule = {.rule = Rule::Momentum}});
    SessionOptions session = session_options(arguments.common);
    session.threads = threads_for(arguments.common, ranks, choice.ranks);
    session.plan = plan_for(choice, graph).plan;
    session.limits = limits_of(arguments.tuning);
    output.line("{} batch {}, {}{} threads, backend {}, {}, {} numerics", entry.name, model.graph.shape(model.graph.input("input"))[0],
                choice.ranks > 1 ? fmt::format("{} ranks ({}) of ", choice.ranks, text_of(choice)) : "", session.threads, session.backend,
                name_of(session.dtype), arguments.tuning.numerics);
    Tuning tuning;
    ranks.run(choice.ranks, [&](Link* link) {
        const OwnProcessors own(link, session.threads);
        SessionOptions mine = session;
        mine.link = link;
        Tuning result = tune_here(graph, mine);
        if (!link || link->rank() == 0 || !ranks.leads()) tuning = std::move(result);
    });
    print(output, tuning, arguments.all);
    Json document = to_json(tuning);
    document["model"] = entry.name;
    document["threads"] = session.threads;
    document["ranks"] = choice.ranks;
    document["plan"] = text_of(choice);
    output.result(document);
    return 0;
}

}  // namespace

Command add_tune(Parser& program) {
    Parser* const parser = program.add_subcommand("tune", "");
    describe(*parser,
             "Choose the fastest kernels and layouts for a model by measuring.\n"
             "Every way to compute each part of the training step is timed, on the shapes that the plan gives to the ranks; algorithms and "
             "layouts\n"
             "are then chosen together for the whole step, and the result is run against the untuned step. What was measured is kept in "
             "the user's\n"
             "cache, for `train --tune` and `bench step --tune`; a second time takes no measuring.",
             "  convoy tune resnet50 --batch 8 --threads 2\n"
             "  convoy tune vgg16 --batch 4 --numerics exact --workspace-limit 1000000\n"
             "  convoy tune resnet18_cifar --batch 64 --plan sample:2 --threads 1");
    const auto arguments = std::make_shared<TuneArguments>();
    add_model(*parser, arguments->model)->required();
    add_rank_options(*parser, arguments->ranks);
    add_limits(*parser, arguments->tuning);
    parser->add_flag("--all", arguments->all, "List the problems too whose choice stays as it was");
    add_common(*parser, arguments->common, "32");
    return {parser,
            [arguments] { return run_with_ranks(arguments->ranks, [&](Ranks& ranks) { return tune_command(*arguments, ranks); }); }};
}

}  // namespace convoy
