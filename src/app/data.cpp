#include <CLI/App.hpp>

#include "app/command.h"

namespace convoy {

CLI::App& add_data(CLI::App& program) {
    CLI::App* group = program.add_subcommand("data", "Look at datasets");
    group->require_subcommand(1);
    return *group;
}

}  // namespace convoy
