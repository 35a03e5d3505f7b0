// Sizes of memory as people write them.
#pragma once

#include <cstdint>
#include <string>

namespace convoy {

// Three digits and a unit that is a power of 1024: "310 KiB", "38.1 GiB".
std::string size_text(int64_t bytes);
// The same as --memory takes it, and never less: "38.2GiB" for a byte more than 38.1 GiB.
std::string size_at_least(int64_t bytes);

}  // namespace convoy
