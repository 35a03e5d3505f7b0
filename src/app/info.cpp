// What this build and this machine have: the first thing to look at when something is slow or missing.
#include <filesystem>

#include "app/build_info.h"
#include "app/command.h"
#include "app/machine.h"
#include "app/options.h"
#include "app/output.h"
#include "app/parser.h"
#include "app/table.h"
#include "base/json.h"
#include "comm/device_traffic.h"
#include "comm/launch.h"
#include "data/open_dataset.h"
#include "kernels/energy_meter.h"

namespace convoy {

namespace {

// What decides on the number of threads, in words.
std::string threads_text(const MachineInfo& machine) {
    std::string text =
        fmt::format("{} by default: the process may run on {} of {} processors", usable_cores(), machine.allowed, machine.cpus);
    if (machine.cores > 0 && machine.cores < machine.cpus) text += fmt::format(" ({} physical cores)", machine.cores);
    if (machine.quota > 0) text += fmt::format(", and its control group grants the time of {:.1f}", machine.quota);
    if (machine.allowed < machine.cpus) text += "; its affinity mask (taskset, a batch system, a container) leaves out the others";
    return text;
}

std::string meaning_of(const std::string& variable) {
    if (variable == "OMP_NUM_THREADS" || variable == "OPENBLAS_NUM_THREADS") return "no effect: --threads decides";
    if (variable == "OMP_PROC_BIND" || variable == "OMP_PLACES" || variable == "GOMP_CPU_AFFINITY" || variable == "KMP_AFFINITY")
        return "binds threads to processors";
    if (variable == "OMP_WAIT_POLICY" || variable == "GOMP_SPINCOUNT" || variable == "KMP_BLOCKTIME") return "how idle threads wait";
    if (variable == "OPENBLAS_CORETYPE") return "kernels of the reference's matrix products";
    if (variable == "CUDA_VISIBLE_DEVICES") return "which GPUs are seen";
    return "limits threads";
}

std::string mnist_directory() {
    for (const auto& place : mnist_places({}))
        if (has_idx_files(place, Split::Train) && has_idx_files(place, Split::Test))
            return std::filesystem::weakly_canonical(place).string();
    return "";
}

struct Gpu {
    DeviceStatus status;
    Energy energy;
};
std::vector<Gpu> gpus() {
    std::vector<Gpu> list;
    for (const BackendStatus& status : backend_statuses())
        for (const DeviceStatus& device : status.devices) list.push_back({device, EnergyMeter(device.bus_id).read()});
    return list;
}

Json document(const MachineInfo& machine) {
    const BuildInfo& build = build_info();
    Json libraries = Json::object(), backends = Json::array(), variables = Json::object();
    for (const auto& library : build.libraries) libraries[library.name] = library.version.empty() ? Json(nullptr) : Json(library.version);
    for (const auto& status : backend_statuses())
        backends.push_back({{"name", status.name}, {"ready", status.ready}, {"detail", status.detail}});
    for (const auto& [name, value] : machine.variables) variables[name] = value;
    Json devices = Json::array();
    for (const Gpu& gpu : gpus())
        devices.push_back({{"name", gpu.status.name},
                           {"fault", gpu.status.fault.empty() ? Json(nullptr) : Json(gpu.status.fault)},
                           {"energy", gpu.energy.joules.has_value()},
                           {"energy_source", gpu.energy.source}});
    const auto ready = [](const auto& status) { return Json{{"ready", status.ready}, {"detail", status.detail}}; };
    const std::string mnist = mnist_directory();
    return {{"version", build.version},
            {"compiler", build.compiler},
            {"build_type", build.build_type},
            {"libraries", libraries},
            {"backends", backends},
            {"gpus", devices},
            {"mpi", ready(mpi_status())},
            {"nccl", ready(nccl_status())},
            {"nvml", ready(nvml_status())},
            {"default_backend", best_backend(DType::f32).name},
            {"processor", machine.processor},
            {"cpus", machine.cpus},
            {"cores", machine.cores},
            {"allowed_cpus", machine.allowed},
            {"quota_cpus", machine.quota > 0 ? Json(machine.quota) : Json(nullptr)},
            {"default_threads", usable_cores()},
            {"simd", machine.simd},
            {"memory_bytes", machine.memory},
            {"available_bytes", machine.available},
            {"environment", variables},
            {"mnist", mnist.empty() ? Json(nullptr) : Json(mnist)}};
}

void print(const Output& output, const MachineInfo& machine) {
    const BuildInfo& build = build_info();
    output.line("convoy {}, built by {} ({})\n", build.version, build.compiler, build.build_type);
    Table backends({{"backend"}, {"status"}, {"detail"}});
    for (const auto& status : backend_statuses())
        backends.add({status.name,
                      status.ready    ? "ready"
                      : status.faulty ? "unusable"
                                      : "absent",
                      status.detail == "ready" ? "" : status.detail});
    output.write(backends.text());
    output.line("{} is used when --backend is not given\n", best_backend(DType::f32).name);
    Table libraries({{"library"}, {"status"}, {"for"}});
    for (const auto& library : build.libraries)
        libraries.add({library.name, library.version.empty() ? "not in this build" : library.version, library.use});
    output.write(libraries.text());
    output.line("");
    output.line("processor  {}", machine.processor);
    output.line("threads    {}", threads_text(machine));
    for (const auto& [name, value] : machine.variables) output.line("           {}={} ({})", name, value, meaning_of(name));
    if (machine.variables.empty()) output.line("           no variable of the environment (OMP_*, ...) changes how threads run");
    output.line("SIMD       {}", machine.simd.empty() ? "unknown" : fmt::format("{}", fmt::join(machine.simd, " ")));
    output.line("memory     {}, {} of it available", short_bytes(static_cast<double>(machine.memory)),
                short_bytes(static_cast<double>(machine.available)));
    const std::vector<Gpu> list = gpus();
    for (size_t i = 0; i < list.size(); ++i)
        output.line("GPU {:<7}{}{}; energy: {}", i, list[i].status.name,
                    list[i].status.fault.empty() ? "" : "; it cannot be used: " + list[i].status.fault,
                    list[i].energy.joules ? "counted (" + list[i].energy.source + ")" : list[i].energy.source);
    if (list.empty()) output.line("GPUs       none that a backend of this build can use");
    output.line("traffic    between processes: {}", mpi_status().detail);
    output.line("           between GPUs: {}", nccl_status().ready ? nccl_status().detail : "NCCL is " + nccl_status().detail);
    output.line("energy     {}", nvml_status().ready ? nvml_status().detail : "not measured: " + nvml_status().detail);
    const std::string mnist = mnist_directory();
    output.line("mnist      {}", mnist.empty() ? "not found; CONVOY_DATA may name the directory above mnist/" : mnist);
}

}  // namespace

Command add_info(Parser& program) {
    Parser* const parser = program.add_subcommand("info", "");
    describe(
        *parser,
        "Say what this build and this machine have.\n"
        "Backends, libraries, processors and which of them may be used, memory, data: the first thing to look at when something is slow.",
        "  convoy info\n"
        "  convoy info --json -");
    const auto options = std::make_shared<CommonOptions>();
    add_json(*parser, *options);
    return {parser, [options] {
                const Output output(options->json);
                const MachineInfo machine = machine_info();
                print(output, machine);
                output.result(document(machine));
                return 0;
            }};
}

}  // namespace convoy
