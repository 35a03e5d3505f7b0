// A user's proof that a plan computes what one process computes.
#include <algorithm>

#include "app/command.h"
#include "app/machine.h"
#include "app/output.h"
#include "app/own_processors.h"
#include "app/parser.h"
#include "app/ranks.h"
#include "app/synthetic.h"
#include "app/table.h"
#include "app/tuning.h"
#include "base/json.h"
#include "exec/plan_check.h"
#include "model/autodiff.h"
#include "train/config.h"

namespace convoy {

namespace {

constexpr size_t kMostShown = 10;

struct CheckArguments {
    CommonOptions common;
    RankOptions ranks;
    TuningArguments tuning;
    std::string model, optimizer = "momentum";
    int steps = 3, micro_batches = 1;
};

Json to_json(const Deviation& d) {
    return {{"layer", d.layer}, {"what", d.what}, {"error", d.error}, {"limit", d.limit}, {"rank", d.rank}, {"step", d.step}};
}

std::string text_of_error(double error) { return error >= 1e300 ? "not a number" : error == 0 ? "0" : fmt::format("{:.2e}", error); }

void print(const Output& output, const PlanCheck& check) {
    Table table({{"layer"},
                 {"error", Table::Align::Right},
                 {"allowed", Table::Align::Right},
                 {"step", Table::Align::Right},
                 {"rank", Table::Align::Right},
                 {"where it is worst"}});
    for (size_t i = 0; i < std::min(kMostShown, check.layers.size()); ++i) {
        const Deviation& d = check.layers[i];
        table.add(
            {d.layer, text_of_error(d.error), fmt::format("{:.0e}", d.limit), std::to_string(d.step), std::to_string(d.rank), d.what});
    }
    output.write("\n" + table.text());
    if (check.layers.size() > kMostShown) output.line("({} more layers, none worse)", check.layers.size() - kMostShown);
    const auto failed = std::count_if(check.layers.begin(), check.layers.end(), [](const Deviation& d) { return !(d.severity() <= 1); });
    output.line("\n{}: {} tensors compared with those of one process, {}", check.pass() ? "PASS" : "FAIL", grouped(check.compared),
                check.pass() ? fmt::format("the largest error is {}", text_of_error(check.max_error()))
                             : fmt::format("{} of {} layers are wrong", failed, check.layers.size()));
}

int check_command(const CheckArguments& arguments, Ranks& ranks) {
    const Output output(arguments.common.json, !ranks.leads());
    const ModelSource entry = known_model(arguments.model);
    const PlanChoice choice = choose_plan(arguments.ranks, ranks);
    ModelOptions shape = model_options(arguments.common, Mode::Training, std::max(4, choice.ranks));
    require(shape.batch % arguments.micro_batches == 0, "{} micro-batches do not divide a batch of {}", arguments.micro_batches,
            shape.batch);
    const int64_t batch = shape.batch;
    shape.batch /= arguments.micro_batches;
    const Model model = entry.make(shape);
    const Optimizer optimizer{.rule = {.rule = rule_named(arguments.optimizer), .weight_decay = 1e-4}};
    const Graph graph = training_graph(model, optimizer, {.micro_batches = arguments.micro_batches});
    const UniformPlan plan = plan_for(choice, graph);

    CommonOptions computing = arguments.common;
    if (computing.backend.empty() && computing.dtype == "f64") computing.backend = "reference";
    PlanCheckOptions options{.session = session_options(computing), .steps = arguments.steps, .feeds = [&](int step) {
                                 return synthetic_feeds(graph, {.classes = model.classes, .seed = arguments.common.seed, .step = step});
                             }};
    options.session.threads = threads_for(arguments.common, ranks, choice.ranks);
    options.session.plan = plan.plan;
    options.session.limits = limits_of(arguments.tuning);
    options.one_process_threads = std::max(options.session.threads, usable_cores());
    options.available_bytes = machine_info().available;
    const std::string name = choice.fixed ? arguments.ranks.plan : choice.spec;
    output.line("{}, batch {}, {} steps of {}: plan {} on {} rank{}, {} on backend {}, against one process in f64", entry.name, batch,
                arguments.steps, arguments.optimizer, name.empty() ? "none" : name, choice.ranks, choice.ranks == 1 ? "" : "s",
                arguments.common.dtype, options.session.backend);
    if (!plan.unfollowed.empty()) output.write("layers that could not follow the plan:\n" + text_of(plan.unfollowed));

    PlanCheck check;
    ranks.run(choice.ranks, [&](Link* link) {
        PlanCheckOptions mine = options;
        mine.session.link = link;
        // As training does, but nobody keeps to processors of its own, because the first rank computes what one process would.
        find_filled_machine(link, mine.session.threads);
        if (arguments.tuning.tune) mine.session.costs = tune_here(graph, mine.session).costs;
        PlanCheck result = check_plan(graph, mine);
        if (!link || link->rank() == 0 || !ranks.leads()) check = std::move(result);
    });
    print(output, check);
    Json layers = Json::array();
    for (const Deviation& d : check.layers) layers.push_back(to_json(d));
    output.result({{"pass", check.pass()},
                   {"max_error", check.max_error()},
                   {"worst", check.layers.empty() ? Json(nullptr) : layers[0]},
                   {"compared", check.compared},
                   {"model", entry.name},
                   {"batch", batch},
                   {"steps", arguments.steps},
                   {"ranks", choice.ranks},
                   {"plan", text_of(choice)},
                   {"dtype", arguments.common.dtype},
                   {"backend", options.session.backend},
                   {"layers", layers}});
    return check.pass() ? 0 : 1;
}

}  // namespace

Command add_check(Parser& program) {
    Parser* const parser = program.add_subcommand("check", "");
    describe(
        *parser,
        "Check that a plan computes what one process computes.\n"
        "Some steps on made-up data, by all ranks and by one process: every activation, gradient, parameter and optimizer state is "
        "compared,\n"
        "in float64 within 1e-7. With --dtype f32 the real kernels are checked, each instruction on the inputs that the float64 run had,\n"
        "within 1e-4. Ends with 1 when the plan computes something else.",
        "  convoy check lenet5 --plan sample:2,height:2\n"
        "  convoy check resnet18_cifar --plan channel:2@x --input 3x16x16 --batch 6\n"
        "  convoy check unet3d --plan my-plan.json --input 1x16x16x16 --batch 2 --dtype f32\n"
        "  mpirun -n 4 convoy check alexnet --plan hybrid-fc --input 3x64x64 --json -");
    const auto arguments = std::make_shared<CheckArguments>();
    add_model(*parser, arguments->model)->required();
    add_rank_options(*parser, arguments->ranks);
    add_tuning(*parser, arguments->tuning);
    allow_whole(parser
                    ->add_option("--steps", arguments->steps,
                                 "Steps with their updates (default: 3); where updates run on into the next step, the last two follow each "
                                 "other, as in training, and are looked at behind the second")
                    ->option_text("K"),
                1);
    add_optimizer(*parser, arguments->optimizer);
    add_micro_batches(*parser, arguments->micro_batches);
    add_common(*parser, arguments->common, "4, or one for each rank");
    arguments->common.dtype = "f64";
    parser->get_option("--dtype")->description("What to compute in: f64, f32, tf32 or bf16 (default: f64)");
    return {parser,
            [arguments] { return run_with_ranks(arguments->ranks, [&](Ranks& ranks) { return check_command(*arguments, ranks); }); }};
}

}  // namespace convoy
