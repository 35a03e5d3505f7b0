// Reports: `report` writes a page about a run or a simulation, `watch` serves the page of a run while it goes on.
#include <algorithm>
#include <ctime>
#include <filesystem>
#include <functional>
#include <mutex>

#include "app/build_info.h"
#include "app/command.h"
#include "app/options.h"
#include "app/output.h"
#include "app/parser.h"
#include "app/signals.h"
#include "app/table.h"
#include "base/file.h"
#include "base/json.h"
#include "report/page.h"
#include "report/report.h"
#include "report/server.h"

namespace convoy {

namespace {

namespace fs = std::filesystem;

struct ReportOptions {
    CommonOptions common;
    std::string source, output, predicted;
};
struct WatchOptions {
    std::string directory;
    ServerOptions server{.port = 8620};
};

std::string now_text() {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    std::array<char, 32> text{};
    std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local);
    return text.data();
}

void sign(ReportData& data) {
    data.made_by = "Convoy " + build_info().version;
    data.written = now_text();
}

// report.html in a directory; beside a file, the file's name with .html.
fs::path default_output(const fs::path& source) {
    return fs::is_directory(source) ? source / "report.html" : fs::path(source).replace_extension(".html");
}

std::vector<std::string> parts_of(const ReportData& data) {
    std::vector<std::string> parts;
    if (!data.curves.empty()) parts.emplace_back("curves");
    if (data.scaling) parts.emplace_back("scaling");
    if (data.timeline) parts.emplace_back("timeline");
    if (data.comparison) parts.emplace_back("predicted and measured");
    if (data.memory) parts.emplace_back("memory");
    if (data.plan) parts.emplace_back("plan");
    return parts;
}

ReportData data_of(const ReportOptions& options) {
    if (options.predicted.empty()) return read_report(options.source);
    require(is_run(options.source), "{} is no run directory: --predicted lays a simulation beside a run", options.source);
    RunSources run = read_run(options.source);
    run.prediction = read_simulation(options.predicted);
    ReportData data = report_of(run);
    data.source = options.source;
    return data;
}

int report(const ReportOptions& options) {
    const Output output(options.common.json);
    expect_files({{"--output", options.output}, {"--json", options.common.json}},
                 {{"RUN_OR_SIMULATION", options.source}, {"--predicted", options.predicted}});
    ReportData data = data_of(options);
    require(!parts_of(data).empty(), "{} holds nothing to draw yet: no line of metrics, no trace, no plan", options.source);
    sign(data);
    const std::string page = page_of(to_json(data));
    const fs::path path = options.output.empty() ? default_output(options.source) : fs::path(options.output);
    write_file(path, page);
    output.line("{}: {}, {}", path.string(), fmt::join(parts_of(data), ", "), short_bytes(static_cast<double>(page.size())));
    output.result({{"page", path.string()}, {"bytes", page.size()}, {"kind", data.kind}, {"parts", parts_of(data)}});
    return 0;
}

// The report of a run as it stands, read again only when a file of the run has changed.
class LiveReport {
  public:
    explicit LiveReport(fs::path directory) : directory_(std::move(directory)) { read(); }

    Json data() {
        const std::lock_guard lock(mutex_);
        if (const std::string now = version(); now != data_.value("version", "")) read();
        return data_;
    }

  private:
    // Sizes and times of the files that a report is made from, and whether somebody trains.
    std::string version() const {
        std::string text;
        for (const char* name :
             {"config.json", "metrics.jsonl", "placement.json", "memory.json", "trace.json", "prediction/simulation.json"}) {
            std::error_code none;
            const auto size = fs::file_size(directory_ / name, none);
            const auto time = fs::last_write_time(directory_ / name, none).time_since_epoch().count();
            if (!none) text += fmt::format("{}:{}:{} ", name[0], size, time);
        }
        return text + (is_running(directory_) ? "running" : "");
    }

    void read() {
        const std::string now = version();
        ReportData report = read_report(directory_);
        sign(report);
        data_ = to_json(report);
        data_["live"] = true;
        data_["version"] = now;
    }

    fs::path directory_;
    std::mutex mutex_;
    Json data_;
};

int watch(const WatchOptions& options) {
    require(is_run(options.directory), "{} is no run directory: it holds no config.json, which `convoy train` writes", options.directory);
    LiveReport live(options.directory);
    const StopSignals signals("");
    const Output output("");
    serve(
        options.server, [&] { return live.data(); },
        [&](const std::string& address) {
            output.line("{} is served at {} (Ctrl-C ends it)", options.directory, address);
            std::fflush(output.stream());
        },
        signals.stop());
    return 0;
}

}  // namespace

Command add_report(Parser& program) {
    Parser* const parser = program.add_subcommand("report", "");
    describe(
        *parser,
        "Write a page about a run or a simulation.\n"
        "One HTML file that needs no network: curves, the timeline of a step, memory over the step, scaling, predicted beside measured,\n"
        "and the plan as a drawn network; whatever of it the run or the simulation has.",
        "  convoy report runs/demo\n"
        "  convoy report runs/demo --predicted simulation --output demo.html\n"
        "  convoy report simulation");
    const auto options = std::make_shared<ReportOptions>();
    parser->add_option("RUN_OR_SIMULATION", options->source, "The directory of a run or of a simulation, or the document of one")
        ->option_text(" ")
        ->required();
    parser->add_option("--output", options->output, "The page (default: report.html in the run directory)")->option_text("PAGE.HTML");
    parser->add_option("--predicted", options->predicted, "A simulation to lay beside the run")->option_text("SIMULATION");
    add_json(*parser, options->common);
    return {parser, [options] { return report(*options); }};
}

Command add_watch(Parser& program) {
    Parser* const parser = program.add_subcommand("watch", "");
    describe(*parser,
             "Serve the page of a run while it trains.\n"
             "The page follows the run by itself. Only this machine can reach it unless --host says otherwise.",
             "  convoy watch runs/demo\n"
             "  convoy watch runs/demo --port 9000");
    const auto options = std::make_shared<WatchOptions>();
    parser->add_option("RUN_DIR", options->directory, "The directory of a run")->option_text(" ")->required();
    allow_whole(
        parser->add_option("--port", options->server.port, "Where to listen; 0: any port that is free (default: 8620)")->option_text("P"),
        0, 65535);
    parser->add_option("--host", options->server.host, "Address to listen on; 0.0.0.0 lets other machines in (default: 127.0.0.1)")
        ->option_text("IP");
    return {parser, [options] { return watch(*options); }};
}

}  // namespace convoy
