#include "app/auto_plan.h"

#include "app/search_report.h"
#include "app/table.h"
#include "base/error.h"
#include "base/file.h"

namespace convoy {

namespace {

constexpr const char* kDefault = "cpu10g";

}  // namespace

std::filesystem::path profile_file() { return cache_directory() / "machine.json"; }

PlanningMachine planning_machine(const MachineOptions& options, int threads) {
    PlanningMachine on;
    MachineOptions named = options;
    std::error_code ignored;
    if (!options.machine.empty()) {
        on.description = fmt::format("machine {}", options.machine);
    } else if (std::filesystem::is_regular_file(profile_file(), ignored)) {
        named.machine = profile_file().string();
        on.description = "this machine, as profiled";
    } else {
        named.machine = kDefault;
        on.description = fmt::format("machine {}, because nothing is known of this one (`convoy profile --output {}` measures it)",
                                     kDefault, profile_file().string());
    }
    on.machine = load_machine(named);
    on.target = std::make_unique<MachineTarget>(on.machine, std::max(1, threads));
    return on;
}

AutoPlan auto_plan(const Graph& graph, int64_t batch, const PlanningMachine& on, const SearchOptions& options) {
    const SearchResult found = search_plan(graph, on.machine, on.target->target(), options);
    require(found.best.fits,
            "no plan for {} rank{} fits: a rank may use {}, and what needs least ({}) needs {}; more ranks, more micro-batches or a "
            "smaller batch need less",
            options.ranks, options.ranks == 1 ? "" : "s", short_bytes(static_cast<double>(found.memory_limit)), found.best.name,
            short_bytes(static_cast<double>(found.best.memory)));
    return {found.best.plan,
            fmt::format("Plan found for {}:\n{}", on.description, summary(found, {.batch = batch, .ranks = options.ranks}))};
}

}  // namespace convoy
