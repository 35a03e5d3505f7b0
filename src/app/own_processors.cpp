#include "app/own_processors.h"

#include <unistd.h>

#include <cstdlib>

#include "app/machine.h"
#include "exec/share.h"

namespace convoy {

namespace {

// The ranks of this machine, and how many of them come before this one.
struct Neighbours {
    int count = 0, before = 0;
};

Neighbours neighbours_of(Link& link) {
    const std::vector<int>& nodes = link.transport().nodes();
    Neighbours result;
    for (Rank r = 0; r < link.size(); ++r) {
        if (nodes[static_cast<size_t>(r)] != nodes[static_cast<size_t>(link.rank())]) continue;
        ++result.count;
        result.before += r < link.rank();
    }
    return result;
}

}  // namespace

void find_filled_machine(Link* link, int threads) {
    if (link == nullptr) return;
    const int here = neighbours_of(*link).count;
    // The first rank's processors count: a launcher may have given others more.
    link->set_fills_machine(here == link->size() && share_text(link, 0, here * threads >= usable_cores() ? "fills" : "") == "fills");
}

OwnProcessors::OwnProcessors(Link* link, int threads) {
    if (link == nullptr) return;
    find_filled_machine(link, threads);
    const auto [here, place] = neighbours_of(*link);
    for (const char* const variable : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"})
        if (std::getenv(variable) != nullptr) return;
    cpu_set_t all;
    if (sched_getaffinity(0, sizeof(all), &all) != 0) return;
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
