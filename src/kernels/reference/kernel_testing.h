// For tests of reference kernels: calls one on host tensors.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "kernels/reference/view.h"

namespace convoy::ref::testing {

inline Operand operand_of(Tensor& tensor) { return {tensor.data(), TensorDesc::whole(tensor.shape(), tensor.dtype()), Layout::plain()}; }

struct Setting {
    int threads = 1;
    StepContext context;
};

// Runs the op's kernel for type T with its outputs in the given tensors, which may be among the inputs.
template <class T, class SomeOp>
void run_into(const SomeOp& op, const std::vector<Tensor*>& inputs, const std::vector<Tensor*>& outputs, const Setting& setting = {}) {
    std::vector<Operand> in, out;
    for (Tensor* t : inputs) in.push_back(operand_of(*t));
    for (Tensor* t : outputs) out.push_back(operand_of(*t));
    reference<T>(op, KernelArgs{in, out, nullptr, setting.threads, setting.context});
}

// The same into new tensors of type T, which hold NaN before: what the kernel does not write is seen.
template <class T, class SomeOp>
std::vector<Tensor> run(const SomeOp& op, std::vector<Tensor> inputs, const std::vector<Shape>& outputs, const Setting& setting = {}) {
    std::vector<Tensor> results;
    for (const auto& shape : outputs) {
        results.emplace_back(shape, dtype_of<T>());
        for (auto& value : results.back().template as<T>()) value = std::numeric_limits<T>::quiet_NaN();
    }
    std::vector<Tensor*> in, out;
    for (auto& t : inputs) in.push_back(&t);
    for (auto& t : results) out.push_back(&t);
    run_into<T>(op, in, out, setting);
    return results;
}

inline Tensor doubles(const Shape& shape, const std::vector<double>& values) { return Tensor::of<double>(shape, values); }

// Element i is ((i*factor) mod modulus - offset) / divisor: simple numbers, of both signs, that known answers were computed from.
struct Sequence {
    int64_t factor = 7, modulus = 11, offset = 5;
    double divisor = 4;
};
inline Tensor sequence(const Shape& shape, const Sequence& s = {}) {
    Tensor tensor(shape, DType::f64);
    int64_t i = 0;
    for (auto& value : tensor.as<double>()) value = static_cast<double>(i++ * s.factor % s.modulus - s.offset) / s.divisor;
    return tensor;
}
// The sequence that stands for an incoming gradient.
inline Tensor gradient_sequence(const Shape& shape) { return sequence(shape, {5, 13, 6, 8}); }

// Standard normal numbers, f64; `name` decides which.
inline Tensor normal(const Shape& shape, const std::string& name) {
    Tensor tensor(shape, DType::f64);
    const RandomStream random{1, 0, stream_of(name)};
    uint64_t i = 0;
    for (auto& value : tensor.as<double>()) value = random.normal(i++);
    return tensor;
}

inline void expect_near(const Tensor& found, const std::vector<double>& expected, double tolerance = 1e-11) {
    ASSERT_EQ(found.numel(), static_cast<int64_t>(expected.size()));
    for (int64_t i = 0; i < found.numel(); ++i)
        EXPECT_NEAR(element(found, i), expected[static_cast<size_t>(i)], tolerance) << "element " << i;
}

// Requires the inputs in f64. Checks that the kernel in f32 gives the same to 1e-4, and in both types the same bits on one and on three
// threads. Index inputs are passed as they are.
template <class SomeOp>
void expect_types_and_threads_agree(const SomeOp& op, const std::vector<Tensor>& inputs, const std::vector<Shape>& outputs) {
    std::vector<Tensor> narrow;
    for (const auto& t : inputs) narrow.push_back(is_floating(t.dtype()) ? t.to(DType::f32) : t);
    const auto wide_result = run<double>(op, inputs, outputs), narrow_result = run<float>(op, narrow, outputs);
    const auto wide_threads = run<double>(op, inputs, outputs, {.threads = 3}),
               narrow_threads = run<float>(op, narrow, outputs, {.threads = 3});
    for (size_t i = 0; i < outputs.size(); ++i) {
        EXPECT_LT(relative_error(narrow_result[i].to(DType::f64), wide_result[i], 1e-30), 1e-4) << "output " << i;
        EXPECT_EQ(wide_result[i], wide_threads[i]) << "output " << i;
        EXPECT_EQ(narrow_result[i], narrow_threads[i]) << "output " << i;
    }
}

}  // namespace convoy::ref::testing
