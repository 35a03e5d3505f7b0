#include "app/machine.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include <omp.h>
#include <unistd.h>

namespace convoy {

namespace {

// The lines "key : value" of a file of /proc.
std::vector<std::pair<std::string, std::string>> fields_of(const char* path) {
    std::vector<std::pair<std::string, std::string>> fields;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        const size_t colon = line.find(':');
        if (colon == std::string::npos) continue;
        const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
        const size_t value = line.find_first_not_of(" \t", colon + 1);
        fields.emplace_back(key, value == std::string::npos ? "" : line.substr(value));
    }
    return fields;
}

// The first words of a control group's file; "max" and a missing file are no limit.
double limit_in(const char* path, bool ratio) {
    std::ifstream file(path);
    double value = 0, period = 1;
    if (!(file >> value)) return 0;
    if (ratio && !(file >> period)) return 0;
    return value / period;
}

void read_processor(MachineInfo& info) {
    std::set<std::string> cores;
    std::string package;
    std::set<std::string> flags;
    for (const auto& [key, value] : fields_of("/proc/cpuinfo")) {
        if (key == "model name" && info.processor.empty()) info.processor = value;
        if (key == "physical id") package = value;
        if (key == "core id") cores.insert(package + ":" + value);
        if ((key == "flags" || key == "Features") && flags.empty()) {
            std::istringstream words(value);
            for (std::string word; words >> word;) flags.insert(word);
        }
    }
    info.cores = static_cast<int>(cores.size());
    for (const char* const name :
         {"sse4_2", "avx", "fma", "avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "asimd", "sve", "bf16"})
        if (flags.count(name) > 0) info.simd.emplace_back(name);
}

void read_memory(MachineInfo& info) {
    for (const auto& [key, value] : fields_of("/proc/meminfo")) {
        const int64_t bytes = std::strtoll(value.c_str(), nullptr, 10) * 1024;
        if (key == "MemTotal") info.memory = bytes;
        if (key == "MemAvailable") info.available = bytes;
    }
    const auto limit = static_cast<int64_t>(limit_in("/sys/fs/cgroup/memory.max", false));
    if (limit <= 0 || limit >= info.memory) return;
    const auto used = static_cast<int64_t>(limit_in("/sys/fs/cgroup/memory.current", false));
    info.memory = limit;
    info.available = std::min(info.available, std::max<int64_t>(0, limit - used));
}

double quota() { return limit_in("/sys/fs/cgroup/cpu.max", true); }

}  // namespace

MachineInfo machine_info() {
    MachineInfo info;
    info.cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
    // OpenMP's count is of the mask that the process began with: with OMP_PROC_BIND the mask of this thread has shrunk to one place by now.
    info.allowed = omp_get_num_procs();
    info.quota = quota();
    read_processor(info);
    read_memory(info);
    for (const char* const name :
         {"OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES", "OMP_WAIT_POLICY", "OMP_DYNAMIC", "OMP_THREAD_LIMIT", "GOMP_CPU_AFFINITY",
          "GOMP_SPINCOUNT", "KMP_AFFINITY", "KMP_BLOCKTIME", "OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS", "CUDA_VISIBLE_DEVICES"})
        if (const char* const value = std::getenv(name)) info.variables.emplace_back(name, value);
    return info;
}

int usable_cores() {
    const double granted = quota();
    const int allowed = std::max(1, omp_get_num_procs());
    return granted > 0 ? std::clamp(static_cast<int>(std::ceil(granted)), 1, allowed) : allowed;
}

}  // namespace convoy
