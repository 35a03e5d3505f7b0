#include "app/simulation_files.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "exec/trace_log.h"
#include "program/memory_profile.h"

namespace convoy {

namespace fs = std::filesystem;

void open_simulation_directory(const fs::path& directory) {
    std::error_code failed;
    require(!fs::exists(directory / "config.json", failed), "{} holds a run; a simulation needs a directory of its own",
            directory.string());
    fs::create_directories(directory, failed);
    require(!failed, "cannot create {}: {}", directory.string(), failed.message());
    for (const char* name : {"simulation.json", "placement.json", "memory.json", "trace.json"}) fs::remove(directory / name, failed);
}

void write_simulated_step(const fs::path& directory, const SimulatedStep& step) {
    std::vector<RankReport> ranks;
    for (const RankClass& alike : step.classes) ranks.push_back(report_rank(alike.program));
    const PlanReport report = report_plan(step.graph, step.plan.plan, ranks);
    write_file(directory / "placement.json", placement_document(step.subject, step.plan, report).dump(1) + "\n");
    write_file(directory / "memory.json", to_json(memory_profile(step.classes.front().program)).dump() + "\n");
    write_file(directory / "trace.json", chrome_trace(trace_of(step.simulation.timeline)).dump() + "\n");
}

}  // namespace convoy
