#include <CLI/App.hpp>

#include "app/command.h"

namespace convoy {

CLI::App& add_bench(CLI::App& program) {
    CLI::App* group = program.add_subcommand("bench", "Measure what this machine does");
    group->require_subcommand(1);
    return *group;
}

}  // namespace convoy
