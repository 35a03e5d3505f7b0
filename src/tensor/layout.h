// How the elements of a shape lie in memory: a permutation of the dims, outermost first, with inner blocks. Plain, channels-last and the
// blocked layouts of CPU libraries (nChw16c, OIhw16i16o) are all of this form. What is not (pre-transformed Winograd weights) is opaque: a name
// that only the backend understands, and a size.
#pragma once

#include <string>
#include <vector>

#include "tensor/dims.h"
#include "tensor/dtype.h"

namespace convoy {

struct Block {
    int dim;
    int64_t size;
    bool operator==(const Block&) const = default;
};

struct Layout {
    std::vector<int> order;    // outer dims, slowest first; empty means row-major of any rank
    std::vector<Block> inner;  // inner blocks, slowest first
    std::string opaque;        // a backend's own format; order and inner are then empty
    int64_t opaque_bytes = 0;

    static Layout plain() { return {}; }
    // N, spatial dims, C for a tensor of `rank` dims.
    static Layout channels_last(int rank);
    // nC...{block}c for a tensor of `rank` dims.
    static Layout blocked(int rank, int64_t block);

    // In a list of operands: any one layout, the same for all operands so marked, with the same number. Never that of a tensor in memory.
    static Layout same(int number = 0) { return {.opaque = number == 0 ? "same" : "same" + std::to_string(number)}; }
    bool is_same() const { return opaque.rfind("same", 0) == 0; }

    bool is_plain() const { return order.empty() && inner.empty() && opaque.empty(); }
    // "plain", "nhwc", "nchw16c" style text, dims written as a, b, c, ...
    std::string text() const;
    bool operator==(const Layout&) const = default;
};

// Bytes of a tensor in this layout, blocks rounded up.
int64_t bytes_of(const Shape& shape, DType type, const Layout& layout);
// The shape with every blocked dim rounded up to its blocks.
Shape padded_shape(const Shape& shape, const Layout& layout);
// Whether a tensor of this shape lies in memory alike in both layouts, as channels-last and plain do when all spatial dims are 1.
bool equivalent(const Shape& shape, const Layout& a, const Layout& b);
// Offset in elements of `index` in a (non-opaque) layout: the definition that every reorder is tested against.
int64_t element_offset(const Shape& shape, const Layout& layout, const Dims& index);

}  // namespace convoy
