// A box of a dense array as runs of elements that lie together.
#pragma once

#include <cstring>

#include "tensor/box.h"

namespace convoy {

// Calls f(offset in the whole, offset in the dense box, elements) for each run, in order. Allocates nothing.
template <class F>
void for_each_run(const Shape& whole, const Box& box, F&& f) {
    if (box.empty()) return;
    const Dims strides = row_major_strides(whole);
    int last = box.shape.size() - 1;  // from here on the box is dense
    while (last > 0 && box.shape[last] == whole[last]) --last;
    if (last < 0) return f(int64_t{0}, int64_t{0}, int64_t{1});  // a scalar
    const int64_t run = box.shape[last] * strides[last], count = numel(box.shape);
    int64_t from = 0;
    for (int d = 0; d < box.shape.size(); ++d) from += box.origin[d] * strides[d];
    Dims at = Dims::filled(last, 0);
    for (int64_t to = 0; to < count; to += run) {
        f(from, to, run);
        for (int d = last; d-- > 0;) {  // the next row
            from += strides[d];
            if (++at[d] < box.shape[d]) break;
            from -= box.shape[d] * strides[d];
            at[d] = 0;
        }
    }
}

// Copies a box of a dense array of elements of `unit` bytes.
inline void copy_box(const std::byte* whole, const Shape& shape, const Box& box, int64_t unit, std::byte* out) {
    for_each_run(shape, box, [&](int64_t from, int64_t to, int64_t count) {
        std::memcpy(out + to * unit, whole + from * unit, static_cast<size_t>(count * unit));
    });
}

}  // namespace convoy
