// A short list of integers, one per dimension: shapes, strides, window sizes. Lives on the stack; at most eight dims.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace convoy {

class Dims {
  public:
    static constexpr int kMost = 8;

    Dims() = default;
    Dims(std::initializer_list<int64_t> values);
    // `count` times the same value.
    static Dims filled(int count, int64_t value);

    int size() const { return size_; }
    bool empty() const { return size_ == 0; }
    int64_t& operator[](int i) { return values_[static_cast<size_t>(i)]; }
    int64_t operator[](int i) const { return values_[static_cast<size_t>(i)]; }
    int64_t back() const { return values_[static_cast<size_t>(size_ - 1)]; }
    void push_back(int64_t value);
    // The dims [first, last).
    Dims slice(int first, int last) const;
    Dims slice(int first) const { return slice(first, size_); }

    int64_t* begin() { return values_.data(); }
    int64_t* end() { return values_.data() + size_; }
    const int64_t* begin() const { return values_.data(); }
    const int64_t* end() const { return values_.data() + size_; }

    bool operator==(const Dims& other) const;

  private:
    std::array<int64_t, kMost> values_{};
    int size_ = 0;
};

using Shape = Dims;

// The product of all dims; 1 for none.
int64_t numel(const Dims& dims);
// The product of dims [first, last).
int64_t product(const Dims& dims, int first, int last);
// Row-major strides, in elements.
Dims row_major_strides(const Shape& shape);
// First dims of `a`, then those of `b`.
Dims join(const Dims& a, const Dims& b);
// "8x3x224x224"; "scalar" for no dims.
std::string to_string(const Dims& dims);
// The inverse, for command lines: "3x64x64". Error when it is not a list of positive integers joined by x.
Dims parse_dims(std::string_view text);

}  // namespace convoy
