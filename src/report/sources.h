// What a report is made from: the files of a run directory, or the document of a simulation. Reading only; what is drawn is decided elsewhere.
//
//     run directory    config.json, metrics.jsonl                               always
//                      placement.json, memory.json, trace.json                  where they are; `train` writes them
//                      prediction/                                              a simulation of this very run, where there is one
//     simulation       simulation.json                                          always; or that document alone, as a file
//                      placement.json, memory.json, trace.json                  of its last point, where they are
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "base/json.h"
#include "base/trace.h"

namespace convoy {

struct SimulationSources {
    Json document;  // as `convoy simulate` writes it: "points", each with "ranks", "step_ms", "classes" and so on, or "failure"
    std::optional<Json> placement, memory;
    std::optional<Trace> trace;
};

struct RunSources {
    Json config;
    std::vector<Json> metrics;  // the lines
    bool running = false;       // as is_running says
    std::optional<Json> placement, memory;
    std::optional<Trace> trace;
    std::optional<SimulationSources> prediction;
};

// Whether there is a run: a directory with a config.json.
bool is_run(const std::filesystem::path& path);
// Whether a process trains in a run directory now.
bool is_running(const std::filesystem::path& directory);

// Error names the file, and of metrics.jsonl the line, when something is missing or is not what it should be. A last line that is not finished is passed
// over: the run is writing it, or was killed then.
RunSources read_run(const std::filesystem::path& directory);

// Error says what was expected when `path` is no simulation.
SimulationSources read_simulation(const std::filesystem::path& path);

}  // namespace convoy
