#include "report/report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "report/fields.h"
#include "report/views.h"

namespace convoy {

namespace {

using fields::number;
using fields::text;
using fields::whole;

const char* plural(int64_t count) { return count == 1 ? "" : "s"; }

// The last value of a field in lines of a kind.
std::optional<double> last(const std::vector<Json>& metrics, const std::string& kind, const char* field) {
    for (auto line = metrics.rbegin(); line != metrics.rend(); ++line)
        if (text(*line, "kind") == kind)
            if (const auto value = number(*line, field)) return value;
    return std::nullopt;
}

// Of the lines of steps or, if there are none, of epochs. Half of them are faster.
std::optional<double> median_throughput(const std::vector<Json>& metrics) {
    for (const char* kind : {"step", "epoch"}) {
        std::vector<double> values;
        for (const Json& line : metrics)
            if (text(line, "kind") == kind)
                if (const auto value = number(line, "samples_per_s"); value && *value > 0) values.push_back(*value);
        if (values.empty()) continue;
        std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
        return values[values.size() / 2];
    }
    return std::nullopt;
}

void describe_state(const RunSources& run, ReportData& data) {
    const int64_t epochs = whole(run.config, "epochs");
    const auto done = static_cast<int64_t>(last(run.metrics, "epoch", "epoch").value_or(0));
    const auto step = std::max(last(run.metrics, "step", "step").value_or(0), last(run.metrics, "epoch", "step").value_or(0));
    const std::string where = fmt::format("{} of {} epoch{}, step {}", done, epochs, plural(epochs), static_cast<int64_t>(step));
    if (run.running) {
        data.state = ReportData::State::Running;
        data.status = "training: " + where;
    } else if (epochs > 0 && done >= epochs) {
        data.state = ReportData::State::Done;
        data.status = fmt::format("finished: {} epoch{}, {} steps", done, plural(done), static_cast<int64_t>(step));
    } else {
        data.state = ReportData::State::Stopped;
        data.status = "stopped after " + where;
    }
}

void add_figures(const RunSources& run, ReportData& data) {
    const auto add = [&](const std::string& label, const std::optional<double>& value, const char* unit, const std::string& remark = "") {
        if (value) data.figures.push_back({label, *value, unit, remark});
    };
    const auto accuracy = last(run.metrics, "epoch", "test_accuracy");
    double best = 0;
    for (const Json& line : run.metrics) best = std::max(best, number(line, "test_accuracy").value_or(0));
    add("Test accuracy", accuracy, "percent", accuracy && best > *accuracy ? fmt::format("best {:.2f} %", 100 * best) : "");
    if (!accuracy) add("Test loss", last(run.metrics, "epoch", "test_loss"), "");
    add("R²", last(run.metrics, "epoch", "test_r2"), "", "on the test split");
    add("Intersection over union", last(run.metrics, "epoch", "test_mean_iou"), "percent", "mean over classes");
    const auto loss = last(run.metrics, "step", "loss");
    add("Training loss", loss ? loss : last(run.metrics, "epoch", "loss"), "", loss ? "of the last steps" : "of the last epoch");
    const auto rate = median_throughput(run.metrics);
    add("Samples per second", rate, "count", "median");
    if (rate) add("Time of a step", static_cast<double>(whole(run.config, "batch")) / *rate * 1e3, "ms", "median, with waiting for data");
    if (run.placement) {
        int64_t most = 0;
        for (const Json& rank : fields::list(*run.placement, "ranks"))
            most = std::max(most, whole(rank, "arena_bytes") + whole(rank, "state_bytes"));
        if (most > 0) add("Memory of a rank", static_cast<double>(most), "bytes", "as planned for a step");
    }
}

void add_fact(ReportData& data, const std::string& label, const std::string& value) {
    if (!value.empty()) data.facts.push_back({label, value});
}
std::string count_text(const Json& json, const char* name) {
    const auto value = number(json, name);
    return value ? fmt::format("{:.12g}", *value) : "";
}

void add_facts(const RunSources& run, ReportData& data) {
    const Json& config = run.config;
    add_fact(data, "model", text(config, "model"));
    add_fact(data, "data", text(fields::object(config, "data"), "name"));
    add_fact(data, "batch", count_text(config, "batch"));
    if (whole(config, "micro_batches", 1) > 1) add_fact(data, "micro-batches", count_text(config, "micro_batches"));
    add_fact(data, "epochs", count_text(config, "epochs"));
    const int64_t ranks = whole(config, "ranks", 1);
    add_fact(data, "ranks", fmt::format("{}", ranks));
    if (ranks > 1) add_fact(data, "plan", text(config, "plan").empty() ? "by samples" : text(config, "plan"));
    add_fact(data, "backend", text(config, "backend"));
    add_fact(data, "compute type", text(config, "dtype"));
    add_fact(data, "threads of a rank", count_text(config, "threads"));
    add_fact(data, "seed", count_text(config, "seed"));
}

// The point that the details of a simulation are of.
const Json& last_point(const Json& simulation) {
    static const Json kNone = Json::object();
    const Json& points = fields::list(simulation, "points");
    return points.empty() ? kNone : points.back();
}

std::vector<std::pair<int64_t, int64_t>> counts_of(const Json& simulation) {
    std::vector<std::pair<int64_t, int64_t>> counts;
    for (const Json& entry : fields::list(last_point(simulation), "classes"))
        counts.emplace_back(whole(entry, "first"), whole(entry, "ranks", 1));
    return counts;
}

void add_timeline(const RunSources& run, ReportData& data) {
    std::vector<NamedTrace> traces;
    if (run.trace) traces.push_back({"measured", &*run.trace, {}});
    if (run.prediction && run.prediction->trace)
        traces.push_back({"predicted", &*run.prediction->trace, counts_of(run.prediction->document)});
    data.timeline = timeline_of(traces);
    if (!data.timeline) return;
    data.timeline->lead = run.trace ? "One step near the beginning of the run, instruction by instruction, on every queue of every rank. "
                                      "It was timed while it ran and ended with its own updates, which makes it slower than others whose "
                                      "gradients go on travelling while the next step begins."
                                    : "One step by itself as the simulator sees it.";
}

// The prediction whose number of ranks is the run's.
const Json* predicted_point(const RunSources& run) {
    if (!run.prediction) return nullptr;
    const Json* found = nullptr;
    for (const Json& point : fields::list(run.prediction->document, "points"))
        if (whole(point, "ranks", 1) == whole(run.config, "ranks", 1)) found = &point;
    return found;
}

void compare(const RunSources& run, ReportData& data) {
    const Json* const point = predicted_point(run);
    if (!point) return;
    Comparison comparison;
    const auto add = [&](const char* name, const char* unit, const std::optional<double>& measured,
                         const std::optional<double>& predicted) {
        if (measured && predicted) comparison.totals.push_back({name, unit, *measured, *predicted});
    };
    if (const auto rate = median_throughput(run.metrics))
        add("time of a step (median of the run)", "ms", static_cast<double>(whole(run.config, "batch")) / *rate * 1e3,
            number(*point, "step_ms"));
    if (data.timeline && data.timeline->tracks.size() == 2) {
        const auto &measured = data.timeline->tracks[0], &predicted = data.timeline->tracks[1];
        const StepParts &m = measured.ranks[0].parts, &p = predicted.ranks[0].parts;
        add("time of the traced step", "us", measured.span_us, predicted.span_us);
        add("forward, first rank", "us", m.forward_us, p.forward_us);
        add("backward, first rank", "us", m.backward_us, p.backward_us);
        add("update, first rank", "us", m.update_us, p.update_us);
        if (m.waiting_us > 0 || p.waiting_us > 0) add("waiting for traffic, first rank", "us", m.waiting_us, p.waiting_us);
        comparison.layers = layers_compared(*run.trace, *run.prediction->trace);
    }
    if (run.placement) {
        double most = 0;
        for (const Json& rank : fields::list(*run.placement, "ranks"))
            most = std::max(most, static_cast<double>(whole(rank, "arena_bytes") + whole(rank, "state_bytes")));
        add("memory of a rank (as planned)", "bytes", most, number(*point, "memory_bytes"));
    }
    if (!comparison.totals.empty()) data.comparison = std::move(comparison);
}

}  // namespace

ReportData report_of(const RunSources& run) {
    const std::string from = text(fields::object(run.config, "data"), "name");
    ReportData data{.kind = "run", .title = text(run.config, "model") + (from.empty() ? "" : " on " + from)};
    describe_state(run, data);
    add_figures(run, data);
    add_facts(run, data);
    data.curves = curves_of(run.metrics);
    if (data.curves.empty()) data.notes.emplace_back("The run has written no line of metrics yet, so there are no curves.");
    add_timeline(run, data);
    compare(run, data);
    if (run.memory) data.memory = memory_of(*run.memory, run.placement ? fields::list(*run.placement, "ranks") : Json::array());
    if (run.placement) data.plan = plan_of(*run.placement);
    return data;
}

ReportData report_of(const SimulationSources& simulation) {
    const Json& document = simulation.document;
    const std::string machine = text(document, "machine");
    ReportData data{.kind = "simulation", .title = text(document, "model") + (machine.empty() ? "" : " on " + machine)};
    data.scaling = scaling_of(document);
    const Json& points = fields::list(document, "points");
    const Json& point = last_point(document);
    const int64_t ranks = whole(point, "ranks", 1);
    const std::string at = fmt::format("at {} rank{}", ranks, plural(ranks));
    const auto add = [&](const char* label, const std::optional<double>& value, const char* unit) {
        if (value) data.figures.push_back({label, *value, unit, at});
    };
    if (const std::string failure = text(point, "failure"); !failure.empty()) data.notes.push_back(at + ": " + failure);
    add("Time of a step", number(point, "step_ms"), "ms");
    add("Samples per second", number(point, "samples_per_s"), "count");
    if (data.scaling) {
        const ScalingPoint& last = data.scaling->series[0].points.back();
        add("Efficiency", last.efficiency, "percent");
        add("Waiting for traffic", last.waiting_ms, "ms");
    }
    add("Memory of a rank", number(point, "memory_bytes"), "bytes");
    if (number(point, "joules").value_or(0) > 0) add("Energy of a step", number(point, "joules"), "joules");
    for (const char* name : {"model", "machine", "plan", "dtype"}) add_fact(data, name, text(document, name));
    add_fact(data, "batch", count_text(point, "batch"));
    add_fact(data, "ranks",
             points.size() <= 1 ? fmt::format("{}", ranks) : fmt::format("{} to {}", whole(points.front(), "ranks", 1), ranks));
    add_fact(data, "limited by", text(point, "limit"));
    if (const auto error = number(point, "error")) add_fact(data, "expected error of computations", fmt::format("{:.0f} %", 100 * *error));
    if (const auto share = number(point, "roofline_share"))
        add_fact(data, "not measured, from the roofline", fmt::format("{:.0f} %", 100 * *share));
    if (simulation.trace) data.timeline = timeline_of({{"predicted", &*simulation.trace, counts_of(document)}});
    if (data.timeline)
        data.timeline->lead = fmt::format("One step {} as the simulator sees it. Ranks that do the same are drawn once.", at);
    if (simulation.memory) data.memory = memory_of(*simulation.memory, fields::list(point, "classes"));
    if (simulation.placement) data.plan = plan_of(*simulation.placement);
    return data;
}

ReportData read_report(const std::filesystem::path& path) {
    namespace fs = std::filesystem;
    std::error_code none;
    const bool simulation = !is_run(path) && (!fs::is_directory(path, none) || fs::exists(path / "simulation.json", none));
    ReportData data = simulation ? report_of(read_simulation(path)) : report_of(read_run(path));
    data.source = path.string();
    return data;
}

}  // namespace convoy
