// What traffic between ranks costs here: `bench comm` times every algorithm of every collective through the queue that a training step uses, and keeps the
// winners for the runs to come.
#include <algorithm>
#include <cctype>
#include <numeric>

#include "app/collective_cache.h"
#include "app/command.h"
#include "app/options.h"
#include "app/output.h"
#include "app/parser.h"
#include "app/ranks.h"
#include "app/table.h"
#include "base/json.h"
#include "base/log.h"
#include "comm/measure.h"
#include "exec/share.h"
#include "exec/traffic.h"

namespace convoy {

namespace {

struct CommOptions {
    CommonOptions common;
    RankOptions ranks;
    std::vector<std::string> sizes{"1K", "4K", "16K", "64K", "256K", "1M", "4M", "16M", "64M"};
    std::vector<std::string> collectives{"all_reduce", "reduce_scatter", "all_gather"};
    std::vector<std::string> algorithms;
    double seconds = 0.2;
    bool no_save = false;
};

// "64K", "1M", "512"
int64_t parse_size(const std::string& text) {
    size_t digits = 0;
    while (digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits]))) ++digits;
    const std::string unit = text.substr(digits);
    const int64_t scale = unit.empty() ? 1 : unit == "K" ? 1 << 10 : unit == "M" ? 1 << 20 : unit == "G" ? 1 << 30 : 0;
    const int64_t bytes = digits == 0 || digits > 9 || scale == 0 ? 0 : std::stoll(text.substr(0, digits)) * scale;
    if (bytes < 4) throw UsageError(fmt::format("--sizes: \"{}\" is no size; expected bytes from 4 on, such as 512, 64K or 16M", text));
    return bytes;
}

std::string size_text(int64_t bytes) {
    for (const auto& [scale, unit] : {std::pair{int64_t{1} << 20, "MiB"}, std::pair{int64_t{1} << 10, "KiB"}})
        if (bytes % scale == 0) return fmt::format("{} {}", bytes / scale, unit);
    return fmt::format("{} B", bytes);
}

CollectiveMeasureOptions measure_options(const CommOptions& options) {
    CollectiveMeasureOptions result;
    result.kinds.clear();
    result.bytes.clear();
    for (const auto& name : options.collectives) result.kinds.push_back(traffic_named(name));
    for (const auto& size : options.sizes) result.bytes.push_back(parse_size(size));
    for (const auto& name : options.algorithms) result.algorithms.push_back(algorithm_named(name));
    result.seconds_each = options.seconds;
    // Through a queue with a thread of its own, as the traffic of a step.
    result.carrier = [](const std::function<void()>& work) {
        const auto queue = std::make_shared<TrafficQueue>();
        for (int i = 0; i < kMostAtOnce; ++i) queue->add(work);
        queue->start();
        return [queue](int times) {
            for (int i = 0; i < times; ++i) queue->post();
            queue->finish();
        };
    };
    return result;
}

// Whether the algorithms that were asked for leave out any: the fastest of them is then no choice for training.
bool narrows(const CollectiveMeasureOptions& options) {
    const auto& asked = options.algorithms;
    const auto left_out = [&](Algorithm a) { return std::find(asked.begin(), asked.end(), a) == asked.end(); };
    return !asked.empty() && std::any_of(options.kinds.begin(), options.kinds.end(), [&](Traffic kind) {
        const auto all = algorithms_of(kind);
        return std::any_of(all.begin(), all.end(), left_out);
    });
}

Json to_json(const CollectiveTime& t) {
    return {{"collective", name_of(t.kind)},     {"ranks", t.group_size}, {"one_node", t.one_node}, {"bytes", t.bytes},
            {"algorithm", name_of(t.algorithm)}, {"seconds", t.seconds}};
}
CollectiveTime time_from_json(const Json& json) {
    return {traffic_named(json.at("collective").get<std::string>()),  json.at("ranks"),  json.at("one_node"), json.at("bytes"),
            algorithm_named(json.at("algorithm").get<std::string>()), json.at("seconds")};
}

// The slowest of all groups that ran at the same time.
std::vector<CollectiveTime> merged(Link& link, int group_size, const std::vector<CollectiveTime>& mine) {
    std::vector<CollectiveTime> all;
    for (Rank leader = 0; leader < link.size(); leader += group_size) {
        Json times = Json::array();
        for (const CollectiveTime& t : mine) times.push_back(to_json(t));
        for (const Json& json : Json::parse(share_text(&link, leader, times.dump()))) {
            const CollectiveTime t = time_from_json(json);
            const auto same = std::find_if(all.begin(), all.end(), [&](const CollectiveTime& o) {
                return o.kind == t.kind && o.one_node == t.one_node && o.bytes == t.bytes && o.algorithm == t.algorithm;
            });
            if (same == all.end())
                all.push_back(t);
            else
                same->seconds = std::max(same->seconds, t.seconds);
        }
    }
    return all;
}

// This rank and those around it.
Communicator& neighbours(Link& link, int group_size) {
    std::vector<Rank> group(static_cast<size_t>(group_size));
    std::iota(group.begin(), group.end(), link.rank() / group_size * group_size);
    return link.communicator(Lane::Gradient, group);
}

// All groups of so many neighbours at the same time, as a plan with several axes has them.
std::vector<CollectiveTime> measure_groups(Link& link, int group_size, const CollectiveMeasureOptions& options) {
    return merged(link, group_size, measure(neighbours(link, group_size), options));
}

void print(const Output& output, const std::vector<CollectiveTime>& measured, const std::vector<CollectiveTime>& chosen,
           const CollectiveTable& table) {
    std::vector<Table::Column> columns{{"collective"}, {"ranks", Table::Align::Right}, {"size", Table::Align::Right}};
    std::vector<Algorithm> algorithms;
    for (const CollectiveTime& t : measured)
        if (std::find(algorithms.begin(), algorithms.end(), t.algorithm) == algorithms.end()) algorithms.push_back(t.algorithm);
    std::sort(algorithms.begin(), algorithms.end());
    for (const Algorithm a : algorithms) columns.push_back({std::string(name_of(a)), Table::Align::Right});
    columns.push_back({"training takes"});
    columns.push_back({"us", Table::Align::Right});
    columns.push_back({"GB/s", Table::Align::Right});
    Table text(columns);
    for (const CollectiveTime& c : chosen) {
        std::vector<std::string> row{std::string(name_of(c.kind)), std::to_string(c.group_size), size_text(c.bytes)};
        for (const Algorithm a : algorithms) {
            const auto found = std::find_if(measured.begin(), measured.end(), [&](const CollectiveTime& t) {
                return t.algorithm == a && t.kind == c.kind && t.group_size == c.group_size && t.one_node == c.one_node &&
                       t.bytes == c.bytes;
            });
            row.push_back(found == measured.end() ? "" : fmt::format("{:.1f}", found->seconds * 1e6));
        }
        row.emplace_back(name_of(table.choose(c.kind, c.group_size, c.one_node, c.bytes)));
        row.push_back(fmt::format("{:.1f}", c.seconds * 1e6));
        row.push_back(fmt::format("{:.2f}", static_cast<double>(c.bytes) / c.seconds / 1e9));
        text.add(row);
    }
    output.write(text.text());
}

void bench_rank(const CommOptions& options, const Output& output, Link& link) {
    CollectiveMeasureOptions with = measure_options(options);
    const CollectiveSetting setting = setting_of(link.transport());
    std::vector<int> sizes;
    for (int size = 2; size <= link.size(); ++size)
        if (link.size() % size == 0) sizes.push_back(size);
    output.line("{} ranks ({}), times in microseconds: the slowest rank's, medians", link.size(), setting.machine);
    if (link.rank() == 0)
        with.on_measured = [](const CollectiveTime& t) {
            if (t.algorithm == Algorithm::Library || t.algorithm == Algorithm::Auto)
                note("{} of {} among {} ranks ...", name_of(t.kind), size_text(t.bytes), t.group_size);
        };
    const bool only_chosen = with.algorithms == std::vector{Algorithm::Auto}, narrowed = narrows(with);
    std::vector<CollectiveTime> measured, chosen;
    CollectiveTable table = known_table(setting), winners;
    if (!only_chosen) {
        std::erase(with.algorithms, Algorithm::Auto);
        for (const int size : sizes)
            for (const CollectiveTime& t : measure_groups(link, size, with)) measured.push_back(t);
        winners = fastest(measured);
        table = CollectiveTable::defaults(link.transport().name());
        table.replace(winners);
    }
    with.algorithms = {Algorithm::Auto};
    for (const int size : sizes) {
        if (!only_chosen) neighbours(link, size).set_table(table);
        for (const CollectiveTime& t : measure_groups(link, size, with)) chosen.push_back(t);
    }
    if (link.rank() != 0) return;
    print(output, measured, chosen, table);
    Json document{{"transport", setting.transport}, {"between_nodes", setting.carrier}, {"ranks", link.size()},
                  {"machine", setting.machine},     {"measured", Json::array()},        {"training", Json::array()}};
    for (const CollectiveTime& t : measured) document["measured"].push_back(to_json(t));
    for (const CollectiveTime& t : chosen) {
        document["training"].push_back(to_json(t));
        document["training"].back()["algorithm"] = name_of(table.choose(t.kind, t.group_size, t.one_node, t.bytes));
    }
    if (!options.no_save && !only_chosen && narrowed)
        output.line("not kept for later runs: --algorithms leaves out some, and training chooses among all");
    if (!options.no_save && !only_chosen && !narrowed) {
        save(setting, winners);
        output.line("kept for runs of {} ranks on this machine: {}", link.size(), cache_file(setting).string());
        document["cache"] = cache_file(setting).string();
    }
    output.result(document);
}

int bench_comm(const CommOptions& options) {
    measure_options(options);  // before anything starts
    return run_with_ranks(options.ranks, [&](Ranks& ranks) {
        const int size = ranks.launched() > 0 ? ranks.launched() : std::max(options.ranks.ranks, 1);
        if (size < 2) throw UsageError("bench comm needs at least 2 ranks: give --ranks 2, or start it with mpirun -n 2");
        const Output output(options.common.json, !ranks.leads());
        ranks.run(size, [&](Link* link) {
            const Output quiet("", true);
            bench_rank(options, link->rank() == 0 ? output : quiet, *link);
        });
        return 0;
    });
}

}  // namespace

Command add_bench_comm(Parser& group) {
    Parser* parser = group.add_subcommand("comm", "");
    auto options = std::make_shared<CommOptions>();
    add_json(*parser, options->common);
    add_rank_count(*parser, options->ranks);
    add_hang_timeout(*parser, options->ranks);
    add_between_nodes(*parser, options->ranks);
    parser->add_option("--sizes", options->sizes, "Sizes of the whole vector, in bytes: 512, 64K, 16M")
        ->delimiter(',')
        ->capture_default_str();
    parser->add_option("--collectives", options->collectives, "Which: all_reduce, reduce_scatter, all_gather, broadcast")
        ->delimiter(',')
        ->capture_default_str();
    parser
        ->add_option("--algorithms", options->algorithms,
                     "Which (default: all that there are); auto alone measures what training would take now")
        ->delimiter(',');
    allow_real(parser->add_option("--seconds", options->seconds, "Time spent on each algorithm and size (default: 0.2)")->option_text("S"),
               {.low = 0, .high = 3600});
    parser->add_flag("--no-save", options->no_save, "Do not keep the winners for later runs");
    describe(*parser,
             "Time the traffic between ranks.\n"
             "Every algorithm of every collective, in groups of every size that divides the ranks, through the queue that a training step "
             "uses.\n"
             "The fastest of each are kept (in $CONVOY_CACHE or the user's cache directory), beside those of earlier measurements, and "
             "taken by later runs of as "
             "many ranks.",
             "  convoy bench comm --ranks 2\n"
             "  mpirun -n 4 convoy bench comm --sizes 64K,1M,64M --json comm.json");
    return {parser, [options] { return bench_comm(*options); }};
}

}  // namespace convoy
