#include "app/command.h"
#include "app/parser.h"

namespace convoy {

Parser& add_bench(Parser& program) {
    Parser* group = program.add_subcommand("bench", "Measure what this machine does.");
    group->require_subcommand(1, 1);
    return *group;
}

}  // namespace convoy
