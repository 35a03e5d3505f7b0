// A box of a tensor: where it begins and how large it is.
#pragma once

#include <string>

#include "tensor/dims.h"

namespace convoy {

struct Box {
    Dims origin;
    Shape shape;

    // All of a tensor.
    static Box whole(const Shape& shape) { return {Dims::filled(shape.size(), 0), shape}; }
    bool empty() const { return numel(shape) == 0; }
    int64_t begin(int dim) const { return origin[dim]; }
    int64_t end(int dim) const { return origin[dim] + shape[dim]; }
    // The same box with other bounds along one dim.
    Box with(int dim, int64_t begin, int64_t end) const;
    // As seen from inside `outer`: the origin counts from outer's.
    Box within(const Box& outer) const;
    bool operator==(const Box&) const = default;
};

// The part that two boxes share; empty (some dim 0) when they do not meet.
Box intersection(const Box& a, const Box& b);
// Whether every element of `inner` lies in `outer`; an empty box lies everywhere.
bool contains(const Box& outer, const Box& inner);
// "8x3x4x4 at 0x0x4x0"
std::string to_string(const Box& box);

}  // namespace convoy
