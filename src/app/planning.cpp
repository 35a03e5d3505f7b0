#include "app/planning.h"

#include <algorithm>
#include <filesystem>

#include "app/options.h"
#include "app/parser.h"
#include "base/file.h"
#include "base/parse_json.h"
#include "base/suggest.h"
#include "plan/roofline_target.h"

namespace convoy {

void add_machine_options(Parser& parser, MachineOptions& options, bool required) {
    parser
        .add_option("--machine", options.machine,
                    fmt::format("A file made by `convoy profile` or by hand, or one of {}{}", fmt::join(machine_presets(), ", "),
                                required ? "" : " (default: this machine, where it was profiled, else cpu10g)"))
        ->option_text("FILE|NAME")
        ->required(required);
    parser.add_option("--network", options.network, "The link between nodes, by its name in the machine (default: the machine's own)")
        ->option_text("LINK");
    allow_whole(parser.add_option("--per-node", options.per_node, "Ranks on a node (default: one for each device)")->option_text("N"), 1);
}

namespace {

Machine read_machine(const std::string& text) {
    if (!std::filesystem::exists(text)) {
        const auto presets = machine_presets();
        if (text.find_first_of("/.") != std::string::npos)
            fail("there is no machine file \"{}\"; `convoy profile --output {}` makes one, and {} are known by name", text, text,
                 fmt::join(presets, ", "));
        return machine_preset(text);
    }
    try {
        return machine_from_json(parse_json(read_file(text), "its text"));
    } catch (const Error& e) {
        fail("the machine file \"{}\": {}", text, e.what());
    }
}

}  // namespace

Machine load_machine(const MachineOptions& options) {
    Machine machine = read_machine(options.machine);
    if (!options.network.empty()) {
        std::vector<std::string> names;
        for (const LinkKind& l : machine.links) names.push_back(l.name);
        const auto at = std::find(names.begin(), names.end(), options.network);
        require(at != names.end(), "the machine \"{}\" has no link \"{}\"; there are {}{}", machine.name, options.network,
                fmt::join(names, ", "), did_you_mean(options.network, names));
        machine.network = static_cast<int>(at - names.begin());
    }
    // Fewer ranks than devices on a node: where cores are divided so, the hosts are parts of one board.
    if (options.per_node > 0)
        for (NodeKind& node : machine.nodes) {
            require(options.per_node <= node.devices, "a node \"{}\" has {} devices, not {}", node.name, node.devices, options.per_node);
            if (machine.devices[static_cast<size_t>(node.device)].joins && node.count > 0) {
                node.crowd *= node.devices / options.per_node;
                node.count *= node.devices / options.per_node;
            }
            node.devices = options.per_node;
        }
    validate(machine);
    return machine;
}

MachineTarget::MachineTarget(const Machine& machine, int threads) {
    if (machine.target == "roofline") {
        own_ = std::make_unique<RooflineTarget>(machine.devices[static_cast<size_t>(machine.nodes[0].device)]);
        target_ = own_.get();
        return;
    }
    try {
        backend_ = make_backend(machine.target, {.threads = threads});
    } catch (const Error& e) {
        fail("the machine \"{}\" was measured with the backend \"{}\", which is not here: {}", machine.name, machine.target, e.what());
    }
    target_ = &backend_->target();
}

}  // namespace convoy
