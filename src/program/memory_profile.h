// Memory over the step: how much of the arena is in use, for what, while each instruction of a program runs. From the buffer plan; nothing is run.
#pragma once

#include <array>

#include "program/program.h"

namespace convoy {

enum class MemoryUse : uint8_t { Inputs, Activations, Gradients, Messages, Workspace };
inline constexpr size_t kMemoryUses = 5;
std::string_view name_of(MemoryUse use);

struct MemoryProfile {
    struct Instant {
        std::string layer;
        Phase phase = Phase::Forward;
        std::array<int64_t, kMemoryUses> bytes{};  // in use, by MemoryUse
        int64_t total() const;
    };
    struct Holder {
        std::string name;
        MemoryUse use = MemoryUse::Activations;
        int64_t bytes = 0;
    };

    Rank rank = 0;
    int64_t arena_bytes = 0;                                             // what is allocated: at least the most in use at any instant
    int64_t parameter_bytes = 0, optimizer_bytes = 0, buffer_bytes = 0;  // of the state, which is there all the time
    std::vector<Instant> instants;                                       // of each instruction
    size_t peak = 0;                                                     // the instant with the most in use; the first of them
    std::vector<Holder> at_peak;                                         // what is in use then, the largest first
};
MemoryProfile memory_profile(const Program& program);

// In columns: one list of bytes for each use.
Json to_json(const MemoryProfile& profile);

}  // namespace convoy
