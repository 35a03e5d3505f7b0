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

}  // namespace

CollectiveSetting setting_of(const Transport& transport) {
    std::string machine = machine_info().processor;
    if (transport.name() == "mpi") machine += "; " + mpi_status().detail;
    return {transport.name(), transport.nodes(), machine};
}

std::filesystem::path cache_file(const CollectiveSetting& setting) {
    return cache_directory() / fmt::format("collectives-{}-{}.json", setting.transport, spread(setting.nodes));
}

void save(const CollectiveSetting& setting, const CollectiveTable& table) {
    const std::filesystem::path path = cache_file(setting);
    std::error_code failed;
    std::filesystem::create_directories(path.parent_path(), failed);
    require(!failed, "cannot make {}: {}", path.parent_path().string(), failed.message());
    Json document = to_json(table);
    document["machine"] = setting.machine;
    write_file(path, document.dump(1) + "\n");
}

CollectiveTable known_table(const CollectiveSetting& setting) {
    CollectiveTable table = CollectiveTable::defaults(setting.transport);
    std::filesystem::path path;
    try {
        path = cache_file(setting);
        std::error_code none;
        if (!std::filesystem::exists(path, none)) return table;
        const Json document = Json::parse(read_file(path));
        const std::string machine = document.value("machine", "");
        require(machine == setting.machine, "it was measured on \"{}\", and this is \"{}\"", machine, setting.machine);
        table.replace(collective_table_from_json(document));
    } catch (const std::exception& e) {
        if (!path.empty()) warn("{} is ignored: {}; `convoy bench comm` measures it anew", path.string(), e.what());
    }
    return table;
}

}  // namespace convoy
