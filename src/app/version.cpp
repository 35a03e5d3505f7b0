#include "app/build_info.h"
#include "app/command.h"
#include "app/options.h"
#include "app/output.h"
#include "app/parser.h"
#include "base/json.h"

namespace convoy {

Command add_version(Parser& program) {
    Parser* const parser = program.add_subcommand("version", "Print the version");
    const auto options = std::make_shared<CommonOptions>();
    add_json(*parser, *options);
    return {parser, [options] {
                const Output output(options->json);
                output.line("convoy {}", build_info().version);
                output.result({{"version", build_info().version}});
                return 0;
            }};
}

}  // namespace convoy
