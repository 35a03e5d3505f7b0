// Host memory with a shape and a type: what files hold and what enters and leaves a program. Always plain (row-major). Copying a Tensor copies
// its elements.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "tensor/box.h"
#include "tensor/dtype.h"

namespace convoy {

// Aligned, uninitialised host memory.
class Buffer {
  public:
    static constexpr size_t kAlignment = 64;

    Buffer() = default;
    explicit Buffer(int64_t bytes);
    std::byte* data() const { return data_.get(); }
    int64_t bytes() const { return bytes_; }

  private:
    struct Free {
        void operator()(std::byte* p) const;
    };
    std::unique_ptr<std::byte[], Free> data_;
    int64_t bytes_ = 0;
};

class Tensor {
  public:
    Tensor() = default;
    // Zero-filled.
    Tensor(Shape shape, DType type);
    Tensor(const Tensor& other);
    Tensor(Tensor&&) noexcept = default;
    Tensor& operator=(const Tensor& other);
    Tensor& operator=(Tensor&&) noexcept = default;

    // A tensor with these elements; Bug when their number is not the shape's.
    template <class T>
    static Tensor of(Shape shape, const std::vector<T>& values);

    const Shape& shape() const { return shape_; }
    DType dtype() const { return dtype_; }
    int64_t numel() const { return convoy::numel(shape_); }
    int64_t bytes() const { return numel() * size_of(dtype_); }
    std::byte* data() { return buffer_.data(); }
    const std::byte* data() const { return buffer_.data(); }

    // The elements; Bug when T is not the tensor's type.
    template <class T>
    std::span<T> as();
    template <class T>
    std::span<const T> as() const;

    // The same elements as another type (rounded to nearest; bf16 and f16 too).
    Tensor to(DType type) const;
    // The same elements under another shape of the same size.
    Tensor reshaped(Shape shape) const;

    bool operator==(const Tensor& other) const;  // bit for bit

  private:
    Shape shape_;
    DType dtype_ = DType::f32;
    Buffer buffer_;
};

// A box of a tensor, as a tensor of its own; and such a part put back into its place. Bug when the box is not inside.
Tensor part_of(const Tensor& tensor, const Box& box);
void put_part(Tensor& tensor, const Box& box, const Tensor& part);

// Rounds to the nearest, ties to even.
void round_to_bf16(const float* src, uint16_t* dst, int64_t count);
// One element as a double, whatever the type.
double element(const Tensor& tensor, int64_t index);
// ||a - b|| / max(||b||, floor), in double precision; NaN anywhere gives NaN. Bug when the shapes differ.
double relative_error(const Tensor& a, const Tensor& b, double floor = 0);

template <class T>
std::span<T> Tensor::as() {
    CONVOY_CHECK(dtype_ == dtype_of<T>(), "tensor of {} read as {}", name_of(dtype_), name_of(dtype_of<T>()));
    return {reinterpret_cast<T*>(data()), static_cast<size_t>(numel())};
}

template <class T>
std::span<const T> Tensor::as() const {
    CONVOY_CHECK(dtype_ == dtype_of<T>(), "tensor of {} read as {}", name_of(dtype_), name_of(dtype_of<T>()));
    return {reinterpret_cast<const T*>(data()), static_cast<size_t>(numel())};
}

template <class T>
Tensor Tensor::of(Shape shape, const std::vector<T>& values) {
    Tensor tensor(shape, dtype_of<T>());
    CONVOY_CHECK(static_cast<int64_t>(values.size()) == tensor.numel(), "{} values for shape {}", values.size(), to_string(shape));
    std::copy(values.begin(), values.end(), tensor.as<T>().begin());
    return tensor;
}

}  // namespace convoy
