// Machines by name. Round figures from makers' data sheets and publications, which differ among each other; none was measured for this project except the
// H200. Rates that a large convolution reaches are taken as 70 % of the peak where nobody said.
#include "base/error.h"
#include "base/suggest.h"
#include "plan/machine.h"

namespace convoy {

namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

struct Gpu {
    const char* name;
    double f32, tensor, tf32;  // peak, operations a second
    double bf16_measured;      // 0: not known
    double gib, bandwidth, idle, busy;
    double half_elements;  // about as many results as it has threads at once
};

DeviceKind gpu(const Gpu& g) {
    DeviceKind device{.name = g.name,
                      .rates = {{DType::f64, g.f32 / 2, 0}, {DType::f32, g.f32, 0}},
                      .memory_bytes = static_cast<int64_t>(g.gib * kGiB),
                      .memory_bandwidth = g.bandwidth,
                      .launch_seconds = 4e-6,
                      .half_elements = g.half_elements,
                      .idle_watts = g.idle,
                      .busy_watts = g.busy};
    if (g.tf32 > 0) device.rates.push_back({DType::tf32, g.tf32, 0});
    device.rates.push_back({g.tf32 > 0 ? DType::bf16 : DType::f16, g.tensor, g.bf16_measured});
    return device;
}

Machine cluster(const std::string& name, const DeviceKind& device, int per_node, const LinkKind& inside, const LinkKind& network,
                double price, double watts) {
    return {.name = name,
            .devices = {device},
            .links = {inside, network},
            .nodes = {{.name = name, .count = 0, .devices = per_node, .price_per_hour = price, .watts = watts}},
            .network = 1};
}

// Lassen: four GPUs with NVLink, two InfiniBand EDR adapters; latencies and bandwidths as the authors of channel parallelism used them.
Machine v100() {
    return cluster("v100",
                   gpu({.name = "V100 SXM2 16 GB",
                        .f32 = 15.7e12,
                        .tensor = 125e12,
                        .tf32 = 0,
                        .bf16_measured = 0,
                        .gib = 16,
                        .bandwidth = 0.9e12,
                        .idle = 40,
                        .busy = 300,
                        .half_elements = 80 * 2048}),
                   4, {.name = "NVLink", .latency = 8e-6, .bandwidth = 1 / 2.66e-11, .compute_share = 0.03},
                   {.name = "InfiniBand EDR x2", .latency = 1.2e-6, .bandwidth = 1 / 3.89e-11, .shared = true, .compute_share = 0.03}, 12,
                   800);
}

Machine a100() {
    return cluster("a100",
                   gpu({.name = "A100 80 GB",
                        .f32 = 19.5e12,
                        .tensor = 312e12,
                        .tf32 = 156e12,
                        .bf16_measured = 0,
                        .gib = 80,
                        .bandwidth = 2.0e12,
                        .idle = 60,
                        .busy = 400,
                        .half_elements = 108 * 2048}),
                   8, {.name = "NVLink 3", .latency = 6e-6, .bandwidth = 300e9, .compute_share = 0.03},
                   {.name = "InfiniBand HDR x8", .latency = 2e-6, .bandwidth = 8 * 25e9, .shared = true, .compute_share = 0.03}, 32, 1200);
}

Machine h100() {
    return cluster("h100",
                   gpu({.name = "H100 SXM 80 GB",
                        .f32 = 67e12,
                        .tensor = 990e12,
                        .tf32 = 495e12,
                        .bf16_measured = 0,
                        .gib = 80,
                        .bandwidth = 3.35e12,
                        .idle = 70,
                        .busy = 700,
                        .half_elements = 132 * 2048}),
                   8, {.name = "NVLink 4", .latency = 5e-6, .bandwidth = 450e9, .compute_share = 0.03},
                   {.name = "InfiniBand NDR x8", .latency = 2e-6, .bandwidth = 8 * 50e9, .shared = true, .compute_share = 0.03}, 50, 1800);
}

// Measured on one: 790 TFLOP/s in bf16 on random data, 4.3 TB/s of copies, 139 GiB that can be used.
Machine h200() {
    return cluster("h200",
                   gpu({.name = "H200",
                        .f32 = 67e12,
                        .tensor = 990e12,
                        .tf32 = 495e12,
                        .bf16_measured = 790e12,
                        .gib = 139,
                        .bandwidth = 4.3e12,
                        .idle = 75,
                        .busy = 700,
                        .half_elements = 132 * 2048}),
                   8, {.name = "NVLink 4", .latency = 5e-6, .bandwidth = 450e9, .compute_share = 0.03},
                   {.name = "InfiniBand NDR x8", .latency = 2e-6, .bandwidth = 8 * 50e9, .shared = true, .compute_share = 0.03}, 60, 1800);
}

// A node of 16 cores, one rank each, on 10 Gbit/s Ethernet.
Machine cpu10g() {
    const DeviceKind core{.name = "core",
                          .rates = {{DType::f64, 48e9, 0}, {DType::f32, 96e9, 0}},
                          .memory_bytes = static_cast<int64_t>(4 * kGiB),
                          .memory_bandwidth = 12e9,
                          .launch_seconds = 1e-6,
                          .idle_watts = 3,
                          .busy_watts = 12,
                          .joins = true};
    Machine m =
        cluster("cpu10g", core, 16, {.name = "shared memory", .latency = 2e-6, .bandwidth = 6e9, .compute_share = 0.8},
                {.name = "10 Gbit/s Ethernet", .latency = 35e-6, .bandwidth = 1 / 8e-10, .shared = true, .compute_share = 0.3}, 1, 60);
    m.nodes[0].memory_bandwidth = 100e9;
    return m;
}

struct Preset {
    const char* name;
    Machine (*make)();
};
constexpr Preset kPresets[] = {{"v100", v100}, {"a100", a100}, {"h100", h100}, {"h200", h200}, {"cpu10g", cpu10g}};

}  // namespace

std::vector<std::string> machine_presets() {
    std::vector<std::string> names;
    for (const Preset& p : kPresets) names.emplace_back(p.name);
    return names;
}

Machine machine_preset(const std::string& name) {
    for (const Preset& p : kPresets)
        if (name == p.name) return p.make();
    fail("there is no machine \"{}\"; known are {}{}", name, fmt::join(machine_presets(), ", "), did_you_mean(name, machine_presets()));
}

}  // namespace convoy
