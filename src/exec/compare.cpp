#include "exec/compare.h"

#include <array>
#include <cmath>

#include "base/error.h"
#include "tensor/runs.h"

namespace convoy {

namespace {

// The sum of fn(i)^2. Eight sums side by side, so that no addition waits for the one before.
template <class Fn>
double squares(int64_t count, const Fn& fn) {
    constexpr int64_t kSums = 8;
    std::array<double, kSums> sums{};
    int64_t i = 0;
    for (; i + kSums <= count; i += kSums)
        for (int64_t k = 0; k < kSums; ++k) {
            const double x = fn(i + k);
            sums[static_cast<size_t>(k)] += x * x;
        }
    for (; i < count; ++i) sums[0] += fn(i) * fn(i);
    double sum = 0;
    for (const double s : sums) sum += s;
    return sum;
}

// Calls fn with the elements of the tensor as something that can be indexed.
template <class Fn>
double with_elements(const Tensor& tensor, const Fn& fn) {
    if (tensor.dtype() == DType::f64) return fn([x = tensor.as<double>().data()](int64_t i) { return x[i]; });
    if (tensor.dtype() == DType::f32) return fn([x = tensor.as<float>().data()](int64_t i) { return static_cast<double>(x[i]); });
    return fn([&](int64_t i) { return element(tensor, i); });
}

}  // namespace

double norm_of(const Tensor& tensor) {
    return std::sqrt(with_elements(tensor, [&](const auto& x) { return squares(tensor.numel(), x); }));
}

double distance_between(const Tensor& a, const Tensor& b) {
    CONVOY_CHECK(a.shape() == b.shape(), "comparing {} with {}", to_string(a.shape()), to_string(b.shape()));
    return std::sqrt(with_elements(a, [&](const auto& x) {
        return with_elements(b, [&](const auto& y) { return squares(a.numel(), [&](int64_t i) { return x(i) - y(i); }); });
    }));
}

Doubles::Doubles(const Operand& operand, Backend& backend) : shape_(operand.desc.shape) {
    if (backend.on_host() && operand.layout.is_plain() && operand.desc.dtype == DType::f64) {
        data_ = static_cast<const double*>(operand.data);
        return;
    }
    auto tensor = std::make_shared<Tensor>(shape_, operand.desc.dtype);
    backend.download(operand, *tensor);
    keep(std::move(tensor));
}

Doubles::Doubles(std::shared_ptr<const Tensor> tensor) : shape_(tensor->shape()) { keep(std::move(tensor)); }

void Doubles::keep(std::shared_ptr<const Tensor> tensor) {
    kept_ = tensor->dtype() == DType::f64 ? std::move(tensor) : std::make_shared<const Tensor>(tensor->to(DType::f64));
    data_ = kept_->as<double>().data();
}

double Doubles::norm() const {
    return std::sqrt(squares(numel(shape_), [x = data_](int64_t i) { return x[i]; }));
}

void Comparison::hear(const double* piece, const Box& where) {
    const Box common = intersection(box_, where);
    if (common.empty()) return;
    for_each_run(found_.shape(), common.within(box_), where.shape, common.within(where), [&](int64_t mine, int64_t theirs, int64_t length) {
        squared_ += squares(length, [x = found_.data() + mine, y = piece + theirs](int64_t i) { return x[i] - y[i]; });
    });
}

double Comparison::error(double norm, double floor) const { return squared_ == 0 ? 0 : std::sqrt(squared_) / std::max(norm, floor); }

}  // namespace convoy
