#include "report/sources.h"

#include <fstream>
#include <string>

#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "base/parse_json.h"

namespace convoy {

namespace {

namespace fs = std::filesystem;

Json read_json(const fs::path& path) { return parse_json(read_file(path), path.string()); }

std::optional<Json> read_object_if_there(const fs::path& path) {
    if (!fs::exists(path)) return std::nullopt;
    Json json = read_json(path);
    require(json.is_object(), "{}: expected a JSON object, found {}", path.string(), json.type_name());
    return json;
}

std::vector<Json> read_lines(const fs::path& path) {
    const std::string text = read_file(path);
    std::vector<Json> lines;
    size_t begin = 0, number = 1;
    for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin), ++number) {
        const std::string line = text.substr(begin, end - begin);
        begin = end + 1;
        if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
        Json json = Json::parse(line, nullptr, false);
        require(json.is_object(), "{}: line {} is no JSON object: {}{}", path.string(), number, line.substr(0, 60),
                line.size() > 60 ? "..." : "");
        lines.push_back(std::move(json));
    }
    return lines;
}

std::optional<Trace> read_trace_if_there(const fs::path& path) {
    if (!fs::exists(path)) return std::nullopt;
    return trace_from_chrome(read_json(path), path.string());
}

}  // namespace

bool is_run(const fs::path& path) {
    std::error_code none;
    return fs::is_directory(path, none) && fs::exists(path / "config.json", none);
}

// The process that trains holds a lock (train/run_directory.h). The list of locks is read, because trying to take it could be in the way of a process
// that begins at that moment. Its lines end in "FLOCK ADVISORY WRITE pid major:minor:inode first last".
bool is_running(const fs::path& directory) {
    struct stat lock {};
    if (::stat((directory / "lock").c_str(), &lock) != 0) return false;
    const std::string inode = ":" + std::to_string(lock.st_ino) + " ";
    std::ifstream locks("/proc/locks");
    for (std::string line; std::getline(locks, line);)
        if (line.find("FLOCK") != std::string::npos && line.find("WRITE") != std::string::npos && line.find(inode) != std::string::npos)
            return true;
    return false;
}

RunSources read_run(const fs::path& directory) {
    require(fs::exists(directory), "{} does not exist; expected the directory of a run, or a simulation", directory.string());
    require(fs::is_directory(directory), "{} is a file; expected the directory of a run", directory.string());
    require(fs::exists(directory / "config.json"), "{} is no run directory: it holds no config.json, which `convoy train` writes",
            directory.string());
    const fs::path metrics = directory / "metrics.jsonl";
    require(fs::exists(metrics), "the run {} has no metrics: there is no metrics.jsonl in it", directory.string());
    RunSources run{.config = *read_object_if_there(directory / "config.json"),
                   .metrics = read_lines(metrics),
                   .running = is_running(directory),
                   .placement = read_object_if_there(directory / "placement.json"),
                   .memory = read_object_if_there(directory / "memory.json"),
                   .trace = read_trace_if_there(directory / "trace.json")};
    if (const fs::path prediction = directory / "prediction"; fs::exists(prediction)) run.prediction = read_simulation(prediction);
    return run;
}

SimulationSources read_simulation(const fs::path& path) {
    require(fs::exists(path), "{} does not exist; expected the directory of a run, or a simulation", path.string());
    require(!is_run(path), "{} is a run; expected a simulation, which `convoy simulate --output DIR` writes", path.string());
    const fs::path file = fs::is_directory(path) ? path / "simulation.json" : path;
    require(fs::exists(file), "{} is neither a run (it holds no config.json) nor a simulation (no simulation.json)", path.string());
    Json document = read_json(file);
    require(document.is_object() && document.contains("points") && document["points"].is_array(),
            "{} is no simulation: expected the document that `convoy simulate` writes, with a list of \"points\"", file.string());
    SimulationSources simulation{.document = std::move(document)};
    if (file == path) return simulation;
    simulation.placement = read_object_if_there(path / "placement.json");
    simulation.memory = read_object_if_there(path / "memory.json");
    simulation.trace = read_trace_if_there(path / "trace.json");
    return simulation;
}

}  // namespace convoy
