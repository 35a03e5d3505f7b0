#include "plan/machine.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "base/suggest.h"

namespace convoy {

namespace {

// What a number must lie in to be believed. Wide: it catches a slipped unit, not an odd machine.
struct Range {
    double low, high;
    const char* unit;
};
constexpr Range kRate{1e6, 1e18, "operations a second"}, kBandwidth{1e3, 1e15, "bytes a second"}, kSeconds{0, 10, "seconds"},
    kMemory{1 << 20, 1e15, "bytes"}, kWatts{0, 1e6, "watts"}, kPrice{0, 1e6, "an hour"}, kShare{0, 1, "of a device"},
    kTimes{1, 100, "times"};

void check(const std::string& where, double value, const Range& range) {
    require(std::isfinite(value) && value >= range.low && value <= range.high, "{} is {}, expected {} to {} {}", where, value, range.low,
            range.high, range.unit);
}

void check_index(const std::string& where, int index, size_t size) {
    require(index >= 0 && index < static_cast<int>(size), "{} refers to entry {}, but there are {}", where, index, size);
}

// One object of the document, whose fields are asked for by name; errors say where.
class Fields {
  public:
    Fields(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
        require(json.is_object(), "{} is {}, expected an object", where_, json.type_name());
    }
    ~Fields() = default;
    Fields(const Fields&) = delete;
    Fields& operator=(const Fields&) = delete;

    template <class T>
    T at(const char* name) {
        known_.emplace_back(name);
        require(json_.contains(name), "{} has no \"{}\"", where_, name);
        return value<T>(name);
    }
    template <class T>
    T at(const char* name, T otherwise) {
        known_.emplace_back(name);
        return json_.contains(name) ? value<T>(name) : otherwise;
    }
    const Json& child(const char* name, const Json& otherwise) {
        known_.emplace_back(name);
        return json_.contains(name) ? json_.at(name) : otherwise;
    }
    // Refuses what nobody asked for: a mistyped name must not pass for a default.
    void done() const {
        for (const auto& [key, unused] : json_.items()) {
            if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
            fail("{} has an unknown field \"{}\"{}", where_, key, did_you_mean(key, known_));
        }
    }

  private:
    template <class T>
    T value(const char* name) const {
        try {
            return json_.at(name).get<T>();
        } catch (const Json::exception&) {
            constexpr bool number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;
            fail("{}: \"{}\" is {}, expected {}", where_, name, json_.at(name).dump(),
                 number                    ? "a number"
                 : std::is_same_v<T, bool> ? "true or false"
                                           : "a text");
        }
    }
    const Json& json_;
    std::string where_;
    std::vector<std::string> known_;
};

template <class Kind>
int index_of(const std::vector<Kind>& list, const std::string& name, const std::string& where, const char* what) {
    std::vector<std::string> names;
    for (size_t i = 0; i < list.size(); ++i) {
        if (list[i].name == name) return static_cast<int>(i);
        names.push_back(list[i].name);
    }
    fail("{} names the {} \"{}\"; there are {}", where, what, name, fmt::join(names, ", "));
}

DeviceKind device_from_json(const Json& json, size_t i) {
    Fields f(json, fmt::format("devices[{}]", i));
    DeviceKind d{.name = f.at<std::string>("name"),
                 .memory_bytes = static_cast<int64_t>(f.at<double>("memory_bytes")),
                 .memory_bandwidth = f.at<double>("memory_bandwidth"),
                 .launch_seconds = f.at<double>("launch_seconds", 0),
                 .half_elements = f.at<double>("half_elements", 0),
                 .idle_watts = f.at<double>("idle_watts", 0),
                 .busy_watts = f.at<double>("busy_watts", 0),
                 .joins = f.at<bool>("joins", false)};
    const Json rates = f.child("rates", Json::object());
    for (const auto& [name, rate] : rates.items()) {
        Fields r(rate, fmt::format("devices[{}].rates.{}", i, name));
        d.rates.push_back({dtype_named(name), r.at<double>("peak"), r.at<double>("measured", 0)});
        r.done();
    }
    f.done();
    return d;
}

LinkKind link_from_json(const Json& json, size_t i) {
    Fields f(json, fmt::format("links[{}]", i));
    LinkKind l{.name = f.at<std::string>("name"),
               .latency = f.at<double>("latency"),
               .bandwidth = f.at<double>("bandwidth"),
               .shared = f.at<bool>("shared", false),
               .combine_bandwidth = f.at<double>("combine_bandwidth", 0),
               .compute_share = f.at<double>("compute_share", 0),
               .in_step = {.latency = f.at<double>("latency_in_step", 1), .transfer = f.at<double>("transfer_in_step", 1)}};
    f.done();
    return l;
}

NodeKind node_from_json(const Json& json, size_t i, const Machine& machine) {
    const std::string where = fmt::format("nodes[{}]", i);
    Fields f(json, where);
    NodeKind n{.name = f.at<std::string>("name"),
               .count = f.at<int64_t>("count", 0),
               .devices = f.at<int>("devices"),
               .device = index_of(machine.devices, f.at<std::string>("device"), where, "device"),
               .inside = index_of(machine.links, f.at<std::string>("inside"), where, "link"),
               .crowd = f.at<int>("crowd", 1),
               .price_per_hour = f.at<double>("price_per_hour", 0),
               .memory_bandwidth = f.at<double>("memory_bandwidth", 0),
               .watts = f.at<double>("watts", 0)};
    f.done();
    return n;
}

}  // namespace

void validate(const Machine& machine) {
    require(!machine.devices.empty() && !machine.links.empty() && !machine.nodes.empty(),
            "a machine needs devices, links and nodes; there are {}, {} and {}", machine.devices.size(), machine.links.size(),
            machine.nodes.size());
    for (const DeviceKind& d : machine.devices) {
        const auto where = [&](const char* field) { return fmt::format("device \"{}\": {}", d.name, field); };
        require(!d.rates.empty(), "device \"{}\" has no rates: expected operations a second for at least one type, such as f32", d.name);
        for (const auto& r : d.rates) {
            check(where(fmt::format("the peak rate in {}", name_of(r.dtype)).c_str()), r.peak, kRate);
            if (r.measured == 0) continue;
            check(where(fmt::format("the measured rate in {}", name_of(r.dtype)).c_str()), r.measured, kRate);
            require(r.measured <= 1.5 * r.peak, "device \"{}\" was measured at {:.3g} operations a second in {}, above its peak of {:.3g}",
                    d.name, r.measured, name_of(r.dtype), r.peak);
        }
        check(where("memory_bytes"), static_cast<double>(d.memory_bytes), kMemory);
        check(where("memory_bandwidth"), d.memory_bandwidth, kBandwidth);
        check(where("launch_seconds"), d.launch_seconds, kSeconds);
        check(where("half_elements"), d.half_elements, {0, 1e12, "elements"});
        check(where("idle_watts"), d.idle_watts, kWatts);
        check(where("busy_watts"), d.busy_watts, kWatts);
        require(d.busy_watts >= d.idle_watts || d.busy_watts == 0, "device \"{}\" takes {} W when idle and {} W when busy", d.name,
                d.idle_watts, d.busy_watts);
    }
    for (const LinkKind& l : machine.links) {
        const auto where = [&](const char* field) { return fmt::format("link \"{}\": {}", l.name, field); };
        check(where("latency"), l.latency, kSeconds);
        check(where("bandwidth"), l.bandwidth, kBandwidth);
        if (l.combine_bandwidth != 0) check(where("combine_bandwidth"), l.combine_bandwidth, kBandwidth);
        check(where("compute_share"), l.compute_share, kShare);
        check(where("latency_in_step"), l.in_step.latency, kTimes);
        check(where("transfer_in_step"), l.in_step.transfer, kTimes);
    }
    for (size_t i = 0; i < machine.nodes.size(); ++i) {
        const NodeKind& n = machine.nodes[i];
        require(n.count >= 0 && (n.count > 0 || i + 1 == machine.nodes.size()),
                "nodes \"{}\": count is {}; expected at least 1, or 0 (as many as are asked for) in the last kind", n.name, n.count);
        require(n.devices >= 1 && n.devices <= 4096, "nodes \"{}\": devices is {}, expected 1 to 4096", n.name, n.devices);
        require(n.crowd >= 1, "nodes \"{}\": crowd is {}, expected at least 1", n.name, n.crowd);
        check_index(fmt::format("nodes \"{}\": device", n.name), n.device, machine.devices.size());
        check_index(fmt::format("nodes \"{}\": inside", n.name), n.inside, machine.links.size());
        check(fmt::format("nodes \"{}\": price_per_hour", n.name), n.price_per_hour, kPrice);
        check(fmt::format("nodes \"{}\": watts", n.name), n.watts, kWatts);
        if (n.memory_bandwidth != 0) check(fmt::format("nodes \"{}\": memory_bandwidth", n.name), n.memory_bandwidth, kBandwidth);
    }
    check_index("network", machine.network, machine.links.size());
}

Json to_json(const Machine& m) {
    Json devices = Json::array(), links = Json::array(), nodes = Json::array(), kernels = Json::array(), collectives = Json::array();
    for (const DeviceKind& d : m.devices) {
        Json rates = Json::object();
        for (const auto& r : d.rates) rates[std::string(name_of(r.dtype))] = {{"peak", r.peak}, {"measured", r.measured}};
        devices.push_back({{"name", d.name},
                           {"rates", rates},
                           {"memory_bytes", d.memory_bytes},
                           {"memory_bandwidth", d.memory_bandwidth},
                           {"launch_seconds", d.launch_seconds},
                           {"half_elements", d.half_elements},
                           {"idle_watts", d.idle_watts},
                           {"busy_watts", d.busy_watts},
                           {"joins", d.joins}});
    }
    for (const LinkKind& l : m.links)
        links.push_back({{"name", l.name},
                         {"latency", l.latency},
                         {"bandwidth", l.bandwidth},
                         {"shared", l.shared},
                         {"combine_bandwidth", l.combine_bandwidth},
                         {"compute_share", l.compute_share},
                         {"latency_in_step", l.in_step.latency},
                         {"transfer_in_step", l.in_step.transfer}});
    for (const NodeKind& n : m.nodes)
        nodes.push_back({{"name", n.name},
                         {"count", n.count},
                         {"devices", n.devices},
                         {"device", m.devices[static_cast<size_t>(n.device)].name},
                         {"inside", m.links[static_cast<size_t>(n.inside)].name},
                         {"crowd", n.crowd},
                         {"price_per_hour", n.price_per_hour},
                         {"memory_bandwidth", n.memory_bandwidth},
                         {"watts", n.watts}});
    for (const KernelSample& s : m.kernels) kernels.push_back(to_json(s));
    for (const CollectiveSample& s : m.collectives) collectives.push_back(to_json(s));
    return {{"name", m.name},     {"target", m.target},
            {"devices", devices}, {"links", links},
            {"nodes", nodes},     {"network", m.links[static_cast<size_t>(m.network)].name},
            {"kernels", kernels}, {"collectives", collectives}};
}

Machine machine_from_json(const Json& json) {
    const Json none = Json::array();
    Fields f(json, "the machine");
    Machine m{.name = f.at<std::string>("name"), .target = f.at<std::string>("target", "roofline")};
    const auto each = [&](const char* name, auto&& add) {
        const Json& list = f.child(name, none);
        require(list.is_array(), "the machine: \"{}\" is {}, expected a list", name, list.type_name());
        for (size_t i = 0; i < list.size(); ++i) add(list[i], i);
    };
    each("devices", [&](const Json& j, size_t i) { m.devices.push_back(device_from_json(j, i)); });
    each("links", [&](const Json& j, size_t i) { m.links.push_back(link_from_json(j, i)); });
    each("nodes", [&](const Json& j, size_t i) { m.nodes.push_back(node_from_json(j, i, m)); });
    each("kernels", [&](const Json& j, size_t) { m.kernels.push_back(kernel_sample_from_json(j)); });
    each("collectives", [&](const Json& j, size_t) { m.collectives.push_back(collective_sample_from_json(j)); });
    m.network = index_of(m.links, f.at<std::string>("network"), "the machine's network", "link");
    f.done();
    validate(m);
    return m;
}

// --- Where ranks sit ---

int64_t seats(const Machine& machine) {
    int64_t sum = 0;
    for (const NodeKind& n : machine.nodes) {
        if (n.count == 0) return -1;
        sum += n.count * n.devices;
    }
    return sum;
}

std::vector<Seat> seating(const Machine& machine, int ranks) {
    const int64_t all = seats(machine);
    require(ranks >= 1, "{} ranks cannot run", ranks);
    require(all < 0 || ranks <= all, "the machine \"{}\" has room for {} ranks, not {}", machine.name, all, ranks);
    std::vector<Seat> result;
    int64_t node = 0;
    for (size_t k = 0; k < machine.nodes.size(); ++k) {
        const NodeKind& kind = machine.nodes[k];
        for (int64_t i = 0; (kind.count == 0 || i < kind.count) && static_cast<int>(result.size()) < ranks; ++i, ++node) {
            const int here = std::min(kind.devices, ranks - static_cast<int>(result.size()));
            for (int d = 0; d < here; ++d) result.push_back({node, static_cast<int>(k), here});
        }
    }
    return result;
}

int64_t nodes_for(const Machine& machine, int ranks) { return seating(machine, ranks).back().node + 1; }

double price_per_second(const Machine& machine, int ranks) {
    double sum = 0;
    int64_t last = -1;
    for (const Seat& seat : seating(machine, ranks)) {
        if (seat.node == last) continue;
        last = seat.node;
        const double price = machine.nodes[static_cast<size_t>(seat.kind)].price_per_hour;
        if (price == 0) return 0;
        sum += price / 3600;
    }
    return sum;
}

}  // namespace convoy
