// Energy that a run uses: that of all its GPUs, each read by one of the ranks that share it.
#pragma once

#include <string>

#include "exec/link.h"
#include "kernels/backend.h"

namespace convoy {

class EnergyCount {
  public:
    // All ranks make it at the same time, with their own backend, which must outlive it as must the link.
    EnergyCount(const Backend& backend, Link* link);

    // Whether the energy of all GPUs is known; the same on every rank.
    bool available() const { return available_; }
    // Where the figures come from, or why there are none; the same on every rank.
    const std::string& source() const { return source_; }
    // Joules of all GPUs since the last call, or since it was made; nothing when they are not known. All ranks call it at the same time.
    std::optional<double> take();

  private:
    const Backend& backend_;
    Link* link_;
    bool reads_ = true;  // whether this rank reads its GPU: the first of those that share it does
    bool available_ = false;
    std::string source_;
    double last_ = 0;
};

}  // namespace convoy
