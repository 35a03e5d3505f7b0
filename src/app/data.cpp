#include "app/command.h"
#include "app/parser.h"

namespace convoy {

Parser& add_data(Parser& program) {
    Parser* group = program.add_subcommand("data", "Look at datasets, and make some to try things on.");
    group->require_subcommand(1, 1);
    return *group;
}

}  // namespace convoy
