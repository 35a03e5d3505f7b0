#include "tensor/tensor.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

#include "tensor/runs.h"

namespace convoy {

namespace {

float from_bf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t to_bf16(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
    return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

float from_f16(uint16_t bits) {
    const float sign = bits & 0x8000 ? -1.0f : 1.0f;
    const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
    if (exponent == 31) return fraction ? NAN : sign * INFINITY;
    return sign *
           (exponent ? std::ldexp(1024.0f + static_cast<float>(fraction), exponent - 25) : std::ldexp(static_cast<float>(fraction), -24));
}

uint16_t to_f16(float value) {
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    if (std::isnan(value)) return sign | 0x7E00;
    const float size = std::fabs(value);
    if (size >= 65520.0f) return sign | 0x7C00;
    if (size < 0x1p-14f) return static_cast<uint16_t>(sign | static_cast<int>(std::nearbyint(std::ldexp(size, 24))));
    int exponent = 0;
    const float fraction = std::frexp(size, &exponent);                              // size = fraction * 2^exponent, fraction in [1/2, 1)
    const int rounded = static_cast<int>(std::nearbyint(std::ldexp(fraction, 11)));  // 1024..2048: a carry lands in the exponent
    return static_cast<uint16_t>(sign | (((exponent + 13) << 10) + rounded));
}

double load(const std::byte* data, DType type, int64_t i) {
    const auto at = [&](auto zero) {
        auto value = zero;
        std::memcpy(&value, data + i * static_cast<int64_t>(sizeof value), sizeof value);
        return value;
    };
    switch (type) {
        case DType::f64: return at(0.0);
        case DType::f32:
        case DType::tf32: return at(0.0f);
        case DType::bf16: return from_bf16(at(uint16_t{}));
        case DType::f16: return from_f16(at(uint16_t{}));
        case DType::i64: return static_cast<double>(at(int64_t{}));
        case DType::i32: return at(int32_t{});
        case DType::u8: return at(uint8_t{});
    }
    return 0;
}

void store(std::byte* data, DType type, int64_t i, double value) {
    const auto put = [&](auto v) { std::memcpy(data + i * static_cast<int64_t>(sizeof v), &v, sizeof v); };
    switch (type) {
        case DType::f64: return put(value);
        case DType::f32:
        case DType::tf32: return put(static_cast<float>(value));
        case DType::bf16: return put(to_bf16(static_cast<float>(value)));
        case DType::f16: return put(to_f16(static_cast<float>(value)));
        case DType::i64: return put(static_cast<int64_t>(value));
        case DType::i32: return put(static_cast<int32_t>(value));
        case DType::u8: return put(static_cast<uint8_t>(value));
    }
}

}  // namespace

void Buffer::Free::operator()(std::byte* p) const { std::free(p); }

// Large memory lies in large pages where the system has them: a step goes through all of it in strides that 4 KiB pages cannot be looked up fast enough for.
Buffer::Buffer(int64_t bytes) : bytes_(bytes) {
    constexpr size_t kLargePage = size_t{2} << 20;
    const auto wanted = static_cast<size_t>(bytes);
    // What is larger than a few pages shares none with other memory, so that they can be locked.
    constexpr size_t kPage = 4096;
    const size_t alignment = wanted >= 2 * kLargePage ? kLargePage : wanted >= 16 * kPage ? kPage : kAlignment;
    const size_t unit = std::min(alignment, kPage), rounded = (wanted + unit - 1) / unit * unit;
    void* memory = nullptr;
    require(::posix_memalign(&memory, alignment, rounded ? rounded : kAlignment) == 0, "out of memory: {} bytes were wanted at once",
            bytes);
    data_.reset(static_cast<std::byte*>(memory));
    // What the last large page would take beyond the end stays in small ones. A system that refuses has small pages only, which is no error.
    if (alignment == kLargePage) ::madvise(memory, wanted / kLargePage * kLargePage, MADV_HUGEPAGE);
}

Tensor::Tensor(Shape shape, DType type) : shape_(shape), dtype_(type), buffer_(convoy::numel(shape) * size_of(type)) {
    std::memset(data(), 0, static_cast<size_t>(bytes()));
}

Tensor::Tensor(const Tensor& other) : shape_(other.shape_), dtype_(other.dtype_), buffer_(other.data() ? other.bytes() : 0) {
    if (other.data()) std::memcpy(data(), other.data(), static_cast<size_t>(bytes()));
}

Tensor& Tensor::operator=(const Tensor& other) {
    if (this != &other) *this = Tensor(other);
    return *this;
}

Tensor Tensor::to(DType type) const {
    if (type == dtype_) return *this;
    Tensor result(shape_, type);
    if (dtype_ == DType::f64 && type == DType::f32) {
        std::copy_n(as<double>().data(), numel(), result.as<float>().data());
        return result;
    }
    if (dtype_ == DType::f32 && type == DType::f64) {
        std::copy_n(as<float>().data(), numel(), result.as<double>().data());
        return result;
    }
    if (dtype_ == DType::f32 && type == DType::bf16) {
        round_to_bf16(as<float>().data(), reinterpret_cast<uint16_t*>(result.data()), numel());
        return result;
    }
    for (int64_t i = 0; i < numel(); ++i) {
        if (dtype_ == DType::i64 && !is_floating(type)) {  // doubles would round large integers
            const int64_t value = as<int64_t>()[static_cast<size_t>(i)];
            if (type == DType::i32) result.as<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(value);
            if (type == DType::u8) result.as<uint8_t>()[static_cast<size_t>(i)] = static_cast<uint8_t>(value);
        } else {
            store(result.data(), type, i, load(data(), dtype_, i));
        }
    }
    return result;
}

Tensor Tensor::reshaped(Shape shape) const {
    CONVOY_CHECK(convoy::numel(shape) == numel(), "reshape of {} to {}", to_string(shape_), to_string(shape));
    Tensor result = *this;
    result.shape_ = shape;
    return result;
}

bool Tensor::operator==(const Tensor& other) const {
    return shape_ == other.shape_ && dtype_ == other.dtype_ && std::memcmp(data(), other.data(), static_cast<size_t>(bytes())) == 0;
}

namespace {

// Calls fn(offset in the tensor, offset in the part, length) in bytes for every run of elements of the box that lie one after the other.
template <class Fn>
void for_each_row(const Tensor& tensor, const Box& box, const Fn& fn) {
    const int64_t item = size_of(tensor.dtype());
    for_each_run(tensor.shape(), box, box.shape, Box::whole(box.shape),
                 [&](int64_t at, int64_t to, int64_t length) { fn(at * item, to * item, length * item); });
}

}  // namespace

Tensor part_of(const Tensor& tensor, const Box& box) {
    Tensor part(box.shape, tensor.dtype());
    for_each_row(tensor, box, [&](int64_t at, int64_t to, int64_t bytes) {
        std::memcpy(part.data() + to, tensor.data() + at, static_cast<size_t>(bytes));
    });
    return part;
}

void put_part(Tensor& tensor, const Box& box, const Tensor& part) {
    CONVOY_CHECK(part.shape() == box.shape && part.dtype() == tensor.dtype(), "a part of {} for box {}", to_string(part.shape()),
                 to_string(box));
    for_each_row(tensor, box, [&](int64_t at, int64_t from, int64_t bytes) {
        std::memcpy(tensor.data() + at, part.data() + from, static_cast<size_t>(bytes));
    });
}

void round_to_bf16(const float* src, uint16_t* dst, int64_t count) {
    for (int64_t i = 0; i < count; ++i) dst[i] = to_bf16(src[i]);
}

double element(const Tensor& tensor, int64_t index) { return load(tensor.data(), tensor.dtype(), index); }

double relative_error(const Tensor& a, const Tensor& b, double floor) {
    CONVOY_CHECK(a.shape() == b.shape(), "comparing {} with {}", to_string(a.shape()), to_string(b.shape()));
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < a.numel(); ++i) {
        const double x = element(a, i), y = element(b, i);
        difference += (x - y) * (x - y);
        norm += y * y;
    }
    const double scale = std::max(std::sqrt(norm), floor);
    return difference == 0 ? 0 : std::sqrt(difference) / scale;
}

}  // namespace convoy
