#include "app/own_processors.h"

#include <unistd.h>

#include <cstdlib>

#include "app/machine.h"

namespace convoy {

OwnProcessors::OwnProcessors(Link* link, int threads) {
    for (const char* const variable : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"})
        if (std::getenv(variable) != nullptr) return;
    cpu_set_t all;
    if (link == nullptr || sched_getaffinity(0, sizeof(all), &all) != 0) return;
    const std::vector<int>& nodes = link->transport().nodes();
    int here = 0, place = 0;  // ranks of this machine, and those of them that come before this one
    for (Rank r = 0; r < link->size(); ++r) {
        if (nodes[static_cast<size_t>(r)] != nodes[static_cast<size_t>(link->rank())]) continue;
        ++here;
        place += r < link->rank();
    }
    const int count = CPU_COUNT(&all);
    if (here * threads != count || count != usable_cores() || count != sysconf(_SC_NPROCESSORS_ONLN)) return;
    cpu_set_t own;
    CPU_ZERO(&own);
    for (int cpu = 0, number = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &all) && number++ / threads == place) CPU_SET(cpu, &own);
    if (sched_setaffinity(0, sizeof(own), &own) == 0) before_ = all;
}

OwnProcessors::~OwnProcessors() {
    if (before_) sched_setaffinity(0, sizeof(*before_), &*before_);
}

}  // namespace convoy
