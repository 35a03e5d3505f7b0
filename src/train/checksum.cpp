#include "train/checksum.h"

#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace convoy {

uint64_t checksum(std::string_view bytes) {
    uint64_t sum = 0xcbf29ce484222325u;
    const auto mix = [&](uint64_t word) { sum = std::rotl((sum ^ word) * 0x100000001b3u, 31); };
    const uint64_t size = bytes.size();
    while (bytes.size() >= sizeof(uint64_t)) {
        uint64_t word = 0;
        std::memcpy(&word, bytes.data(), sizeof word);
        mix(word);
        bytes.remove_prefix(sizeof word);
    }
    uint64_t rest = 0;
    if (!bytes.empty()) std::memcpy(&rest, bytes.data(), bytes.size());
    mix(rest);
    mix(size);
    return sum;
}

std::string checksum_text(std::string_view bytes) { return fmt::format("{:016x}", checksum(bytes)); }

}  // namespace convoy
