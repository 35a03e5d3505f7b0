#include "app/collective_cache.h"

#include <algorithm>

#include "app/machine.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "comm/launch.h"

namespace convoy {

namespace {

// "4+4": the ranks of each node.
std::string spread(const std::vector<int>& nodes) {
    std::vector<int> ranks(static_cast<size_t>(*std::max_element(nodes.begin(), nodes.end())) + 1);
    for (const int node : nodes) ++ranks[static_cast<size_t>(node)];
    return fmt::format("{}", fmt::join(ranks, "+"));
}

// What a file of this setting holds. Error when it is of another one.
CollectiveTable kept_in(const std::string& text, const CollectiveSetting& setting) {
    const Json document = Json::parse(text);
    const bool one_node = std::count(setting.nodes.begin(), setting.nodes.end(), 0) == static_cast<std::ptrdiff_t>(setting.nodes.size());
    const std::string machine = document.value("machine", ""),
                      carrier = document.value("carrier", one_node ? setting.carrier : "unknown ways");
    require(machine == setting.machine, "it was measured on \"{}\", and this is \"{}\"", machine, setting.machine);
    require(carrier == setting.carrier, "it was measured with messages between machines by {}, and here they go by {}", carrier,
            setting.carrier);
    return collective_table_from_json(document);
}

}  // namespace

CollectiveSetting setting_of(const Transport& transport) {
    std::string machine = machine_info().processor;
    if (transport.name() == "mpi") machine += "; " + mpi_status().detail;
    return {transport.name(), transport.between_nodes(), transport.nodes(), machine};
}

std::filesystem::path cache_file(const CollectiveSetting& setting) {
    const std::string by = setting.carrier == setting.transport ? "" : "-" + setting.carrier;
    return cache_directory() / fmt::format("collectives-{}{}-{}.json", setting.transport, by, spread(setting.nodes));
}

void save(const CollectiveSetting& setting, const CollectiveTable& table) {
    update_file(cache_file(setting), [&](const std::optional<std::string>& held) {
        CollectiveTable all;
        try {
            if (held) all = kept_in(*held, setting);
        } catch (const std::exception&) {  // of another machine, or damaged: it would be ignored anyway
        }
        for (const CollectiveTable::Entry& entry : table.entries()) all.set(entry);
        Json document = to_json(all);
        document["machine"] = setting.machine;
        document["carrier"] = setting.carrier;
        return document.dump(1) + "\n";
    });
}

CollectiveTable known_table(const CollectiveSetting& setting) {
    CollectiveTable table = CollectiveTable::defaults(setting.transport);
    std::filesystem::path path;
    try {
        path = cache_file(setting);
        std::error_code none;
        if (!std::filesystem::exists(path, none)) return table;
        table.replace(kept_in(read_file(path), setting));
    } catch (const std::exception& e) {
        if (!path.empty()) warn("{} is ignored: {}; `convoy bench comm` measures it anew", path.string(), e.what());
    }
    return table;
}

}  // namespace convoy
