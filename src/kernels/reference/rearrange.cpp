#include "kernels/reference/rearrange.h"

namespace convoy::ref {

namespace {

constexpr int64_t kGrain = 4096;  // elements that are worth a thread

// Calls fn(E{}) with the element type of the operand.
template <class Fn>
void with_element(const Operand& operand, const Fn& fn) {
    switch (operand.desc.dtype) {
        case DType::f64: return fn(double{});
        case DType::f32: return fn(float{});
        case DType::i64: return fn(int64_t{});
        case DType::i32: return fn(int32_t{});
        case DType::u8: return fn(uint8_t{});
        default: CONVOY_CHECK(false, "the reference does not move elements of {}", name_of(operand.desc.dtype));
    }
}

int64_t dot(const Dims& a, const Dims& b) {
    int64_t sum = 0;
    for (int i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

// Where elements lie: the one at index 0, and the distance to the next along each dim (0 repeats).
template <class E>
struct Strided {
    E* data;
    Dims strides;
};

// The offset of the first element of row number `row` of `shape`, whose rows run along its last dim.
int64_t row_offset(const Shape& shape, const Dims& strides, int64_t row) {
    int64_t offset = 0;
    for (int d = shape.size() - 2; d >= 0; --d) {
        offset += row % shape[d] * strides[d];
        row /= shape[d];
    }
    return offset;
}

// dst[index] = src[index] for every index of `shape`.
template <class E>
void copy(int threads, const Shape& shape, const Strided<const E>& src, const Strided<E>& dst) {
    if (numel(shape) == 0) return;
    const int last = shape.size() - 1;
    const int64_t length = last < 0 ? 1 : shape[last], rows = numel(shape) / length;
    const int64_t src_step = last < 0 ? 1 : src.strides[last], dst_step = last < 0 ? 1 : dst.strides[last];
    parallel_ranges(threads, rows, kGrain / length, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
            const E* from = src.data + row_offset(shape, src.strides, row);
            E* to = dst.data + row_offset(shape, dst.strides, row);
            if (src_step == 1 && dst_step == 1) {
                std::copy_n(from, length, to);
            } else {
                for (int64_t i = 0; i < length; ++i) to[i * dst_step] = from[i * src_step];
            }
        }
    });
}

// The strides of `x` as the strides of a tensor of another shape that x is repeated to: 0 where it is.
Dims repeating_strides(const Shape& shape, const Dims& strides) {
    Dims result = strides;
    for (int d = 0; d < shape.size(); ++d) {
        if (shape[d] == 1) result[d] = 0;
    }
    return result;
}

}  // namespace

template <class T>
void reference(const ConcatOp& op, const KernelArgs& args) {
    with_element(args.outputs[0], [&](auto zero) {
        using E = decltype(zero);
        const auto y = view<E>(args.outputs[0]);
        int64_t start = 0;
        for (const auto& input : args.inputs) {
            const auto x = const_view<E>(input);
            copy<E>(args.threads, x.shape, {x.data, x.strides}, {y.data + start * y.strides[op.axis], y.strides});
            start += x.shape[op.axis];
        }
        CONVOY_CHECK(start == y.shape[op.axis], "concat: {} of {} filled", start, y.shape[op.axis]);
    });
}

template <class T>
void reference(const SliceOp& op, const KernelArgs& args) {
    with_element(args.outputs[0], [&](auto zero) {
        using E = decltype(zero);
        const auto x = const_view<E>(args.inputs[0]);
        const auto y = view<E>(args.outputs[0]);
        copy<E>(args.threads, y.shape, {x.data + dot(op.start, x.strides), x.strides}, {y.data, y.strides});
    });
}

template <class T>
void reference(const PadOp& op, const KernelArgs& args) {
    with_element(args.outputs[0], [&](auto zero) {
        using E = decltype(zero);
        const auto x = const_view<E>(args.inputs[0]);
        const auto y = view<E>(args.outputs[0]);
        const E value = static_cast<E>(op.value);
        parallel_ranges(args.threads, y.count, kGrain, [&](int64_t begin, int64_t end) { std::fill(y.data + begin, y.data + end, value); });
        // What is left of x: indices [from, to) of it.
        Dims from = x.shape, kept = x.shape, at = x.shape;
        for (int d = 0; d < x.rank(); ++d) {
            from[d] = std::max<int64_t>(0, -op.lo[d]);
            kept[d] = std::max<int64_t>(0, x.shape[d] - std::max<int64_t>(0, -op.hi[d]) - from[d]);
            at[d] = std::max<int64_t>(0, op.lo[d]);
        }
        if (numel(kept) == 0) return;
        copy<E>(args.threads, kept, {x.data + dot(from, x.strides), x.strides}, {y.data + dot(at, y.strides), y.strides});
    });
}

template <class T>
void reference(const ReshapeOp&, const KernelArgs& args) {
    with_element(args.outputs[0], [&](auto zero) {
        using E = decltype(zero);
        const auto x = const_view<E>(args.inputs[0]);
        const auto y = view<E>(args.outputs[0]);
        CONVOY_CHECK(x.count == y.count, "reshape of {} to {}", to_string(x.shape), to_string(y.shape));
        parallel_ranges(args.threads, x.count, kGrain,
                        [&](int64_t begin, int64_t end) { std::copy(x.data + begin, x.data + end, y.data + begin); });
    });
}

template <class T>
void reference(const TransposeOp& op, const KernelArgs& args) {
    with_element(args.outputs[0], [&](auto zero) {
        using E = decltype(zero);
        const auto x = const_view<E>(args.inputs[0]);
        const auto y = view<E>(args.outputs[0]);
        Dims strides = x.strides;
        for (int d = 0; d < x.rank(); ++d) strides[d] = x.strides[static_cast<int>(op.order[d])];
        copy<E>(args.threads, y.shape, {x.data, strides}, {y.data, y.strides});
    });
}

template <class T>
void reference(const ExpandOp&, const KernelArgs& args) {
    with_element(args.outputs[0], [&](auto zero) {
        using E = decltype(zero);
        const auto x = const_view<E>(args.inputs[0]);
        const auto y = view<E>(args.outputs[0]);
        CONVOY_CHECK(x.rank() == y.rank(), "expand of {} to {}", to_string(x.shape), to_string(y.shape));
        copy<E>(args.threads, y.shape, {x.data, repeating_strides(x.shape, x.strides)}, {y.data, y.strides});
    });
}

template <class T>
void reference(const PackOp& op, const KernelArgs& args) {
    with_element(args.outputs[0], [&](auto zero) {
        using E = decltype(zero);
        const auto x = const_view<E>(args.inputs[0]);
        E* wire = view<E>(args.outputs[0]).data;
        for (const Box& box : op.boxes) {
            copy<E>(args.threads, box.shape, {x.data + dot(box.origin, x.strides), x.strides}, {wire, row_major_strides(box.shape)});
            wire += numel(box.shape);
        }
    });
}

template <class T>
void reference(const UnpackOp& op, const KernelArgs& args) {
    with_element(args.outputs[0], [&](auto zero) {
        using E = decltype(zero);
        const E* wire = const_view<E>(args.inputs[0]).data;
        const auto y = view<E>(args.outputs[0]);
        for (const Box& box : op.boxes) {
            copy<E>(args.threads, box.shape, {wire, row_major_strides(box.shape)}, {y.data + dot(box.origin, y.strides), y.strides});
            wire += numel(box.shape);
        }
        if (op.kept.empty()) return;
        const auto x = const_view<E>(args.inputs[1]);
        copy<E>(args.threads, op.kept.shape, {x.data + dot(op.kept.origin, x.strides), x.strides},
                {y.data + dot(op.kept_at, y.strides), y.strides});
    });
}

template <class T>
void reference(const SumToOp&, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]);
    const auto y = view<T>(args.outputs[0]);
    CONVOY_CHECK(x.rank() == y.rank(), "sum of {} to {}", to_string(x.shape), to_string(y.shape));
    // The elements behind one of y: those of a box of x with the dims that y has lost.
    Shape box = x.shape;
    for (int d = 0; d < x.rank(); ++d) {
        if (y.shape[d] != 1) box[d] = 1;
    }
    const int last = box.size() - 1;
    const int64_t length = last < 0 ? 1 : box[last], rows = numel(box) / std::max<int64_t>(length, 1);
    parallel_for(args.threads, y.count, [&](int64_t cell) {
        int64_t start = 0, rest = cell;
        for (int d = last; d >= 0; --d) {
            start += rest % y.shape[d] * x.strides[d];
            rest /= y.shape[d];
        }
        double sum = 0;
        for (int64_t row = 0; row < rows; ++row) {
            const T* from = x.data + start + row_offset(box, x.strides, row);
            for (int64_t i = 0; i < length; ++i) sum += from[i];
        }
        y[cell] = static_cast<T>(sum);
    });
}

template void reference<double>(const ConcatOp&, const KernelArgs&);
template void reference<float>(const ConcatOp&, const KernelArgs&);
template void reference<double>(const SliceOp&, const KernelArgs&);
template void reference<float>(const SliceOp&, const KernelArgs&);
template void reference<double>(const PadOp&, const KernelArgs&);
template void reference<float>(const PadOp&, const KernelArgs&);
template void reference<double>(const ReshapeOp&, const KernelArgs&);
template void reference<float>(const ReshapeOp&, const KernelArgs&);
template void reference<double>(const TransposeOp&, const KernelArgs&);
template void reference<float>(const TransposeOp&, const KernelArgs&);
template void reference<double>(const ExpandOp&, const KernelArgs&);
template void reference<float>(const ExpandOp&, const KernelArgs&);
template void reference<double>(const PackOp&, const KernelArgs&);
template void reference<float>(const PackOp&, const KernelArgs&);
template void reference<double>(const UnpackOp&, const KernelArgs&);
template void reference<float>(const UnpackOp&, const KernelArgs&);
template void reference<double>(const SumToOp&, const KernelArgs&);
template void reference<float>(const SumToOp&, const KernelArgs&);

}  // namespace convoy::ref
