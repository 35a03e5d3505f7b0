// Counter-based random numbers: Philox 4x32 with 10 rounds. A number is a pure function of (seed, step, stream, index), so it does not depend
// on which rank or thread asks, nor on what was asked before. `stream` names the consumer (a tensor, a layer, the shuffling of the data).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace convoy {

// One Philox block: four words from a 128-bit counter and a 64-bit key.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// A 32-bit stream identifier for a name (FNV-1a).
uint32_t stream_of(std::string_view name);

struct RandomStream {
    uint64_t seed = 0;
    uint32_t step = 0;
    uint32_t stream = 0;

    // The index-th word of the stream.
    uint32_t bits(uint64_t index) const;
    // Uniform in (0, 1), symmetric about 1/2; the same double on every platform.
    double uniform(uint64_t index) const { return (bits(index) + 0.5) * 0x1p-32; }
    // Standard normal (Box-Muller over two words of the stream).
    double normal(uint64_t index) const;
};

// A permutation of 0..count-1 (Fisher-Yates over the stream's words).
std::vector<int64_t> permutation(const RandomStream& random, int64_t count);

}  // namespace convoy
