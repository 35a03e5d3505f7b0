#include "kernels/reference/linear.h"

#include <array>

#include "kernels/reference/gemm.h"

namespace convoy::ref {

namespace {

// Elements below which a thread is not worth starting.
constexpr int64_t kGrain = 1 << 14;

// A tensor around the dims of a bias: [outer, middle, inner].
struct Around {
    int64_t outer, middle, inner;
    Around(const Shape& shape, int axis, int rank)
        : outer(product(shape, 0, axis)), middle(product(shape, axis, axis + rank)), inner(product(shape, axis + rank, shape.size())) {}
};

}  // namespace

template <class T>
void reference(const LinearOp&, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]), w = const_view<T>(args.inputs[1]);
    const auto y = view<T>(args.outputs[0]);
    const int64_t inputs = w.shape[1], outputs = w.shape[0];
    gemm(Gemm<T>{.m = x.shape[0],
                 .n = outputs,
                 .k = inputs,
                 .a = x.data,
                 .lda = inputs,
                 .b = w.data,
                 .ldb = inputs,
                 .transpose_b = true,
                 .c = y.data,
                 .ldc = outputs},
         args.threads);
}

template <class T>
void reference(const LinearGradInputOp&, const KernelArgs& args) {
    const auto dy = const_view<T>(args.inputs[0]), w = const_view<T>(args.inputs[1]);
    const auto dx = view<T>(args.outputs[0]);
    const int64_t inputs = w.shape[1], outputs = w.shape[0];
    gemm(Gemm<T>{.m = dy.shape[0],
                 .n = inputs,
                 .k = outputs,
                 .a = dy.data,
                 .lda = outputs,
                 .b = w.data,
                 .ldb = inputs,
                 .c = dx.data,
                 .ldc = inputs},
         args.threads);
}

template <class T>
void reference(const LinearGradWeightOp&, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]), dy = const_view<T>(args.inputs[1]);
    const auto dw = view<T>(args.outputs[0]);
    const int64_t inputs = dw.shape[1], outputs = dw.shape[0];
    gemm(Gemm<T>{.m = outputs,
                 .n = inputs,
                 .k = x.shape[0],
                 .a = dy.data,
                 .lda = outputs,
                 .transpose_a = true,
                 .b = x.data,
                 .ldb = inputs,
                 .c = dw.data,
                 .ldc = inputs},
         args.threads);
}

template <class T>
void reference(const BiasOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]), b = const_view<T>(args.inputs[1]);
    const auto y = view<T>(args.outputs[0]);
    const Around a(x.shape, op.axis, b.rank());
    const int64_t lines = a.outer * a.middle;
    parallel_ranges(args.threads, lines, kGrain / std::max<int64_t>(a.inner, 1), [&](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line) {
            const T bias = b[line % a.middle];
            for (int64_t i = line * a.inner; i < (line + 1) * a.inner; ++i) y[i] = x[i] + bias;
        }
    });
}

template <class T>
void reference(const BiasGradOp& op, const KernelArgs& args) {
    const auto dy = const_view<T>(args.inputs[0]);
    const auto db = view<T>(args.outputs[0]);
    const Around a(dy.shape, op.axis, op.rank);
    parallel_ranges(args.threads, a.middle, kGrain / std::max<int64_t>(a.outer * a.inner, 1), [&](int64_t begin, int64_t end) {
        // A few sums at a time, so that memory is read in order also where the bias is the last dim. In double: these are long sums.
        std::array<double, 64> sums;
        for (int64_t first = begin; first < end; first += std::ssize(sums)) {
            const int64_t last = std::min<int64_t>(end, first + std::ssize(sums));
            sums.fill(0);
            for (int64_t o = 0; o < a.outer; ++o) {
                const T* from = dy.data + (o * a.middle + first) * a.inner;
                for (int64_t m = first; m < last; ++m) {
                    double sum = 0;
                    for (int64_t i = 0; i < a.inner; ++i) sum += *from++;
                    sums[static_cast<size_t>(m - first)] += sum;
                }
            }
            for (int64_t m = first; m < last; ++m) db[m] = static_cast<T>(sums[static_cast<size_t>(m - first)]);
        }
    });
}

template void reference<double>(const LinearOp&, const KernelArgs&);
template void reference<float>(const LinearOp&, const KernelArgs&);
template void reference<double>(const LinearGradInputOp&, const KernelArgs&);
template void reference<float>(const LinearGradInputOp&, const KernelArgs&);
template void reference<double>(const LinearGradWeightOp&, const KernelArgs&);
template void reference<float>(const LinearGradWeightOp&, const KernelArgs&);
template void reference<double>(const BiasOp&, const KernelArgs&);
template void reference<float>(const BiasOp&, const KernelArgs&);
template void reference<double>(const BiasGradOp&, const KernelArgs&);
template void reference<float>(const BiasGradOp&, const KernelArgs&);

}  // namespace convoy::ref
