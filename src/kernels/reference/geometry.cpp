#include "kernels/reference/geometry.h"

#include "base/error.h"

namespace convoy::ref {

Geometry geometry(const Window& window, const Shape& x, const Shape& y) {
    const int rank = window.rank();
    CONVOY_CHECK(rank >= 1 && rank <= 3, "a window of {} dims; the reference knows 1, 2 and 3", rank);
    CONVOY_CHECK(x.size() == rank + 2 && y.size() == rank + 2, "a window of {} dims from {} to {}", rank, to_string(x), to_string(y));
    Geometry g;
    for (int i = 0; i < rank; ++i) {
        const auto at = static_cast<size_t>(3 - rank + i);
        g.in[at] = x[2 + i];
        g.out[at] = y[2 + i];
        g.kernel[at] = window.kernel[i];
        g.stride[at] = window.stride[i];
        g.dilation[at] = window.dilation[i];
        g.pad[at] = window.pad_lo[i];
        g.pad_hi[at] = window.pad_hi[i];
    }
    return g;
}

Range Geometry::covered(size_t i, int64_t k) const {
    // The first output whose source is at least `index`.
    const auto first_at = [&](int64_t index) {
        const int64_t ahead = index + pad[i] - k * dilation[i];
        return std::clamp<int64_t>(ahead <= 0 ? 0 : (ahead + stride[i] - 1) / stride[i], 0, out[i]);
    };
    return {first_at(0), first_at(in[i])};
}

bool Geometry::is_pointwise() const {
    constexpr std::array<int64_t, 3> one{1, 1, 1}, none{0, 0, 0};
    return kernel == one && stride == one && pad == none && in == out;
}

}  // namespace convoy::ref
