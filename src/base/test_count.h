// How much a randomised test does: a sample by default, everything with CONVOY_TEST_FULL=1 in the environment. For tests only.
#pragma once

#include <cstdlib>
#include <string_view>

namespace convoy {

inline int test_count(int sample, int full) {
    const char* const value = std::getenv("CONVOY_TEST_FULL");
    return value != nullptr && std::string_view(value) == "1" ? full : sample;
}

}  // namespace convoy
