// What a training step costs here: `bench step` times it and, with --profile, says where the time goes.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <optional>

#include <sys/resource.h>
#include <unistd.h>

#include "app/command.h"
#include "app/options.h"
#include "app/output.h"
#include "app/own_processors.h"
#include "app/parser.h"
#include "app/progress.h"
#include "app/ranks.h"
#include "app/table.h"
#include "app/tuning.h"
#include "base/file.h"
#include "base/json.h"
#include "base/random.h"
#include "exec/energy.h"
#include "exec/share.h"
#include "kernels/device_memory.h"
#include "model/autodiff.h"

namespace convoy {

namespace {

struct BenchOptions {
    CommonOptions common;
    RankOptions ranks;
    TuningArguments tuning;
    std::string model;
    double seconds = 5;
    int group = 0;  // steps between two looks at the clock; 0: as the backend needs
    bool profile = false;
    std::string trace;
    std::string traffic = "beside";
};

const std::map<std::string, TrafficMode> kTrafficModes{
    {"beside", TrafficMode::Beside}, {"serial", TrafficMode::Serial}, {"none", TrafficMode::None}};

double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Memory of this process that is resident now.
int64_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    int64_t total = 0, resident = 0;
    statm >> total >> resident;
    return resident * sysconf(_SC_PAGESIZE);
}

// Random inputs, so that no kernel meets zeros that real data would not have.
void fill_inputs(Executor& executor, int64_t classes) {
    for (const auto& [name, slot] : executor.program().inputs) {
        Tensor tensor = executor.tensor_for(slot);
        const RandomStream random{1, static_cast<uint32_t>(executor.program().rank), stream_of(name)};
        // A million of them, again and again: more would only take time.
        constexpr int64_t kDistinct = 1'000'003;
        Tensor wide(tensor.shape(), DType::f64);
        const auto values = wide.as<double>();
        for (int64_t i = 0; i < wide.numel(); ++i) {
            const auto at = static_cast<size_t>(i);
            if (i >= kDistinct)
                values[at] = values[at - kDistinct];
            else if (tensor.dtype() == DType::i32)
                values[at] = static_cast<double>(static_cast<int64_t>(random.uniform(at) * static_cast<double>(classes)));
            else
                values[at] = random.normal(at);
        }
        if (name == "hyper") wide = Tensor::of<double>({2}, {1e-3, 1});
        executor.set_input(slot, wide.to(tensor.dtype()));
    }
}

// Time, work and bytes of a rank by kind of instruction, the costliest first.
void print_profile(const Output& output, const std::vector<TraceEvent>& events, Rank rank) {
    struct Sum {
        double us = 0, flops = 0, bytes = 0;
        int count = 0;
    };
    std::map<std::string, Sum> kinds;
    double total = 0;
    for (const TraceEvent& e : events) {
        if (e.rank != rank) continue;
        Sum& sum = kinds[e.phase + "  " + e.what];
        sum.us += e.duration_us;
        sum.flops += e.flops;
        sum.bytes += static_cast<double>(e.bytes);
        ++sum.count;
        total += e.duration_us;
    }
    std::vector<std::pair<std::string, Sum>> order(kinds.begin(), kinds.end());
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second.us > b.second.us; });
    output.line("{:>9} {:>6} {:>6} {:>9} {:>8}  {}", "ms", "share", "count", "GFLOP/s", "GB/s", "instruction");
    for (const auto& [what, sum] : order)
        output.line("{:>9.3f} {:>5.1f}% {:>6} {:>9.1f} {:>8.2f}  {}", sum.us / 1e3, 100 * sum.us / total, sum.count,
                    sum.flops / sum.us / 1e3, sum.bytes / sum.us / 1e3, what);
}

struct StepTimes {
    std::vector<double> seconds;   // of a step, sorted
    std::optional<double> joules;  // of a step, all GPUs together
    std::optional<double> watts;   // while they were measured
    std::string energy_source;     // of those, or why there are none
};

// Runs the step for about so long, the same number of times on all ranks. A device runs `group` steps at a time, because in training too the host is
// ahead of it.
StepTimes time_steps(Executor& executor, Backend& backend, const SessionOptions& session, double seconds, int group) {
    uint32_t step = 0;
    const auto run = [&] {
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < group; ++i) executor.start({session.seed, step++});
        backend.synchronize();
        return seconds_since(start) / group;
    };
    const auto agreed = [&](int number) { return std::stoi(share_text(session.link, 0, std::to_string(number))); };
    double one = run();
    const bool is_long = agreed(one > seconds) != 0;  // nobody waits for five of these
    if (!is_long) one = run();
    StepTimes times;
    const int count = agreed(std::max(is_long ? 1 : 3, static_cast<int>(seconds / one / group)));
    EnergyCount energy(backend, session.link);
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) times.seconds.push_back(run());
    const double all = seconds_since(begin);
    times.energy_source = energy.source();
    if (const auto joules = energy.take()) {
        times.joules = *joules / static_cast<double>(times.seconds.size() * static_cast<size_t>(group));
        times.watts = *joules / all;
    }
    std::sort(times.seconds.begin(), times.seconds.end());
    return times;
}

// The lower quartile of each instruction over several traced steps: other work on the machine makes some slower and none faster.
ConvTimes time_convolutions(Executor& executor, const SessionOptions& session, const CostTable& table) {
    constexpr size_t kSteps = 9;
    std::vector<std::vector<double>> times(executor.program().instructions.size());
    for (size_t step = 0; step < kSteps; ++step) {
        TraceLog log(session.link);
        executor.run_traced({session.seed, 0}, log);
        size_t next = 0;  // computations run in the order of the list
        for (const TraceEvent& e : log.own().events) {
            if (e.queue != static_cast<int>(Queue::Compute)) continue;
            while (executor.program().instructions[next].queue != Queue::Compute) ++next;
            times[next++].push_back(e.duration_us * 1e-6);
        }
    }
    std::vector<double> seconds;
    for (auto& list : times) {
        if (list.empty()) list.push_back(0);
        std::sort(list.begin(), list.end());
        seconds.push_back(list[(list.size() - 1) / 4]);
    }
    return conv_times(executor.program(), seconds, table);
}

// What is timed.
struct Subject {
    std::string model;
    int64_t batch;
    const PlanChoice& choice;
    const SessionOptions& with;
    const Program& program;
    const Tuning& tuning;
    int64_t resident_before;  // bytes of this process, before it was loaded

    int64_t planned_bytes() const { return program.memory.arena_bytes + program.memory.state_bytes; }
};

// What was measured of it on this rank.
struct Measured {
    StepTimes times;
    int group = 1;  // steps for each look at the clock
    Totals sum;
    int64_t rss = 0, growth = 0;  // bytes resident, of all ranks where they are threads: at most; now more than before
    std::optional<DeviceMemoryUse> device;
    Trace trace;
    ConvTimes convolutions;

    double median() const { return times.seconds[times.seconds.size() / 2]; }
    double best() const { return times.seconds.front(); }
    double worst() const { return times.seconds.back(); }
    size_t steps() const { return times.seconds.size() * static_cast<size_t>(group); }
};

Measured measure(const BenchOptions& options, const Subject& subject, Session& session, Executor& executor) {
    constexpr int kGroup = 10;
    const SessionOptions& with = subject.with;
    Measured m;
    m.group = options.group > 0 ? options.group : session.backend().on_host() ? 1 : kGroup;
    m.times = time_steps(executor, session.backend(), with, options.seconds, m.group);
    m.sum = totals(subject.program);
    m.growth = resident_bytes() - subject.resident_before;
    if (options.profile || !options.trace.empty()) {
        TraceLog log(with.link);
        executor.run_traced({with.seed, 0}, log);
        m.trace = options.trace.empty() ? log.own() : log.all();
    }
    if (options.profile && options.tuning.tune) m.convolutions = time_convolutions(executor, with, *subject.tuning.table);
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    m.rss = static_cast<int64_t>(usage.ru_maxrss) * 1024;
    if (const auto* has = dynamic_cast<const HasDeviceMemory*>(&session.backend())) m.device = has->memory_use();
    return m;
}

double mb(int64_t bytes) { return static_cast<double>(bytes) / 1e6; }

void print(const Output& output, const BenchOptions& options, const Subject& subject, const Measured& m) {
    if (options.profile) print_profile(output, m.trace.events, subject.program.rank);
    if (m.convolutions.count > 0)
        output.line(
            "convolutions: {:.2f} ms in the step, {:.2f} ms as the sum of the best measured alone with cold caches: {:.3f} times ({} of "
            "them)",
            m.convolutions.in_step * 1e3, m.convolutions.best_alone * 1e3, m.convolutions.in_step / m.convolutions.best_alone,
            m.convolutions.count);
    output.line(
        "step {:.2f} ms (best {:.2f}, worst {:.2f}, {} steps): {:.1f} samples/s, {:.1f} GFLOP/s, {:.2f} GB/s of the bytes that must move",
        m.median() * 1e3, m.best() * 1e3, m.worst() * 1e3, m.steps(), static_cast<double>(subject.batch) / m.median(),
        m.sum.work / m.median() / 1e9, static_cast<double>(m.sum.bytes) / m.median() / 1e9);
    if (m.times.joules) output.line("energy: {} in a step, all GPUs", energy_text(*m.times.joules, *m.times.watts));
    if (subject.choice.ranks > 1) output.line("traffic: {:.2f} MB sent by each rank in a step ({})", mb(m.sum.sent), options.traffic);
    output.line("memory: {:.1f} MB planned, {:.1f} MB more resident than before, {:.1f} MB at most", mb(subject.planned_bytes()),
                mb(m.growth), mb(m.rss));
    if (m.device)
        output.line("device memory: {:.1f} MB allocated at most, {:.1f} MB of {:.1f} MB in use, libraries and driver included",
                    mb(m.device->allocated_most), mb(m.device->in_use), mb(m.device->total));
}

Json document_of(const BenchOptions& options, const Subject& subject, const Measured& m) {
    const auto known = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
    return {{"model", subject.model},
            {"batch", subject.batch},
            {"threads", subject.with.threads},
            {"ranks", subject.choice.ranks},
            {"plan", text_of(subject.choice)},
            {"backend", subject.with.backend},
            {"dtype", name_of(subject.program.dtype)},
            {"samples_per_s", static_cast<double>(subject.batch) / m.median()},
            {"step_ms", m.median() * 1e3},
            {"best_ms", m.best() * 1e3},
            {"worst_ms", m.worst() * 1e3},
            {"steps", m.steps()},
            {"joules", known(m.times.joules)},
            {"watts", known(m.times.watts)},
            {"energy_source", m.times.energy_source},
            {"planned_bytes", subject.planned_bytes()},
            {"device_bytes", m.device ? Json(m.device->allocated_most) : Json(nullptr)},
            {"device_in_use_bytes", m.device ? Json(m.device->in_use) : Json(nullptr)},
            {"rss_bytes", m.rss},
            {"rss_growth_bytes", m.growth},
            {"gflop", m.sum.work / 1e9},
            {"moved_bytes", m.sum.bytes},
            {"sent_bytes", m.sum.sent},
            {"traffic", options.traffic},
            {"tuned", subject.tuning.costs != nullptr},
            {"numerics", options.tuning.numerics},
            {"conv_ms", m.convolutions.in_step * 1e3},
            {"conv_best_alone_ms", m.convolutions.best_alone * 1e3}};
}

void bench_rank(const BenchOptions& options, const Output& output, SessionOptions with, const PlanChoice& choice) {
    const ModelSource entry = known_model(options.model);
    const ModelOptions shape = model_options(options.common, Mode::Training, 32);
    const Model model = entry.make(shape);
    const Graph graph = training_graph(model, {.rule = {.rule = Rule::Momentum}});
    with.plan = plan_for(choice, graph).plan;
    with.limits = limits_of(options.tuning);
    Tuning tuning;
    if (options.tuning.tune) {
        tuning = tune_here(graph, with);
        with.costs = tuning.costs;
    }
    const int64_t resident_before = resident_bytes();
    Session session(with);
    const auto executor = session.load(graph);
    executor->set_traffic_mode(kTrafficModes.at(options.traffic));
    fill_inputs(*executor, model.classes);
    const Program& program = executor->program();
    const int64_t batch = model.graph.shape(model.graph.input("input"))[0];
    const bool first = program.rank == 0;
    if (first)
        output.line("{} batch {}, {}{} threads, backend {}, {}: {} instructions", entry.name, batch,
                    choice.ranks > 1 ? fmt::format("{} ranks ({}) of ", choice.ranks, text_of(choice)) : "", with.threads, with.backend,
                    name_of(program.dtype), program.instructions.size());
    if (first && options.tuning.tune) output.line("{}", summary_of(tuning));
    const Subject subject{entry.name, batch, choice, with, program, tuning, resident_before};
    const Measured measured = measure(options, subject, session, *executor);
    session.state().settle();  // the last step too may fail
    if (!first) return;
    if (!options.trace.empty()) write_file(options.trace, chrome_trace(measured.trace).dump());
    print(output, options, subject, measured);
    output.result(document_of(options, subject, measured));
}

int bench_step(const BenchOptions& options) {
    return run_with_ranks(options.ranks, [&](Ranks& ranks) {
        const Output output(options.common.json, !ranks.leads());
        if (ranks.leads()) expect_files({{"--trace", options.trace}, {"--json", options.common.json}});
        const PlanChoice choice = choose_plan(options.ranks, ranks);
        SessionOptions with = session_options(options.common);
        with.threads = threads_for(options.common, ranks, choice.ranks);
        ranks.run(choice.ranks, [&](Link* link) {
            const OwnProcessors own(link, with.threads);
            SessionOptions mine = with;
            mine.link = link;
            bench_rank(options, output, mine, choice);
        });
        return 0;
    });
}

}  // namespace

Command add_bench_step(Parser& group) {
    Parser* parser = group.add_subcommand("step", "Time a training step");
    auto options = std::make_shared<BenchOptions>();
    add_model(*parser, options->model)->required();
    add_common(*parser, options->common, "32");
    add_rank_options(*parser, options->ranks);
    add_tuning(*parser, options->tuning);
    allow_only(parser
                   ->add_option("--traffic", options->traffic,
                                "Traffic between ranks: beside the computation, serial, or none, with wrong results (default: beside)")
                   ->option_text("HOW"),
               {"beside", "serial", "none"});
    allow_real(parser->add_option("--seconds", options->seconds, "Measure for this long (default: 5)")->option_text("S"),
               {.low = 0, .high = 86400});
    allow_whole(parser->add_option("--group", options->group, "Look at the clock after so many steps (default: 10 on a GPU, else 1)")
                    ->option_text("K"),
                1);
    parser->add_flag("--profile", options->profile, "Say where the time goes, by kind of instruction");
    parser->add_option("--trace", options->trace, "Write one step of all ranks as a trace that Chrome's tracing page opens")
        ->option_text("FILE");
    describe(*parser,
             "Time the training step of a model.\n"
             "Forward, backward and momentum update on random data: the median, the best and the worst step, what was computed and moved, "
             "and memory.",
             "  convoy bench step resnet50 --batch 8 --threads 2\n"
             "  convoy bench step lenet5 --batch 64 --profile\n"
             "  convoy bench step vgg16 --batch 4 --threads 1 --tune --profile\n"
             "  convoy bench step resnet50 --batch 16 --ranks 2 --plan sample:2 --threads 1");
    return {parser, [options] { return bench_step(*options); }};
}

}  // namespace convoy
