// Runs that do not happen: `simulate` compiles a model for a machine on paper and lets a clock run through the programs of its ranks.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>

#include "app/auto_plan.h"
#include "app/command.h"
#include "app/options.h"
#include "app/output.h"
#include "app/parser.h"
#include "app/planning.h"
#include "app/plot.h"
#include "app/ranks.h"
#include "app/simulation_files.h"
#include "app/table.h"
#include "base/file.h"
#include "base/json.h"
#include "exec/trace_log.h"
#include "model/autodiff.h"
#include "model/cost.h"
#include "plan/simulate.h"
#include "train/config.h"

namespace convoy {

namespace {

struct SimulateArguments {
    CommonOptions common;
    MachineOptions machine;
    std::string model, optimizer = "momentum", plan = "data", trace, picture, directory;
    std::vector<int> ranks{1, 2, 4, 8};
    std::vector<std::string> slow;
    double noise = 0;
    bool weak = false, layers = false;
};

// One point of a scaling curve.
struct Point {
    int ranks = 1;
    int64_t batch = 1;
    Simulation simulation;
    size_t classes = 0;
    double took = 0;  // seconds, to compile and simulate
    int64_t memory = 0, device_memory = 0;
    std::string limit, failure;
    double price = 0;  // a step

    double samples_per_second() const { return static_cast<double>(batch) / simulation.step_seconds; }
};

// "sample:*,height:2" on 8 ranks is "sample:4,height:2".
std::string spec_for(const std::string& spec, int ranks) {
    const size_t star = spec.find(":*");
    if (star == std::string::npos) return spec;
    int64_t others = 1;
    for (size_t at = 0; (at = spec.find(':', at)) != std::string::npos; ++at)
        if (at != star) others = std::min(kMany, others * std::clamp<int64_t>(std::atoll(spec.c_str() + at + 1), 1, kMany));
    if (ranks % others != 0) {
        const int64_t below = ranks / others * others;
        throw UsageError(fmt::format("--plan {}: {} ranks cannot be divided by {}; the nearest that can is {}", spec, ranks, others,
                                     below > 0 ? fmt::format("{} or {}", below, below + others) : fmt::format("{}", others)));
    }
    std::string text = spec;
    return text.replace(star, 2, fmt::format(":{}", ranks / others));
}

std::map<Rank, double> slowdowns(const SimulateArguments& arguments) {
    const int most = *std::max_element(arguments.ranks.begin(), arguments.ranks.end());
    std::map<Rank, double> result;
    for (const std::string& text : arguments.slow) {
        char* end = nullptr;
        const long rank = std::strtol(text.c_str(), &end, 10);
        const double factor = *end == ':' ? std::strtod(end + 1, &end) : 0;
        if (*end != '\0' || rank < 0 || !(factor >= 0.01 && factor <= 1e6))
            throw UsageError(fmt::format("--slow: \"{}\" is no straggler; expected RANK:FACTOR, such as 3:1.5", text));
        if (rank >= most) throw UsageError(fmt::format("--slow: \"{}\" names rank {}, but the ranks are 0 to {}", text, rank, most - 1));
        result[static_cast<Rank>(rank)] = factor;
    }
    return result;
}

// What stands most in the way of a faster step.
std::string limit_of(const Simulation& s, int64_t memory, int64_t device_memory) {
    if (memory > device_memory)
        return fmt::format("memory: {} of {}", short_bytes(static_cast<double>(memory)), short_bytes(static_cast<double>(device_memory)));
    const ClassResult& slow = s.slowest();
    const double waiting = slow.waiting_seconds / s.step_seconds;
    if (waiting < 0.25) return "computing";
    const auto percent = static_cast<int>(std::lround(100 * waiting));
    return fmt::format("{} traffic ({} % waiting)", slow.gradient_sent > slow.activation_sent ? "gradient" : "activation", percent);
}

struct Setting {
    const SimulateArguments& arguments;
    const Machine& machine;
    const Output& output;
};

Graph graph_for(const SimulateArguments& arguments, int64_t batch) {
    ModelOptions shape = model_options(arguments.common, Mode::Training, batch);
    shape.batch = batch;
    return training_graph(known_model(arguments.model).make(shape), {.rule = {.rule = rule_named(arguments.optimizer)}});
}

UniformPlan plan_of(const Setting& setting, const Graph& graph, const Target& target, int ranks) {
    const SimulateArguments& arguments = setting.arguments;
    if (!is_auto(arguments.plan)) return plan_for(plan_choice(spec_for(arguments.plan, ranks), ranks), graph);
    return {
        search_plan(graph, setting.machine, target,
                    {.ranks = ranks, .dtype = dtype_named(arguments.common.dtype), .threads = arguments.common.threads, .explain = false})
            .best.plan,
        {}};
}

Point simulate_point(const Setting& setting, int ranks, bool timeline) {
    const SimulateArguments& arguments = setting.arguments;
    const auto start = std::chrono::steady_clock::now();
    Point point{.ranks = ranks};
    const int64_t given = arguments.common.batch;
    const int most = *std::max_element(arguments.ranks.begin(), arguments.ranks.end());
    point.batch = arguments.weak ? (given > 0 ? given : 4) * ranks : given > 0 ? given : std::max(32, most);
    const Graph graph = graph_for(arguments, point.batch);
    const CostModel costs(setting.machine, {.ranks = ranks, .threads = arguments.common.threads});
    const MachineTarget target(setting.machine, costs.threads(0));
    const UniformPlan uniform = plan_of(setting, graph, target.target(), ranks);
    const Plan& plan = uniform.plan;
    // Where ranks differ by chance or by name, none stands for another.
    const bool alike = arguments.noise == 0 && arguments.slow.empty();
    constexpr int kMostAlone = 256;
    if (!alike && ranks > kMostAlone)
        throw UsageError(fmt::format("--noise and --slow simulate every rank by itself, which is done for up to {} ranks, not for {}",
                                     kMostAlone, ranks));
    const CompileOptions compiling{.dtype = dtype_named(arguments.common.dtype)};
    const auto classes =
        alike ? compile_classes(graph, plan, target.target(), compiling) : compile_all(graph, plan, target.target(), compiling);
    point.classes = classes.size();
    point.simulation = simulate(classes, setting.machine,
                                {.threads = arguments.common.threads,
                                 .noise = arguments.noise,
                                 .seed = arguments.common.seed,
                                 .slowdown = slowdowns(arguments),
                                 .timeline = timeline});
    if (timeline && !arguments.directory.empty())
        write_simulated_step(arguments.directory, {.subject = {.model = arguments.model,
                                                               .batch = point.batch,
                                                               .spec = spec_for(arguments.plan, ranks),
                                                               .backend = setting.machine.target,
                                                               .dtype = compiling.dtype},
                                                   .graph = graph,
                                                   .plan = uniform,
                                                   .classes = classes,
                                                   .simulation = point.simulation});
    point.memory = point.simulation.most_memory();
    point.device_memory = costs.device(0).memory_bytes * costs.threads(0);
    point.limit = limit_of(point.simulation, point.memory, point.device_memory);
    point.price = price_per_second(setting.machine, ranks) * point.simulation.step_seconds;
    point.took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return point;
}

Json to_json(const Point& p) {
    if (!p.failure.empty()) return {{"ranks", p.ranks}, {"batch", p.batch}, {"failure", p.failure}};
    Json classes = Json::array();
    for (const ClassResult& c : p.simulation.classes)
        classes.push_back({{"ranks", c.ranks.size()},
                           {"first", c.ranks.front()},
                           {"step_ms", c.seconds * 1e3},
                           {"compute_ms", c.compute_seconds * 1e3},
                           {"waiting_ms", c.waiting_seconds * 1e3},
                           {"traffic_ms", c.traffic_seconds * 1e3},
                           {"arena_bytes", c.arena_bytes},
                           {"state_bytes", c.state_bytes},
                           {"activation_bytes", c.activation_sent},
                           {"gradient_bytes", c.gradient_sent}});
    return {{"ranks", p.ranks},
            {"batch", p.batch},
            {"step_ms", p.simulation.step_seconds * 1e3},
            {"samples_per_s", p.samples_per_second()},
            {"memory_bytes", p.memory},
            {"fits", p.memory <= p.device_memory},
            {"limit", p.limit},
            {"joules", p.simulation.joules},
            {"price", p.price},
            {"error", p.simulation.error},
            {"roofline_share", p.simulation.roofline_share},
            {"seconds_taken", p.took},
            {"classes", classes}};
}

void print(const Output& output, const std::vector<Point>& points, bool weak) {
    using Align = Table::Align;
    Table table({{"ranks", Align::Right},
                 {"batch", Align::Right},
                 {"step", Align::Right},
                 {"samples/s", Align::Right},
                 {"speed-up", Align::Right},
                 {"efficiency", Align::Right},
                 {"computing", Align::Right},
                 {"waiting", Align::Right},
                 {"memory", Align::Right},
                 {"sent", Align::Right},
                 {"energy", Align::Right},
                 {"limited by"}});
    const Point* first = nullptr;
    for (const Point& p : points) {
        if (!p.failure.empty()) {
            table.add({std::to_string(p.ranks), std::to_string(p.batch), "", "", "", "", "", "", "", "", "", p.failure});
            continue;
        }
        if (!first) first = &p;
        const ClassResult& slow = p.simulation.slowest();
        const double gain = p.samples_per_second() / first->samples_per_second();
        const auto ms = [](double seconds) { return fmt::format("{:.3g} ms", seconds * 1e3); };
        const auto energy = [](double joules) {
            return joules < 999.5 ? fmt::format("{:.3g} J", joules) : fmt::format("{:.3g} kJ", joules / 1e3);
        };
        table.add({grouped(p.ranks), grouped(p.batch), ms(p.simulation.step_seconds), short_number(p.samples_per_second()),
                   fmt::format("{:.2f}", gain), fmt::format("{:.0f} %", 100 * gain * first->ranks / p.ranks), ms(slow.compute_seconds),
                   ms(slow.waiting_seconds), short_bytes(static_cast<double>(p.memory)),
                   short_bytes(static_cast<double>(slow.activation_sent + slow.gradient_sent)),
                   p.simulation.joules > 0 ? energy(p.simulation.joules) : "", p.limit});
    }
    output.write(table.text());
    output.line(
        "{} scaling; speed-up and efficiency against the first line. Times are of the rank that finishes last; sent by it in a step.",
        weak ? "weak" : "strong");
}

void draw(const std::string& path, const std::vector<Point>& points) {
    constexpr Color kReached{70, 120, 200}, kIdeal{170, 170, 170}, kWaiting{222, 110, 40};
    Series reached{"simulated", kReached, {}, true}, ideal{"ideal", kIdeal, {}}, step{"step", kReached, {}, true},
        waiting{"waiting", kWaiting, {}, true};
    const Point* first = nullptr;
    for (const Point& p : points) {
        if (!p.failure.empty()) continue;
        if (!first) first = &p;
        const double x = std::log2(p.ranks);
        reached.points.emplace_back(x, p.samples_per_second());
        ideal.points.emplace_back(x, first->samples_per_second() * p.ranks / first->ranks);
        step.points.emplace_back(x, p.simulation.step_seconds * 1e3);
        waiting.points.emplace_back(x, p.simulation.slowest().waiting_seconds * 1e3);
    }
    write_png(path, plot({{"samples/s", {ideal, reached}, true}, {"ms of a step", {step, waiting}, true}}, "log2 of ranks"));
}

// Work, depth and average parallelism of the layers: what the best machine could make of the network.
Json print_work(const Setting& setting) {
    const Graph graph = graph_for(setting.arguments, std::max<int64_t>(1, setting.arguments.common.batch));
    struct Sum {
        double work = 0, depth = 0;
    };
    std::vector<std::pair<std::string, Sum>> layers;
    std::map<std::string, size_t> at;
    Sum all;
    for (const Node& node : graph.nodes()) {
        const Cost cost = cost_of(graph, node);
        const auto [place, fresh] = at.emplace(node.layer, layers.size());
        if (fresh) layers.push_back({node.layer, {}});
        for (Sum* sum : {&layers[place->second].second, &all}) {
            sum->work += cost.work;
            sum->depth += cost.depth;
        }
    }
    Table table({{"layer"}, {"work", Table::Align::Right}, {"depth", Table::Align::Right}, {"parallelism", Table::Align::Right}});
    Json json = Json::array();
    for (const auto& [name, sum] : layers) {
        table.add({name, short_number(sum.work), short_number(sum.depth), short_number(sum.depth > 0 ? sum.work / sum.depth : 0)});
        json.push_back({{"layer", name}, {"work", sum.work}, {"depth", sum.depth}});
    }
    if (setting.arguments.layers) setting.output.write(table.text());
    // The longest path of the forward pass as the literature counts it.
    const WorkDepth forward =
        work_depth(known_model(setting.arguments.model).make(model_options(setting.arguments.common, Mode::Training, 1)).graph);
    setting.output.line(
        "step: {} operations, {} one after the other if each op waits for the last; forward pass: work {}, depth {}, average parallelism "
        "{}",
        short_number(all.work), short_number(all.depth), short_number(forward.work), short_number(forward.depth),
        short_number(forward.work / std::max(1.0, forward.depth)));
    return {{"layers", json},
            {"forward", {{"work", forward.work}, {"depth", forward.depth}}},
            {"step", {{"work", all.work}, {"depth", all.depth}}}};
}

int simulate_command(const SimulateArguments& arguments) {
    const Output output(arguments.common.json);
    slowdowns(arguments);
    expect_files({{"--trace", arguments.trace}, {"--picture", arguments.picture}, {"--json", arguments.common.json}},
                 {{"--machine", arguments.machine.machine}});
    const Machine machine = load_machine(arguments.machine);
    if (!arguments.directory.empty()) open_simulation_directory(arguments.directory);
    const Setting setting{arguments, machine, output};
    output.line("{} on {} ({}), plan {}, {}", known_model(arguments.model).name, machine.name,
                machine.devices[static_cast<size_t>(machine.nodes[0].device)].name, arguments.plan, arguments.common.dtype);
    const Json work = print_work(setting);
    std::vector<Point> points;
    for (size_t i = 0; i < arguments.ranks.size(); ++i) {
        const int ranks = arguments.ranks[i];
        const bool last = i + 1 == arguments.ranks.size();
        try {
            points.push_back(simulate_point(setting, ranks, last && (!arguments.trace.empty() || !arguments.directory.empty())));
        } catch (const UsageError&) {
            throw;
        } catch (const Error& e) {
            if (arguments.ranks.size() == 1) throw;
            points.push_back({.ranks = ranks, .failure = e.what()});
        }
    }
    output.line("");
    print(output, points, arguments.weak);
    const auto good = std::find_if(points.begin(), points.end(), [](const Point& p) { return p.failure.empty(); });
    require(good != points.end(), "no number of ranks works: {}", points.front().failure);
    output.line("computations: {:.0f} % expected error; {:.0f} % of their time was not measured but comes from the roofline",
                100 * good->simulation.error, 100 * good->simulation.roofline_share);
    if (!arguments.picture.empty()) draw(arguments.picture, points);
    if (!arguments.trace.empty()) write_file(arguments.trace, chrome_trace(trace_of(points.back().simulation.timeline)).dump());
    Json document{{"model", known_model(arguments.model).name},
                  {"machine", machine.name},
                  {"plan", arguments.plan},
                  {"dtype", arguments.common.dtype},
                  {"weak", arguments.weak},
                  {"work", work},
                  {"points", Json::array()}};
    for (const Point& p : points) document["points"].push_back(to_json(p));
    if (!arguments.directory.empty()) write_file(std::filesystem::path(arguments.directory) / "simulation.json", document.dump(1) + "\n");
    if (!arguments.picture.empty()) output.line("The scaling curves are in {}", arguments.picture);
    if (!arguments.trace.empty()) output.line("The timeline of the last line is in {}", arguments.trace);
    if (!arguments.directory.empty()) output.line("`convoy report {}` makes a page of what is in it", arguments.directory);
    output.result(document);
    return 0;
}

}  // namespace

Command add_simulate(Parser& program) {
    Parser* const parser = program.add_subcommand("simulate", "");
    describe(
        *parser,
        "Simulate training steps on a machine on paper.\n"
        "Compiles the model for the machine and runs the programs of all its ranks against a clock: time, memory and bytes of a step for\n"
        "each number of ranks, and what limits it. In --plan, * stands for what is left of the ranks (sample:*,height:2).",
        "  convoy simulate resnet50 --machine v100 --plan data --ranks 1,4,16,64,256 --batch 256\n"
        "  convoy simulate cosmoflow512 --machine v100 --plan \"sample:*,depth:8\" --ranks 8,64,512,4096 --weak --batch 1\n"
        "  convoy simulate resnet18 --machine machine.json --plan sample:2 --ranks 2 --trace step.json\n"
        "  convoy simulate resnet50 --machine v100 --ranks 1,8,64,512,4096 --batch 4096 --output simulation && convoy report simulation");
    const auto arguments = std::make_shared<SimulateArguments>();
    add_model(*parser, arguments->model)->required();
    add_machine_options(*parser, arguments->machine);
    parser->add_option("--plan", arguments->plan, "How ranks share the work, as `train` takes it; auto is searched for at every point")
        ->option_text("SPEC|FILE|auto")
        ->capture_default_str();
    allow_whole(parser->add_option("--ranks", arguments->ranks, "How many ranks, or several numbers of them (default: 1,2,4,8)")
                    ->delimiter(',')
                    ->option_text("R[,R...]"),
                1);
    parser->add_flag("--weak", arguments->weak, "--batch is for each rank: the work grows with the ranks");
    parser->add_flag("--layers", arguments->layers, "Work, depth and average parallelism of every layer");
    allow_real(
        parser
            ->add_option("--noise", arguments->noise, "Standard deviation of every computation's time, relative (with --seed; default: 0)")
            ->option_text("X"),
        {.low = 0, .high = 2});
    parser->add_option("--slow", arguments->slow, "Stragglers, such as 3:1.5")->delimiter(',')->option_text("RANK:FACTOR[,...]");
    parser->add_option("--trace", arguments->trace, "Write the last point's timeline as a trace that Chrome's tracing page opens")
        ->option_text("FILE");
    parser->add_option("--output", arguments->directory, "Keep all that `convoy report` draws in this directory")->option_text("DIR");
    parser->add_option("--picture", arguments->picture, "Draw the scaling curves (PNG)")->option_text("FILE.PNG");
    add_optimizer(*parser, arguments->optimizer);
    add_common(*parser, arguments->common, "32 or one for each rank; with --weak 4 for each rank");
    return {parser, [arguments] { return simulate_command(*arguments); }};
}

}  // namespace convoy
