// `plan` finds the fastest way to share the work of a model between ranks of a machine, explains it, and writes it as a file that --plan takes.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "app/auto_plan.h"
#include "app/command.h"
#include "app/options.h"
#include "app/output.h"
#include "app/parser.h"
#include "app/search_report.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "model/autodiff.h"
#include "train/config.h"

namespace convoy {

namespace {

struct FindArguments {
    CommonOptions common;
    MachineOptions machine;
    std::string model, optimizer = "momentum", ranks, batches, micro_batches = "1", memory, objective = "time", batch_norm = "global",
                       output;
    bool all = false, what_if = false;
};

// "8" or "1,2,4,8".
template <class Number>
std::vector<Number> numbers(const std::string& text, const char* option) {
    std::vector<Number> list;
    size_t begin = 0;
    while (begin <= text.size()) {
        const size_t end = std::min(text.find(',', begin), text.size());
        Number value = 0;
        const auto [at, error] = std::from_chars(text.data() + begin, text.data() + end, value);
        if (error != std::errc() || at != text.data() + end || value < 1)
            throw UsageError(fmt::format("{}: expected a whole number of at least 1, or several as in 1,2,4; found \"{}\"", option, text));
        list.push_back(value);
        begin = end + 1;
    }
    return list;
}

// "16GiB", "512MiB", "16GB", "1000000".
int64_t bytes_named(const std::string& text) {
    if (text.empty()) return 0;
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    const std::string unit = end;
    const std::vector<std::pair<std::string, double>> units{{"", 1},         {"B", 1},    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30},
                                                            {"TiB", 0x1p40}, {"KB", 1e3}, {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12}};
    const auto known = std::find_if(units.begin(), units.end(), [&](const auto& u) { return u.first == unit; });
    if (end == text.c_str() || known == units.end() || !std::isfinite(value) || value * known->second < 1 || value * known->second > 0x1p60)
        throw UsageError(fmt::format("--memory: expected a size such as 16GiB, found \"{}\"", text));
    return static_cast<int64_t>(value * known->second);
}

Objective objective_named(const std::string& name) {
    for (const Objective o : {Objective::Time, Objective::Samples, Objective::Cost, Objective::Energy})
        if (name_of(o) == name) return o;
    throw UsageError(fmt::format("--objective: there is no \"{}\"", name));
}

// Powers of two up to what the machine seats, or to a thousand.
std::vector<int> free_counts(const Machine& machine) {
    const int64_t most = seats(machine) < 0 ? 1024 : seats(machine);
    std::vector<int> counts;
    for (int64_t n = 1; n <= most; n *= 2) counts.push_back(static_cast<int>(n));
    return counts;
}

void warn_of_waste(const CaseResult& found, const Graph& graph, const Machine& machine) {
    const double share = useful_share(search_space(graph), found.search.best.plan);
    if (share > 0.5) return;
    const auto counts = nearby_counts(found.what.ranks, found.what.batch, seats(machine));
    warn(
        "this plan gives the layers only {:.0f} % of {} ranks to work with, the others repeat what their neighbours do: {} has awkward "
        "factors for "
        "batch {}; try --ranks {}",
        100 * share, found.what.ranks, found.what.ranks, found.what.batch, fmt::join(counts, " or "));
}

FreeSearch request_of(const FindArguments& arguments, const Machine& machine) {
    FreeSearch request;
    request.ranks = arguments.ranks.empty() ? free_counts(machine) : numbers<int>(arguments.ranks, "--ranks");
    const int most = *std::max_element(request.ranks.begin(), request.ranks.end());
    request.batches = arguments.batches.empty() ? std::vector<int64_t>{std::max(4, most)} : numbers<int64_t>(arguments.batches, "--batch");
    request.micro_batches = numbers<int>(arguments.micro_batches, "--micro-batches");
    request.options = {.memory = bytes_named(arguments.memory),
                       .dtype = dtype_named(arguments.common.dtype),
                       .threads = arguments.common.threads,
                       .objective = objective_named(arguments.objective),
                       .global_norm = arguments.batch_norm == "global"};
    return request;
}

Json document_of(const std::vector<CaseResult>& cases) {
    Json list = Json::array();
    for (const CaseResult& c : cases)
        list.push_back(
            c.possible()
                ? to_json(c.search, c.what)
                : Json{{"ranks", c.what.ranks}, {"batch", c.what.batch}, {"micro_batches", c.what.micro_batches}, {"failure", c.failure}});
    return list;
}

int find(const FindArguments& arguments) {
    const Output output(arguments.common.json);
    if (arguments.model.empty()) throw UsageError("plan: say which MODEL to plan for; `convoy show` lists them");
    const ModelSource entry = known_model(arguments.model);
    expect_files({{"--output", arguments.output}, {"--json", arguments.common.json}}, {{"--machine", arguments.machine.machine}});
    const PlanningMachine on = planning_machine(arguments.machine, arguments.common.threads);
    const FreeSearch request = request_of(arguments, on.machine);
    const DType dtype = request.options.dtype;
    const bool several = request.ranks.size() * request.batches.size() * request.micro_batches.size() > 1;
    const Optimizer optimizer{.rule = {.rule = rule_named(arguments.optimizer)}};
    const MakeGraph make = [&](int64_t batch, int micro) {
        require(batch % micro == 0, "a batch of {} does not divide into {} micro-batches", batch, micro);
        ModelOptions shape = model_options(arguments.common, Mode::Training, batch);
        shape.batch = batch / micro;
        return training_graph(entry.make(shape), optimizer, {.micro_batches = micro});
    };
    const FreeResult found = search_cases(request, make, on.machine, on.target->target());
    const CaseResult& best = found.cases[found.best];
    const Graph graph = make(best.what.batch, best.what.micro_batches);

    output.line("{}, batch {}{}, {} on {}\n", entry.name, best.what.batch,
                best.what.micro_batches > 1 ? fmt::format(" in {} micro-batches", best.what.micro_batches) : "", name_of(dtype),
                on.description);
    if (several) print(output, found, request.options.objective);
    output.write(summary(best.search, best.what) + "\n");
    print(output, best.search, arguments.all ? 0 : 40);
    warn_of_waste(best, graph, on.machine);

    Json document{{"model", entry.name}, {"machine", on.machine.name}, {"dtype", name_of(dtype)}, {"objective", arguments.objective}};
    document.update(to_json(best.search, best.what));
    if (arguments.what_if) {
        SearchOptions options = request.options;
        options.ranks = best.what.ranks;
        const auto gains = what_if(graph, best.search.best.plan, on.machine, on.target->target(), options, 12);
        print(output, gains);
        document["what_if"] = to_json(gains);
    }
    if (several) document["cases"] = document_of(found.cases);
    if (!arguments.output.empty()) {
        write_file(arguments.output, to_json(best.search.best.plan).dump(1) + "\n");
        output.line("\nThe plan is in {}; edit it, look at it with `convoy plan show {} --plan {}`, train with it by --plan {}",
                    arguments.output, entry.name, arguments.output, arguments.output);
    }
    output.result(document);
    return 0;
}

}  // namespace

Command add_plan(Parser& program) {
    Parser* const parser = program.add_subcommand("plan", "");
    describe(*parser,
             "Find the fastest plan for a model on a machine, and say why.\n"
             "Every layer may be split by samples, depth, height, width, channels and filters, on every shape of grid; the best plans are "
             "compiled and\n"
             "simulated beside the usual ones (data, spatial, channel, hybrid-fc, zero), and the fastest that fits the memory is "
             "explained: what each\n"
             "layer is split by, the next best choice, and what limits it. --ranks, --batch and --micro-batches take lists, from which "
             "--objective\n"
             "chooses. `plan show` looks at a plan that you have.",
             "  convoy plan resnet50 --batch 256 --machine v100 --ranks 64\n"
             "  convoy plan cosmoflow512 --batch 2 --machine v100 --ranks 8 --memory 16GiB --output plan.json\n"
             "  convoy plan vgg16 --batch 512 --machine a100 --ranks 8,16,32,64 --objective cost\n"
             "  convoy plan show resnet18 --plan sample:2,height:2 --batch 8");
    const auto a = std::make_shared<FindArguments>();
    add_model(*parser, a->model);
    add_machine_options(*parser, a->machine, false);
    parser->add_option("--ranks", a->ranks, "Ranks, or a list to choose from (default: 1, 2, 4, ... as far as the machine goes)")
        ->option_text("R[,R...]");
    parser->add_option("--micro-batches", a->micro_batches, "Parts in which a step is computed, or a list (default: 1)")
        ->option_text("K[,K...]");
    parser->add_option("--memory", a->memory, "What a rank may use, such as 16GiB (default: what the device has)")->option_text("SIZE");
    allow_only(parser
                   ->add_option("--objective", a->objective,
                                "time (of a step), samples (time of a sample), cost or energy (of a sample) (default: time)")
                   ->option_text("NAME"),
               {"time", "samples", "cost", "energy"});
    allow_only(parser
                   ->add_option("--batch-norm", a->batch_norm,
                                "Statistics of the global batch, or local ones of each rank's part (default: global)")
                   ->option_text("KIND"),
               {"global", "local"});
    parser->add_option("--output", a->output, "Write the plan to this file, for --plan")->option_text("FILE");
    parser->add_flag("--all", a->all, "Every layer, however many there are");
    parser->add_flag("--what-if", a->what_if, "Also say which layers would gain from groups or more filters");
    add_optimizer(*parser, a->optimizer);
    add_common(*parser, a->common, "4, or one for each rank");
    Option* const batch = parser->get_option("--batch");
    parser->remove_option(batch);
    parser->add_option("--batch", a->batches, "Samples of a step, or a list to choose from (default: 4, or one for each rank)")
        ->option_text("N[,N...]");
    parser->require_subcommand(0, 1);
    return {parser, [a] { return find(*a); }};
}

}  // namespace convoy
