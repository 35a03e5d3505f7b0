#include "kernels/reference/elementwise.h"

#include <array>

namespace convoy::ref {

template <class T>
void reference(const AddOp&, const KernelArgs& args) {
    const auto y = view<T>(args.outputs[0]);
    for (const auto& input : args.inputs) {
        CONVOY_CHECK(input.desc.shape == y.shape, "add: {} into {}", to_string(input.desc.shape), to_string(y.shape));
        CONVOY_CHECK(input.desc.dtype == dtype_of<T>() && input.layout.is_plain(), "add: an operand is not a plain {}",
                     name_of(dtype_of<T>()));
    }
    parallel_ranges(args.threads, y.count, kElementGrain, [&](int64_t begin, int64_t end) {
        // By pieces, because y may be in the place of any input: all inputs of a piece are read before it is written.
        constexpr int64_t kPiece = 256;
        std::array<T, kPiece> sum;
        for (int64_t first = begin; first < end; first += kPiece) {
            const int64_t count = std::min(kPiece, end - first);
            std::copy_n(static_cast<const T*>(args.inputs[0].data) + first, count, sum.data());
            for (const auto& input : args.inputs.subspan(1)) {
                const T* x = static_cast<const T*>(input.data) + first;
                for (int64_t i = 0; i < count; ++i) sum[static_cast<size_t>(i)] += x[i];
            }
            std::copy_n(sum.data(), count, y.data + first);
        }
    });
}

template <class T>
void reference(const MulOp&, const KernelArgs& args) {
    const auto a = const_view<T>(args.inputs[0]), b = const_view<T>(args.inputs[1]);
    const auto y = view<T>(args.outputs[0]);
    parallel_ranges(args.threads, y.count, kElementGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) y[i] = a[i] * b[i];
    });
}

template <class T>
void reference(const ScaleOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]);
    const auto y = view<T>(args.outputs[0]);
    const T factor = static_cast<T>(op.factor);
    parallel_ranges(args.threads, y.count, kElementGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) y[i] = factor * x[i];
    });
}

template void reference<double>(const AddOp&, const KernelArgs&);
template void reference<float>(const AddOp&, const KernelArgs&);
template void reference<double>(const MulOp&, const KernelArgs&);
template void reference<float>(const MulOp&, const KernelArgs&);
template void reference<double>(const ScaleOp&, const KernelArgs&);
template void reference<float>(const ScaleOp&, const KernelArgs&);

}  // namespace convoy::ref
