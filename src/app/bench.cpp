// What a training step costs here: `bench step` times it and, with --profile, says where the time goes.
#include <algorithm>
#include <chrono>
#include <map>

#include <sys/resource.h>
#include <CLI/App.hpp>

#include "app/command.h"
#include "app/options.h"
#include "app/output.h"
#include "app/table.h"
#include "base/file.h"
#include "base/random.h"
#include "model/autodiff.h"

namespace convoy {

namespace {

struct BenchOptions {
    CommonOptions common;
    std::string model;
    double seconds = 5;
    bool profile = false;
    std::string trace;
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Random inputs, so that no kernel meets zeros that real data would not have.
void fill_inputs(Executor& executor, int64_t classes) {
    for (const auto& [name, slot] : executor.program().inputs) {
        Tensor tensor = executor.tensor_for(slot);
        const RandomStream random{1, 0, stream_of(name)};
        Tensor wide(tensor.shape(), DType::f64);
        for (int64_t i = 0; i < wide.numel(); ++i) {
            const auto at = static_cast<uint64_t>(i);
            wide.as<double>()[static_cast<size_t>(i)] =
                tensor.dtype() == DType::i32 ? static_cast<double>(static_cast<int64_t>(random.uniform(at) * static_cast<double>(classes)))
                                             : random.normal(at);
        }
        if (name == "hyper") wide = Tensor::of<double>({2}, {1e-3, 1});
        executor.set_input(slot, wide.to(tensor.dtype()));
    }
}

// Time, work and bytes by kind of instruction, the costliest first.
void print_profile(const Output& output, const std::vector<TraceEvent>& events) {
    struct Sum {
        double us = 0, flops = 0, bytes = 0;
        int count = 0;
    };
    std::map<std::string, Sum> kinds;
    double total = 0;
    for (const TraceEvent& e : events) {
        Sum& sum = kinds[e.category + "  " + e.name.substr(e.name.find(": ") + 2)];
        sum.us += e.duration_us;
        sum.flops += e.flops;
        sum.bytes += e.bytes;
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

int bench_step(const BenchOptions& options) {
    const Output output(options.common.json);
    const ZooEntry& entry = known_model(options.model);
    const ModelOptions shape = model_options(options.common, Mode::Training, 32);
    const Model model = make_model(entry.name, shape);
    Session session(session_options(options.common));
    const auto executor = session.load(training_graph(model, {.rule = {.rule = Rule::Momentum}}));
    fill_inputs(*executor, model.classes);
    const Program& program = executor->program();
    const int64_t batch = model.graph.shape(model.graph.input("input"))[0];
    output.line("{} batch {}, {} threads, backend {}, {}: {} instructions", entry.name, batch, session.options().threads,
                session.options().backend, name_of(program.dtype), program.instructions.size());

    uint32_t step = 0;
    for (; step < 2; ++step) executor->run({session.options().seed, step});
    std::vector<double> times;
    const auto begin = std::chrono::steady_clock::now();
    while (times.size() < 3 || seconds_since(begin) < options.seconds) {
        const auto start = std::chrono::steady_clock::now();
        executor->run({session.options().seed, step++});
        times.push_back(seconds_since(start));
    }
    std::sort(times.begin(), times.end());
    const double median = times[times.size() / 2];
    const Totals sum = totals(program);
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const int64_t rss = static_cast<int64_t>(usage.ru_maxrss) * 1024;
    if (options.profile || !options.trace.empty()) {
        const auto events = executor->run_traced({session.options().seed, step});
        if (options.profile) print_profile(output, events);
        if (!options.trace.empty()) write_file(options.trace, chrome_trace(events).dump());
    }
    output.line(
        "step {:.2f} ms (best {:.2f}, worst {:.2f}, {} steps): {:.1f} samples/s, {:.1f} GFLOP/s, {:.2f} GB/s of the bytes that must move",
        median * 1e3, times.front() * 1e3, times.back() * 1e3, times.size(), static_cast<double>(batch) / median, sum.work / median / 1e9,
        static_cast<double>(sum.bytes) / median / 1e9);
    output.line("memory: {:.1f} MB planned, {:.1f} MB resident at most",
                static_cast<double>(program.memory.arena_bytes + program.memory.state_bytes) / 1e6, static_cast<double>(rss) / 1e6);
    output.result({{"model", entry.name},
                   {"batch", batch},
                   {"threads", session.options().threads},
                   {"backend", session.options().backend},
                   {"dtype", name_of(program.dtype)},
                   {"samples_per_s", static_cast<double>(batch) / median},
                   {"step_ms", median * 1e3},
                   {"best_ms", times.front() * 1e3},
                   {"worst_ms", times.back() * 1e3},
                   {"steps", times.size()},
                   {"planned_bytes", program.memory.arena_bytes + program.memory.state_bytes},
                   {"rss_bytes", rss},
                   {"gflop", sum.work / 1e9},
                   {"moved_bytes", sum.bytes}});
    return 0;
}

}  // namespace

Command add_bench(CLI::App& program) {
    CLI::App* group = program.add_subcommand("bench", "Measure what this machine does");
    group->require_subcommand(1);
    CLI::App* parser = group->add_subcommand("step", "Time a training step");
    auto options = std::make_shared<BenchOptions>();
    add_model(*parser, options->model)->required();
    add_common(*parser, options->common, "32");
    parser->add_option("--seconds", options->seconds, "Measure for this long")->capture_default_str();
    parser->add_flag("--profile", options->profile, "Say where the time goes, by kind of instruction");
    parser->add_option("--trace", options->trace, "Write one step as a trace that Chrome's tracing page opens");
    describe(*parser,
             "Times the training step (forward, backward, momentum update) of a model on random data: the median, the best and the worst "
             "step, what was computed and moved, and memory.",
             "convoy bench step resnet50 --batch 8 --threads 2\nconvoy bench step lenet5 --batch 64 --profile");
    return {parser, [options] { return bench_step(*options); }};
}

}  // namespace convoy
