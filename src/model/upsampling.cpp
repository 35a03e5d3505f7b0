#include "model/upsampling.h"

#include <algorithm>

namespace convoy {

double linear_source(int64_t o, int64_t in, int64_t out, bool align_corners) {
    if (!align_corners) return std::max(0.0, (static_cast<double>(o) + 0.5) * static_cast<double>(in) / static_cast<double>(out) - 0.5);
    if (out <= 1) return 0;
    return static_cast<double>(o) * static_cast<double>(in - 1) / static_cast<double>(out - 1);
}

}  // namespace convoy
