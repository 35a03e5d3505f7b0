#include "kernels/reference/conv_columns.h"

namespace convoy::ref {

namespace {

// The matrix should stay in a core's own cache, but products of only a few columns are slow.
constexpr int64_t kBlockBytes = 1 << 20;
constexpr int64_t kLeastColumns = 64;

// A piece of one row of the matrix within one output line: `before` zeros, `count` elements from x[source + i * stride], `after` zeros.
struct Segment {
    int64_t at, before, count, after, source;
};

struct Tap {
    int64_t k0, k1, k2;
};

template <class Fn>
void for_each_segment(const Geometry& g, const Tap& tap, Range positions, const Fn& fn) {
    const Range covered = g.covered(2, tap.k2);
    int64_t o2 = positions.begin % g.out[2];
    int64_t o1 = positions.begin / g.out[2] % g.out[1];
    int64_t o0 = positions.begin / g.out[2] / g.out[1];
    for (int64_t at = 0, count = positions.end - positions.begin; at < count;) {
        const int64_t end = std::min(g.out[2], o2 + count - at);
        const int64_t i0 = g.source(0, o0, tap.k0), i1 = g.source(1, o1, tap.k1);
        int64_t first = end, last = end;
        if (g.inside(0, i0) && g.inside(1, i1)) {
            first = std::clamp(covered.begin, o2, end);
            last = std::clamp(covered.end, first, end);
        }
        fn(Segment{at, first - o2, last - first, end - last, g.offset(i0, i1, g.source(2, first, tap.k2))});
        at += end - o2;
        o2 = 0;
        if (++o1 == g.out[1]) {
            o1 = 0;
            ++o0;
        }
    }
}

// Calls fn(row, channel, tap) for every row of the matrix.
template <class Fn>
void for_each_row(const Geometry& g, int64_t channels, const Fn& fn) {
    int64_t row = 0;
    for (int64_t c = 0; c < channels; ++c)
        for (int64_t k0 = 0; k0 < g.kernel[0]; ++k0)
            for (int64_t k1 = 0; k1 < g.kernel[1]; ++k1)
                for (int64_t k2 = 0; k2 < g.kernel[2]; ++k2) fn(row++, c, Tap{k0, k1, k2});
}

}  // namespace

int64_t column_block(const Geometry& g, int64_t rows, int64_t element_bytes) {
    const int64_t fitting = kBlockBytes / std::max<int64_t>(rows * element_bytes, 1);
    return std::max<int64_t>(std::min(std::max(fitting, kLeastColumns), g.out_count()), 1);
}

template <class T>
void gather_columns(const Geometry& g, int64_t channels, const T* x, Range positions, T* columns) {
    const int64_t width = positions.end - positions.begin, stride = g.stride[2];
    for_each_row(g, channels, [&](int64_t row, int64_t c, const Tap& tap) {
        const T* const plane = x + c * g.in_count();
        for_each_segment(g, tap, positions, [&](const Segment& s) {
            T* to = std::fill_n(columns + row * width + s.at, s.before, T{0});
            if (stride == 1) {
                if (s.count > 0) to = std::copy_n(plane + s.source, s.count, to);
            } else {
                for (int64_t i = 0; i < s.count; ++i) *to++ = plane[s.source + i * stride];
            }
            std::fill_n(to, s.after, T{0});
        });
    });
}

template <class T>
void scatter_columns(const Geometry& g, int64_t channels, const T* columns, Range positions, T* dx) {
    const int64_t width = positions.end - positions.begin, stride = g.stride[2];
    for_each_row(g, channels, [&](int64_t row, int64_t c, const Tap& tap) {
        T* const plane = dx + c * g.in_count();
        for_each_segment(g, tap, positions, [&](const Segment& s) {
            const T* const from = columns + row * width + s.at + s.before;
            for (int64_t i = 0; i < s.count; ++i) plane[s.source + i * stride] += from[i];
        });
    });
}

template void gather_columns(const Geometry&, int64_t, const double*, Range, double*);
template void gather_columns(const Geometry&, int64_t, const float*, Range, float*);
template void scatter_columns(const Geometry&, int64_t, const double*, Range, double*);
template void scatter_columns(const Geometry&, int64_t, const float*, Range, float*);

}  // namespace convoy::ref
