#include "plan/sizes.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

namespace convoy {

namespace {

struct Size {
    double value;
    const char* unit;
};

Size size_of(int64_t bytes) {
    constexpr std::array<const char*, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
    auto value = static_cast<double>(bytes);
    size_t unit = 0;
    for (; value >= 999.5 && unit + 1 < units.size(); ++unit) value /= 1024;
    return {value, units[unit]};
}

int decimals(double value) { return value < 10 ? 2 : value < 100 ? 1 : 0; }

}  // namespace

std::string size_text(int64_t bytes) {
    const Size size = size_of(bytes);
    return fmt::format("{:.{}f} {}", size.value, bytes < 1000 ? 0 : decimals(size.value), size.unit);
}

std::string size_at_least(int64_t bytes) {
    const Size size = size_of(bytes);
    const int digits = decimals(size.value);
    const double step = std::pow(10, digits);
    return fmt::format("{:.{}f}{}", std::ceil(size.value * step) / step, digits, size.unit);
}

}  // namespace convoy
