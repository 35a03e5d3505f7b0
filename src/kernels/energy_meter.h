// What a GPU has used of energy, from the driver's library NVML. It is looked for when first asked, so that neither a build nor a machine needs it; where it is
// not, or the GPU does not count, the reading says why.
#pragma once

#include <memory>
#include <string>

#include "kernels/backend.h"

namespace convoy {

class EnergyMeter {
  public:
    static constexpr const char* kLibrary = "libnvidia-ml.so.1";

    // Of the GPU at this place of the bus ("00000000:18:00.0").
    explicit EnergyMeter(std::string bus_id, const std::string& library = kLibrary);
    ~EnergyMeter();
    EnergyMeter(const EnergyMeter&) = delete;
    EnergyMeter& operator=(const EnergyMeter&) = delete;

    // Joules since the driver was loaded.
    Energy read() const;

    struct Nvml;  // the library, loaded

  private:
    std::unique_ptr<Nvml> nvml_;
    void* device_ = nullptr;
    std::string why_not_;  // empty: it can be read
};

// "NVML, driver 580.65", or why it is not there.
struct NvmlStatus {
    bool ready = false;
    std::string detail;
};
NvmlStatus nvml_status(const std::string& library = EnergyMeter::kLibrary);

}  // namespace convoy
