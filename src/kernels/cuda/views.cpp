#include "kernels/cuda/views.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/error.h"

namespace convoy::cuda {

namespace {

constexpr int64_t kMostAlong = int64_t{1} << 30;  // a dim: places in it, padding and window and all, are ints

}  // namespace

Dims strides_of(const Shape& shape, const Layout& layout) {
    CONVOY_CHECK(layout.inner.empty() && layout.opaque.empty(), "the cuda backend got layout {}", layout.text());
    if (layout.order.empty()) return row_major_strides(shape);
    Dims strides = shape;
    int64_t stride = 1;
    for (auto at = layout.order.rbegin(); at != layout.order.rend(); ++at) {
        strides[*at] = stride;
        stride *= shape[*at];
    }
    return strides;
}

ChannelView channel_view(const Shape& shape, const Layout& layout) {
    const int64_t inner = product(shape, 2, shape.size());
    if (layout.is_plain() && inner != 1) return {shape[0], shape[1], inner};
    CONVOY_CHECK(layout.is_plain() || layout == Layout::channels_last(shape.size()), "a number per channel in layout {}", layout.text());
    return {shape[0] * inner, shape[1], 1};
}

ChannelView channel_view_around(const Shape& shape, int axis, int rank) {
    return {product(shape, 0, axis), product(shape, axis, axis + rank), product(shape, axis + rank, shape.size())};
}

// Granlund and Montgomery's way for all 32-bit numbers.
Divisor divisor_of(int64_t by) {
    const auto d = static_cast<uint64_t>(std::max<int64_t>(by, 1));
    if (by > kMostNumbered) throw TooLarge(fmt::format("there is a size of {}, and kernels number elements up to {}", by, kMostNumbered));
    uint32_t bits = 0;
    while ((uint64_t{1} << bits) < d) ++bits;
    const uint64_t factor = ((uint64_t{1} << 32) * ((uint64_t{1} << bits) - d)) / d + 1;
    return {static_cast<uint32_t>(d), static_cast<uint32_t>(factor), std::min(bits, 1u), bits > 0 ? bits - 1 : 0};
}

Volume volume_of(const Shape& shape, const Layout& layout) {
    const int rank = shape.size() - 2;
    CONVOY_CHECK(rank >= 1 && rank <= 3, "an activation of {}", to_string(shape));
    const Dims strides = strides_of(shape, layout);
    Volume v{shape[0], shape[1], {1, 1, 1}, strides[0], strides[1], {0, 0, 0}, {}, {}};
    for (int i = 0; i < rank; ++i) {
        v.size[3 - rank + i] = shape[2 + i];
        v.stride[3 - rank + i] = strides[2 + i];
    }
    for (int d = 0; d < 3; ++d) v.by_size[d] = divisor_of(v.size[d]);
    for (int p = 0; p < 4; ++p) v.by_packs[p] = divisor_of(v.c >> p);
    return v;
}

uint32_t packs_of(const Volume& v, int width) {
    const int64_t elements = v.n * v.c * v.size[0] * v.size[1] * v.size[2], packs = elements / width;
    const int64_t longest = std::max({v.c, v.size[0], v.size[1], v.size[2]});
    if (packs > kMostNumbered || longest > kMostAlong)
        throw TooLarge(fmt::format("a tensor of {} x {} x {} x {} x {} has {} elements, and kernels number up to {}, {} at a time", v.n,
                                   v.c, v.size[0], v.size[1], v.size[2], elements, kMostNumbered, width));
    return static_cast<uint32_t>(packs);
}

Window3 window3_of(const Window& window) {
    Window3 w{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, {}, {}};
    for (int i = 0; i < window.rank(); ++i) {
        const int at = 3 - window.rank() + i;
        w.kernel[at] = static_cast<int>(window.kernel[i]);
        w.stride[at] = static_cast<int>(window.stride[i]);
        w.dilation[at] = static_cast<int>(window.dilation[i]);
        w.pad[at] = static_cast<int>(window.pad_lo[i]);
        w.pad_hi[at] = static_cast<int>(window.pad_hi[i]);
        w.by_stride[at] = divisor_of(window.stride[i]);
        w.by_dilation[at] = divisor_of(window.dilation[i]);
    }
    return w;
}

CopyShape copy_shape(const Shape& shape, const Dims& src_strides, const Dims& dst_strides) {
    std::vector<int> order;
    for (int d = 0; d < shape.size(); ++d)
        if (shape[d] != 1) order.push_back(d);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return dst_strides[a] > dst_strides[b]; });
    CopyShape copy;
    copy.count = numel(shape);
    for (const int d : order) {
        const int last = copy.rank - 1;
        const bool joins = last >= 0 && copy.src[last] == shape[d] * src_strides[d] && copy.dst[last] == shape[d] * dst_strides[d];
        const int at = joins ? last : copy.rank++;
        copy.size[at] = (joins ? copy.size[last] : 1) * shape[d];
        copy.src[at] = src_strides[d];
        copy.dst[at] = dst_strides[d];
    }
    if (copy.rank == 0) {
        copy.rank = 1;
        copy.size[0] = copy.src[0] = copy.dst[0] = 1;
    }
    return copy;
}

}  // namespace convoy::cuda
