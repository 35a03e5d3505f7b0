// Machines and their targets as commands name them.
#pragma once

#include <memory>
#include <string>

#include "kernels/backend.h"
#include "plan/machine.h"

namespace convoy {

class Parser;

struct MachineOptions {
    std::string machine;  // a file or a preset
    std::string network;  // name of the link between nodes; empty: the machine's own
    int per_node = 0;     // ranks on a node; 0: as many as it has devices
};
// With --machine required, or where the command has a default for it.
void add_machine_options(Parser& parser, MachineOptions& options, bool required = true);

// The machine of that name or file, changed as the options say. Error with what is wrong, and for a word that is neither the presets there are.
Machine load_machine(const MachineOptions& options);

// The target that programs for a machine are compiled for: that of its backend, or a description without kernels.
class MachineTarget {
  public:
    // Error when the machine was measured with a backend that is not here.
    MachineTarget(const Machine& machine, int threads);
    const Target& target() const { return *target_; }

  private:
    std::unique_ptr<Backend> backend_;
    std::unique_ptr<Target> own_;
    const Target* target_ = nullptr;
};

}  // namespace convoy
