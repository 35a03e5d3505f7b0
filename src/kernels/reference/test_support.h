// For randomised tests of ops: random problems, and running one op through the reference's entry with the workspace that it asks for.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/test_count.h"
#include "kernels/reference/kernel_testing.h"
#include "kernels/reference/reference.h"

namespace convoy::ref::testing {

// A sequence of random numbers; the same name and number always give the same sequence.
class Draw {
  public:
    Draw(const std::string& name, int number) : random_{1, static_cast<uint32_t>(number), stream_of(name)} {}

    // Uniform in [low, high].
    int64_t between(int64_t low, int64_t high) {
        return low + static_cast<int64_t>(random_.uniform(next_++) * static_cast<double>(high - low + 1));
    }
    bool coin() { return between(0, 1) == 1; }
    double real(double low, double high) { return low + random_.uniform(next_++) * (high - low); }

    Dims dims(int rank, int64_t low, int64_t high) {
        Dims result;
        for (int i = 0; i < rank; ++i) result.push_back(between(low, high));
        return result;
    }
    // Standard normal, f64.
    Tensor normal(const Shape& shape) {
        Tensor tensor(shape, DType::f64);
        for (auto& value : tensor.as<double>()) value = random_.normal(next_++);
        return tensor;
    }
    // Multiples of `gap` in random order, shifted by half of it: no two closer than the gap, none closer than half of it to zero.
    Tensor separated(const Shape& shape, double gap) {
        Tensor tensor(shape, DType::f64);
        const int64_t count = tensor.numel();
        const auto order = permutation(RandomStream{random_.seed, random_.step, random_.bits(next_++)}, count);
        for (int64_t i = 0; i < count; ++i)
            tensor.as<double>()[static_cast<size_t>(i)] = (static_cast<double>(order[static_cast<size_t>(i)] - count / 2) + 0.5) * gap;
        return tensor;
    }
    // Class indices in [0, classes), i32.
    Tensor labels(const Shape& shape, int64_t classes) {
        Tensor tensor(shape, DType::i32);
        for (auto& value : tensor.as<int32_t>()) value = static_cast<int32_t>(between(0, classes - 1));
        return tensor;
    }

  private:
    RandomStream random_;
    uint64_t next_ = 0;
};

// The window with what it slides over and what comes out.
struct WindowProblem {
    Window window;
    Dims in, out;
};

struct WindowLimits {
    int64_t length = 9, kernel = 4, stride = 4, dilation = 3, pad_least = -1, pad_most = 3;
};

// A window of rank 1 to 3 that has at least one output in every dim.
inline WindowProblem draw_window(Draw& draw, const WindowLimits& limits = {}) {
    const int rank = static_cast<int>(draw.between(1, 3));
    const int64_t length = rank == 3 ? std::min<int64_t>(limits.length, 6) : limits.length;
    while (true) {
        const Window window{draw.dims(rank, 1, limits.kernel), draw.dims(rank, 1, limits.stride), draw.dims(rank, 1, limits.dilation),
                            draw.dims(rank, limits.pad_least, limits.pad_most), draw.dims(rank, limits.pad_least, limits.pad_most)};
        const Dims in = draw.dims(rank, 1, length);
        if (const Dims out = window.output(in); numel(out) > 0) return {window, in, out};
    }
}

// Runs the op with inputs as they are, into outputs of the given descriptions; floating outputs hold NaN before.
inline std::vector<Tensor> run_op(const Op& op, std::vector<Tensor> inputs, const std::vector<TensorDesc>& outputs, int threads = 1) {
    std::vector<Tensor> results;
    std::vector<Operand> in, out;
    std::vector<TensorDesc> in_descs;
    for (auto& t : inputs) {
        in.push_back(operand_of(t));
        in_descs.push_back(in.back().desc);
    }
    results.reserve(outputs.size());
    for (const auto& desc : outputs) {
        results.emplace_back(desc.shape, desc.dtype);
        if (desc.dtype == DType::f64) std::fill_n(results.back().as<double>().data(), results.back().numel(), std::nan(""));
        if (desc.dtype == DType::f32) std::fill_n(results.back().as<float>().data(), results.back().numel(), std::nanf(""));
        out.push_back({results.back().data(), desc, Layout::plain()});
    }
    const Buffer workspace(reference_workspace_bytes(op, in_descs, outputs, threads));
    run_reference(op, in, out, workspace.data(), threads, {});
    return results;
}

// The same with one whole output of the type of the first input.
inline Tensor run_op1(const Op& op, const std::vector<Tensor>& inputs, const Shape& output, int threads = 1) {
    return run_op(op, inputs, {TensorDesc::whole(output, inputs[0].dtype())}, threads)[0];
}

inline std::vector<Tensor> narrowed(const std::vector<Tensor>& tensors) {
    std::vector<Tensor> result;
    for (const auto& t : tensors) result.push_back(is_floating(t.dtype()) ? t.to(DType::f32) : t);
    return result;
}

// Checks that f32 agrees with f64 within 1e-4, and three threads with one to rounding. Inputs are f64.
inline void expect_agreement(const Op& op, const std::vector<Tensor>& inputs, const Shape& output) {
    const Tensor expected = run_op1(op, inputs, output);
    EXPECT_LT(relative_error(run_op1(op, inputs, output, 3), expected, 1e-30), 1e-13) << text_of(op);
    EXPECT_LT(relative_error(run_op1(op, narrowed(inputs), output, 3), expected, 1e-30), 1e-4) << text_of(op);
}

}  // namespace convoy::ref::testing
