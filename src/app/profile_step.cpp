#include "app/profile_step.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>

#include "app/own_processors.h"
#include "app/synthetic.h"
#include "exec/session.h"
#include "exec/share.h"
#include "model/autodiff.h"
#include "train/plan_choice.h"

namespace convoy {

namespace {

using Clock = std::chrono::steady_clock;

double middle(std::vector<double> list) {
    std::sort(list.begin(), list.end());
    return list[list.size() / 2];
}

// One rank's times.
struct Times {
    std::vector<std::vector<double>> instructions;
    std::vector<double> steps, traffic;  // of whole steps, and of all traffic in one
};

Times run_steps(Executor& executor, const SessionOptions& session) {
    constexpr int kLeast = 3, kMost = 10;
    constexpr double kSeconds = 0.4;
    Times times;
    times.instructions.resize(executor.program().instructions.size());
    executor.run({session.seed, 0});
    const auto first = Clock::now();
    executor.run({session.seed, 1});
    const double one = std::chrono::duration<double>(Clock::now() - first).count();
    const int rounds =
        std::stoi(share_text(session.link, 0, std::to_string(std::clamp(static_cast<int>(kSeconds / one / 2), kLeast, kMost))));
    for (int i = 0; i < rounds; ++i) {
        const auto start = Clock::now();
        executor.run({session.seed, static_cast<uint32_t>(2 + i)});
        times.steps.push_back(std::chrono::duration<double>(Clock::now() - start).count());
        TraceLog log;
        executor.run_traced({session.seed, static_cast<uint32_t>(2 + i)}, log);
        const std::vector<TraceEvent> events = log.own().events;
        double traffic = 0;
        for (size_t k = 0; k < events.size(); ++k) {
            const double seconds = events[k].duration_us * 1e-6;
            times.instructions[k].push_back(seconds);
            if (is_traffic(executor.program().instructions[k].action)) traffic += seconds;
        }
        times.traffic.push_back(traffic);
    }
    return times;
}

// A step takes longer than the usual times of its instructions together: what disturbs now one and now another is in no middle, nor is what lies between them.
double beyond_instructions(const Times& times, double sum) {
    constexpr double kMost = 1.5;
    return sum > 0 ? std::clamp((middle(times.steps) - middle(times.traffic)) / sum, 1.0, kMost) : 1;
}

// Every instruction that is no traffic, with its share of the step.
std::vector<std::pair<KernelShape, double>> kernels_of(const Program& program, const Times& times) {
    std::vector<std::pair<KernelShape, double>> kernels;
    double sum = 0;
    for (size_t i = 0; i < program.instructions.size(); ++i) {
        const Instruction& in = program.instructions[i];
        if (is_traffic(in.action)) continue;
        kernels.emplace_back(shape_of(program, in), middle(times.instructions[i]));
        sum += kernels.back().second;
    }
    const double longer = beyond_instructions(times, sum);
    for (auto& [shape, seconds] : kernels) seconds *= longer;
    return kernels;
}

TrafficCost traffic_cost(const Machine& machine, const StepCase& which, const Program& program) {
    const CostModel costs(machine, {.ranks = which.ranks, .threads = which.threads});
    TrafficCost sum;
    for (const Instruction& in : program.instructions) {
        if (!is_traffic(in.action)) continue;
        const TrafficCost one = costs.traffic(program, in);
        sum.latency += one.latency;
        sum.transfer += one.transfer;
    }
    return sum;
}

}  // namespace

StepCase step_case(const std::string& text) {
    StepCase result;
    const size_t first = text.find(':'), second = first == std::string::npos ? first : text.find(':', first + 1);
    result.model = known_model(text.substr(0, first)).name;
    if (first != std::string::npos) {
        const std::string batch = text.substr(first + 1, second == std::string::npos ? second : second - first - 1);
        result.batch = std::atoll(batch.c_str());
        if (result.batch < 1)
            throw UsageError(
                fmt::format("\"{}\": the batch is \"{}\"; expected MODEL[:BATCH[:INPUT]], such as resnet18:8:3x64x64", text, batch));
    }
    if (second != std::string::npos) result.input = text.substr(second + 1);
    return result;
}

StepProfile profile_step(const StepCase& which, const Machine& machine, Ranks& ranks) {
    StepProfile result;
    std::mutex mutex;
    std::map<std::string, std::pair<KernelShape, std::vector<double>>> found;  // by all that tells kernels apart
    ranks.run(which.ranks, [&](Link* link) {
        const OwnProcessors own(link, which.threads);
        ModelOptions model_options{.batch = which.batch > 0 ? which.batch : 8};
        if (!which.input.empty()) model_options.input = parse_dims(which.input);
        const Model model = known_model(which.model).make(model_options);
        const Graph graph = training_graph(model, {.rule = {.rule = Rule::Momentum}});
        SessionOptions with{.backend = machine.target, .threads = which.threads, .link = link};
        with.plan = plan_for(plan_choice(which.plan, which.ranks), graph).plan;
        Session session(with);
        const auto executor = session.load(graph);
        executor->set_traffic_mode(TrafficMode::Serial);  // nothing beside a computation but the other ranks' own
        for (const auto& [name, tensor] : synthetic_feeds(graph, {.classes = model.classes, .lr = 1e-4}))
            executor->set_whole_input(name, tensor);
        const Times times = run_steps(*executor, with);
        const std::lock_guard lock(mutex);
        if (result.traffic == 0 || middle(times.traffic) < result.traffic) {
            result.traffic = middle(times.traffic);
            result.traffic_cost = traffic_cost(machine, which, executor->program());
        }
        for (const auto& [shape, seconds] : kernels_of(executor->program(), times)) {
            auto& entry = found[fmt::format("{} {} {} {}", shape.family, shape.work, shape.bytes, fmt::join(shape.sizes, "x"))];
            entry.first = shape;
            entry.second.push_back(seconds);
        }
    });
    for (const auto& [key, entry] : found) {
        double mean = 0;
        for (const double s : entry.second) mean += s / static_cast<double>(entry.second.size());
        result.kernels.push_back({entry.first, which.threads, which.ranks, std::max(mean, 1e-9)});
    }
    return result;
}

}  // namespace convoy
