// What the operating system says of this machine, and of what this process may use of it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace convoy {

struct MachineInfo {
    std::string processor;                                       // its own name for itself
    int cpus = 0;                                                // logical processors that are online
    int cores = 0;                                               // physical cores, where the system says
    int allowed = 0;                                             // logical processors in the affinity mask of the process
    double quota = 0;                                            // processors' worth of time that the control group grants; 0: no limit
    std::vector<std::string> simd;                               // instruction sets that matter here, narrow to wide
    int64_t memory = 0, available = 0;                           // bytes; `memory` is the control group's limit where that is lower
    std::vector<std::pair<std::string, std::string>> variables;  // of the environment, that change how threads run
};

MachineInfo machine_info();

// How many threads a computation may well use: the affinity mask, and the control group's quota where there is one. At least 1.
int usable_cores();

}  // namespace convoy
