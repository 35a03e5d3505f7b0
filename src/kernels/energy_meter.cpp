#include "kernels/energy_meter.h"

#include <array>

#include <dlfcn.h>

#include "base/error.h"

namespace convoy {

namespace {

// As NVML declares them; its header comes with the driver's development files only.
using Status = int;  // 0: success
using Device = void*;

}  // namespace

struct EnergyMeter::Nvml {
    explicit Nvml(const std::string& path) : library(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        require(library != nullptr, "NVML was not found ({})", dlerror());
        try {
            take(init, "nvmlInit_v2");
            take(shutdown, "nvmlShutdown");
            take(text_of, "nvmlErrorString");
            take(driver, "nvmlSystemGetDriverVersion");
            take(by_bus, "nvmlDeviceGetHandleByPciBusId_v2");
            take(energy, "nvmlDeviceGetTotalEnergyConsumption");
            check(init(), "does not start");
        } catch (...) {
            dlclose(library);
            throw;
        }
    }
    ~Nvml() {
        shutdown();
        dlclose(library);
    }
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;

    template <class Fn>
    void take(Fn*& function, const char* name) {
        function = reinterpret_cast<Fn*>(dlsym(library, name));
        require(function != nullptr, "NVML has no {}", name);
    }
    void check(Status status, const char* what) const { require(status == 0, "NVML {}: {}", what, text_of(status)); }

    void* library;
    Status (*init)() = nullptr;
    Status (*shutdown)() = nullptr;
    const char* (*text_of)(Status) = nullptr;
    Status (*driver)(char*, unsigned) = nullptr;
    Status (*by_bus)(const char*, Device*) = nullptr;
    Status (*energy)(Device, unsigned long long*) = nullptr;
};

EnergyMeter::EnergyMeter(std::string bus_id, const std::string& library) {
    try {
        nvml_ = std::make_unique<Nvml>(library);
        nvml_->check(nvml_->by_bus(bus_id.c_str(), &device_), fmt::format("does not know the GPU {}", bus_id).c_str());
        unsigned long long millijoules = 0;
        nvml_->check(nvml_->energy(device_, &millijoules), "has no count of this GPU's energy");
    } catch (const Error& e) {
        why_not_ = e.what();
    }
}

EnergyMeter::~EnergyMeter() = default;

Energy EnergyMeter::read() const {
    if (!why_not_.empty()) return {.source = why_not_};
    unsigned long long millijoules = 0;
    if (const Status status = nvml_->energy(device_, &millijoules); status != 0)
        return {.source = fmt::format("NVML no longer tells this GPU's energy: {}", nvml_->text_of(status))};
    return {.joules = static_cast<double>(millijoules) * 1e-3, .source = "NVML, as the GPU counts it"};
}

NvmlStatus nvml_status(const std::string& library) {
    try {
        const EnergyMeter::Nvml nvml(library);
        std::array<char, 96> version{};
        nvml.check(nvml.driver(version.data(), version.size()), "does not tell the driver's version");
        return {true, fmt::format("NVML of driver {}", version.data())};
    } catch (const Error& e) {
        return {false, e.what()};
    }
}

}  // namespace convoy
