#include "app/tuning.h"

#include <algorithm>
#include <chrono>

#include "app/build_info.h"
#include "app/machine.h"
#include "app/options.h"
#include "app/parser.h"
#include "app/table.h"
#include "base/log.h"

namespace convoy {

namespace {

// Measurements hold for a processor and for the libraries that were measured.
CostSetting setting_of(const SessionOptions& session) {
    std::string machine = machine_info().processor;
    for (const BackendStatus& status : backend_statuses())
        if (status.name == session.backend) machine += "; " + status.detail;
    return {session.backend, session.threads, fmt::format("{}; convoy {}", machine, build_info().version)};
}

std::optional<CostCache> cache_for(const SessionOptions& session) {
    const CostSetting setting = setting_of(session);
    try {
        return CostCache(cache_file(setting), setting);
    } catch (const Error& e) {
        warn("measurements are not kept: {}", e.what());
        return std::nullopt;
    }
}

bool is_convolution(const Problem& problem) {
    return std::any_of(problem.steps.begin(), problem.steps.end(), [](const ProblemStep& step) {
        return std::holds_alternative<ConvOp>(step.op) || std::holds_alternative<ConvGradInputOp>(step.op) ||
               std::holds_alternative<ConvGradWeightOp>(step.op);
    });
}

}  // namespace

void add_limits(Parser& parser, TuningArguments& arguments) {
    allow_only(parser
                   .add_option("--numerics", arguments.numerics,
                               "exact: plain sums only; fast: also Winograd's and Fourier's methods and sums of split numbers (AMX), which "
                               "lose digits (default: fast)")
                   ->option_text("NAME"),
               {"exact", "fast"});
    allow_whole(
        parser
            .add_option(
                "--workspace-limit", arguments.workspace_limit,
                "Most scratch memory of any one kernel (default: no limit). The cpu backend does without any; on a GPU it says what is "
                "the least, and convolutions that may want more than they get are slow")
            ->option_text("BYTES"),
        0, kMostWhole);
}

void add_tuning(Parser& parser, TuningArguments& arguments) {
    parser.add_flag("--tune", arguments.tune, "Measure kernels first, where that was not done before, and use the fastest");
    add_limits(parser, arguments);
}

Limits limits_of(const TuningArguments& arguments) {
    Limits limits{.numerics = numerics_named(arguments.numerics)};
    if (arguments.workspace_limit >= 0) limits.workspace_bytes = arguments.workspace_limit;
    return limits;
}

Tuning tune_here(const Graph& graph, const SessionOptions& session) {
    const bool leads = !session.link || session.link->rank() == 0;
    auto last = std::chrono::steady_clock::now();
    const auto progress = [&last](const std::string& text) {
        const auto now = std::chrono::steady_clock::now();
        if (now - last < std::chrono::seconds(2)) return;
        last = now;
        note("tuning: {}", text);
    };
    return tune(graph, {.session = session, .cache = leads ? cache_for(session) : std::nullopt, .progress = progress});
}

std::string summary_of(const Tuning& tuning) {
    const std::string work =
        fmt::format("{} kernels and copies measured, {} known, in {}", tuning.measured, tuning.known, short_time(tuning.seconds));
    if (!tuning.verdict) return fmt::format("tuned: nothing to gain over the untuned choice; {}", work);
    const double before = tuning.verdict->untuned_seconds * 1e3, after = tuning.verdict->tuned_seconds * 1e3;
    if (!tuning.costs)
        return fmt::format("tuned: the untuned step stays, {:.2f} ms; tuned choices took {:.2f} ms; {}", before, after, work);
    return fmt::format("tuned: {:.2f} ms a step instead of {:.2f} ({:+.1f} %); {}", after, before, 100 * (after / before - 1), work);
}

ConvTimes conv_times(const Program& program, const std::vector<double>& seconds, const CostTable& table) {
    ConvTimes times;
    for (size_t i = 0; i < program.instructions.size(); ++i) {
        const auto* compute = std::get_if<Compute>(&program.instructions[i].action);
        if (!compute || !is_convolution(compute->problem)) continue;
        const auto best = best_seconds(table, compute->problem);
        if (!best) continue;
        times.in_step += seconds[i];
        times.best_alone += *best;
        ++times.count;
    }
    return times;
}

}  // namespace convoy
