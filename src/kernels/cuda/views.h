// How a tensor lies in the device's memory, as plain numbers that kernels take by value.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "kernels/backend.h"

namespace convoy::cuda {

// Elements, or packs of them, that kernels can number in 32 bits.
inline constexpr int64_t kMostNumbered = (int64_t{1} << 32) - 1;
// A tensor has more; the text has its sizes, and whoever knows the problem names it.
class TooLarge : public Error {
  public:
    using Error::Error;
};

// Strides in elements of a tensor in a layout that is a permutation of its dims. Bug for a blocked or opaque one.
Dims strides_of(const Shape& shape, const Layout& layout);

// A tensor with a number per channel. Where channels lie last (and in [N, C]) `inner` is 1, and `outer` counts positions.
struct ChannelView {
    int64_t outer, channels, inner;
    int64_t count() const { return outer * channels * inner; }
    int64_t per_channel() const { return outer * inner; }
};
// Of an activation [N, C, ..]; Bug for a layout that is neither plain nor channels-last.
ChannelView channel_view(const Shape& shape, const Layout& layout);
// Of a plain tensor, with dims [axis, axis + rank) as its channels.
ChannelView channel_view_around(const Shape& shape, int axis, int rank);

// A division by a number that is known beforehand, as a multiplication and shifts (positions.cuh does it). 32 bits, unsigned.
struct Divisor {
    uint32_t by = 1, factor = 1, shift1 = 0, shift2 = 0;
};
// TooLarge when it has more.
Divisor divisor_of(int64_t by);

// An activation [N, C, D, H, W]; spatial dims that it lacks come first with length one.
struct Volume {
    int64_t n, c, size[3];
    int64_t stride_n, stride_c, stride[3];
    Divisor by_size[3];
    Divisor by_packs[4];  // by the number of packs of 1, 2, 4 and 8 channels
};
Volume volume_of(const Shape& shape, const Layout& layout);
// How many packs of so many channels, or of so many neighbours in a line, it has. TooLarge when their numbers need more than 32 bits.
uint32_t packs_of(const Volume& v, int width);

// A window over three spatial dims.
struct Window3 {
    int kernel[3], stride[3], dilation[3], pad[3], pad_hi[3];
    Divisor by_stride[3], by_dilation[3];
};
Window3 window3_of(const Window& window);

// Which elements a copy takes to where: dims in the order of the destination's memory, slowest first, those that can be joined joined.
struct CopyShape {
    int rank = 0;
    int64_t size[Dims::kMost], src[Dims::kMost], dst[Dims::kMost];
    int64_t count = 1;
};
CopyShape copy_shape(const Shape& shape, const Dims& src_strides, const Dims& dst_strides);

}  // namespace convoy::cuda
