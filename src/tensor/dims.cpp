#include "tensor/dims.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace convoy {

Dims::Dims(std::initializer_list<int64_t> values) {
    for (const int64_t v : values) push_back(v);
}

Dims Dims::filled(int count, int64_t value) {
    Dims dims;
    for (int i = 0; i < count; ++i) dims.push_back(value);
    return dims;
}

void Dims::push_back(int64_t value) {
    CONVOY_CHECK(size_ < kMost, "more than {} dims", kMost);
    values_[static_cast<size_t>(size_++)] = value;
}

Dims Dims::slice(int first, int last) const {
    CONVOY_CHECK(0 <= first && first <= last && last <= size_, "slice [{}, {}) of {} dims", first, last, size_);
    Dims dims;
    for (int i = first; i < last; ++i) dims.push_back((*this)[i]);
    return dims;
}

bool Dims::operator==(const Dims& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

int64_t numel(const Dims& dims) { return product(dims, 0, dims.size()); }

int64_t product(const Dims& dims, int first, int last) {
    int64_t result = 1;
    for (int i = first; i < last; ++i) result *= dims[i];
    return result;
}

Dims row_major_strides(const Shape& shape) {
    Dims strides = Dims::filled(shape.size(), 1);
    for (int i = shape.size() - 2; i >= 0; --i) strides[i] = strides[i + 1] * shape[i + 1];
    return strides;
}

Dims join(const Dims& a, const Dims& b) {
    Dims result = a;
    for (const int64_t v : b) result.push_back(v);
    return result;
}

std::string to_string(const Dims& dims) { return dims.empty() ? "scalar" : fmt::format("{}", fmt::join(dims.begin(), dims.end(), "x")); }

Dims parse_dims(std::string_view text) {
    Dims dims;
    const char *at = text.data(), *end = at + text.size();
    while (true) {
        int64_t value = 0;
        const auto [next, error] = std::from_chars(at, end, value);
        require(error == std::errc() && value > 0 && dims.size() < Dims::kMost && (next == end || (*next == 'x' && next + 1 != end)),
                "\"{}\" is not a shape; expected positive sizes joined by x, such as 3x64x64", text);
        dims.push_back(value);
        if (next == end) return dims;
        at = next + 1;
    }
}

}  // namespace convoy
