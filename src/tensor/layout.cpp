#include "tensor/layout.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace convoy {

namespace {

std::vector<int> outer_order(const Layout& layout, int rank) {
    if (!layout.order.empty()) return layout.order;
    std::vector<int> order(static_cast<size_t>(rank));
    std::iota(order.begin(), order.end(), 0);
    return order;
}

int64_t block_of(const Layout& layout, int dim) {
    int64_t block = 1;
    for (const auto& b : layout.inner)
        if (b.dim == dim) block *= b.size;
    return block;
}

}  // namespace

Layout Layout::channels_last(int rank) {
    Layout layout;
    layout.order.push_back(0);
    for (int d = 2; d < rank; ++d) layout.order.push_back(d);
    if (rank > 1) layout.order.push_back(1);
    return layout;
}

Layout Layout::blocked(int rank, int64_t block) {
    Layout layout;
    for (int d = 0; d < rank; ++d) layout.order.push_back(d);
    layout.inner.push_back({1, block});
    return layout;
}

std::string Layout::text() const {
    if (!opaque.empty()) return opaque;
    if (is_plain()) return "plain";
    std::string text;
    for (const int d : order) text += static_cast<char>((block_of(*this, d) > 1 ? 'A' : 'a') + d);
    for (const auto& b : inner) text += fmt::format("{}{}", b.size, static_cast<char>('a' + b.dim));
    return text;
}

Shape padded_shape(const Shape& shape, const Layout& layout) {
    Shape padded = shape;
    for (int d = 0; d < shape.size(); ++d) {
        const int64_t block = block_of(layout, d);
        padded[d] = (shape[d] + block - 1) / block * block;
    }
    return padded;
}

int64_t bytes_of(const Shape& shape, DType type, const Layout& layout) {
    if (!layout.opaque.empty()) return layout.opaque_bytes;
    return numel(padded_shape(shape, layout)) * size_of(type);
}

bool equivalent(const Shape& shape, const Layout& a, const Layout& b) {
    if (a == b) return true;
    if (!a.opaque.empty() || !b.opaque.empty() || !(padded_shape(shape, a) == padded_shape(shape, b))) return false;
    // Offsets are sums over the dims of a term that depends on that dim's index alone, so it is enough to walk along each dim; and one step past
    // what both sizes of blocks divide, because from there on a term only grows by the same amount for every such stretch.
    Dims index = Dims::filled(shape.size(), 0);
    for (int d = 0; d < shape.size(); ++d) {
        const int64_t end = std::min(shape[d], std::lcm(block_of(a, d), block_of(b, d)) + 1);
        for (index[d] = 0; index[d] < end; ++index[d])
            if (element_offset(shape, a, index) != element_offset(shape, b, index)) return false;
        index[d] = 0;
    }
    return true;
}

int64_t element_offset(const Shape& shape, const Layout& layout, const Dims& index) {
    CONVOY_CHECK(layout.opaque.empty(), "element offset in opaque layout {}", layout.opaque);
    const Shape padded = padded_shape(shape, layout);
    Dims rest = index;
    int64_t offset = 0, stride = 1;
    for (auto b = layout.inner.rbegin(); b != layout.inner.rend(); ++b) {
        offset += rest[b->dim] % b->size * stride;
        rest[b->dim] /= b->size;
        stride *= b->size;
    }
    const auto order = outer_order(layout, shape.size());
    for (auto d = order.rbegin(); d != order.rend(); ++d) {
        offset += rest[*d] * stride;
        stride *= padded[*d] / block_of(layout, *d);
    }
    return offset;
}

}  // namespace convoy
