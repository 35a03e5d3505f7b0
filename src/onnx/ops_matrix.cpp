// Products of matrices, softmax, and reductions.
#include <algorithm>
#include <numeric>

#include "onnx/context.h"

namespace convoy::onnx {

namespace {

void gemm(NodeContext& c) {
    const double alpha = c.real("alpha", 1), beta = c.real("beta", 1);
    const bool transposed_a = c.integer("transA", 0) != 0, transposed_b = c.integer("transB", 0) != 0;
    if (c.opset() < 7) c.integer("broadcast", 0);
    for (const size_t i : {0u, 1u})
        if (c.shape(i).size() != 2) c.refuse(fmt::format("input {} is {}, expected two dims", i + 1, to_string(c.shape(i))));
    const ValueId x = transposed_a ? c.transpose(c.value(0), {1, 0}) : c.value(0);
    const ValueId w = transposed_b ? c.value(1) : c.transpose(c.value(1), {1, 0});
    ValueId y = c.scale(c.add(LinearOp{}, {x, w}), alpha);
    if (c.has(2) && beta != 0) {
        if (broadcast_shape(c.shape_of(y), c.shape(2)) != c.shape_of(y)) c.refuse(fmt::format("C is {}", to_string(c.shape(2))));
        ValueId bias = c.scale(c.value(2), beta);
        // A bias along the columns, however many ones stand before it.
        if (numel(c.shape(2)) == c.shape_of(y)[1] && !c.shape(2).empty() && c.shape(2).back() == c.shape_of(y)[1])
            bias = c.reshape(bias, {c.shape_of(y)[1]});
        y = c.plus(y, bias);
    }
    c.set(0, y);
}

// [.., M, K] x [.., K, N]: a batch of products is a convolution of one tap with a group for each.
void matmul(NodeContext& c) {
    const Shape a = c.shape(0), b = c.shape(1);
    if (a.size() < 2 || b.size() < 2) c.refuse(fmt::format("inputs {} and {}, expected two dims or more", to_string(a), to_string(b)));
    const int64_t m = a[a.size() - 2], k = a.back(), n = b.back();
    if (b[b.size() - 2] != k) c.refuse(fmt::format("{} times {} does not fit", to_string(a), to_string(b)));
    if (b.size() == 2) {
        const int64_t rows = numel(a) / k;
        const ValueId y = c.add(LinearOp{}, {c.reshape(c.value(0), {rows, k}), c.transpose(c.value(1), {1, 0})});
        return c.set(0, c.reshape(y, join(a.slice(0, a.size() - 1), {n})));
    }
    const Shape lead = broadcast_shape(a.slice(0, a.size() - 2), b.slice(0, b.size() - 2));
    const ValueId left = c.broadcast(c.value(0), join(lead, {m, k})), right = c.broadcast(c.value(1), join(lead, {k, n}));
    const int64_t batch = numel(lead);  // which now is known to be of a size that there can be
    const ValueId weight = c.reshape(left, {batch * m, k, 1}), x = c.reshape(right, {1, batch * k, n});
    c.set(0, c.reshape(c.add(ConvOp{Window::of({1}), batch}, {x, weight}), join(lead, {m, n})));
}

// Before operator set 13 all dims from the axis on count as one.
template <class SoftmaxLike>
void softmax(NodeContext& c) {
    const Shape shape = c.shape(0);
    const int axis = c.axis_in(c.integer("axis", c.opset() < 13 ? 1 : -1), std::max(1, shape.size()));
    if (shape.empty()) c.refuse("its input has no dims");
    const ValueId x = c.value(0);
    if (c.opset() >= 13 || axis == shape.size() - 1) return c.set(0, c.add(SoftmaxLike{axis}, {x}));
    const ValueId flat = c.reshape(x, {product(shape, 0, axis), product(shape, axis, shape.size())});
    c.set(0, c.reshape(c.add(SoftmaxLike{1}, {flat}), shape));
}

struct Reduction {
    std::vector<int> axes;
    Shape result;
    double count = 1;
    bool nothing = false;  // no dim is to be reduced
};
Reduction reduction_of(NodeContext& c, bool axes_as_input) {
    const Shape shape = c.shape(0);
    std::vector<int64_t> axes;
    if (axes_as_input && c.opset() >= 13) {
        if (c.has(1)) axes = c.known_ints(1);
    } else {
        axes = c.integers("axes");
    }
    const bool keep = c.integer("keepdims", 1) != 0;
    const bool nothing = axes_as_input && c.opset() >= 13 && c.integer("noop_with_empty_axes", 0) != 0 && axes.empty();
    if (axes.empty() && !nothing) {
        axes.resize(static_cast<size_t>(shape.size()));
        std::iota(axes.begin(), axes.end(), 0);
    }
    Reduction r{.axes = c.axes_in(axes, shape.size()), .nothing = nothing};
    for (int d = 0; d < shape.size(); ++d) {
        const bool reduced = std::find(r.axes.begin(), r.axes.end(), d) != r.axes.end();
        if (reduced) r.count *= static_cast<double>(shape[d]);
        if (!reduced) r.result.push_back(shape[d]);
        if (reduced && keep) r.result.push_back(1);
    }
    return r;
}

enum class Kind { Sum, Mean, Max, Min, L1, L2, SumSquare, LogSum, LogSumExp };
template <Kind kind>
void reduce(NodeContext& c) {
    const Reduction r = reduction_of(c, kind == Kind::Sum);
    const ValueId x = c.value(0);
    const auto sum = [&](ValueId v) { return c.sum_over(v, r.axes); };
    const auto of = [&]() -> ValueId {
        switch (kind) {
            case Kind::Sum: return sum(x);
            case Kind::Mean: return c.scale(sum(x), 1 / r.count);
            case Kind::Max: return c.max_over(x, r.axes);
            case Kind::Min: return c.negative(c.max_over(c.negative(x), r.axes));
            case Kind::L1: return sum(c.map(Pointwise::Abs, x));
            case Kind::L2: return c.map(Pointwise::Sqrt, sum(c.times(x, x)));
            case Kind::SumSquare: return sum(c.times(x, x));
            case Kind::LogSum: return c.map(Pointwise::Log, sum(x));
            case Kind::LogSumExp: {  // the largest is taken away first, so that exp cannot overflow
                const ValueId top = c.max_over(x, r.axes);
                return c.plus(top, c.map(Pointwise::Log, sum(c.map(Pointwise::Exp, c.plus(x, c.negative(top))))));
            }
        }
        return kNone;
    };
    c.set(0, r.nothing ? x : c.reshape(of(), r.result));
}

}  // namespace

std::span<const OpEntry> matrix_ops() {
    static constexpr OpEntry entries[] = {{"Gemm", gemm},
                                          {"MatMul", matmul},
                                          {"Softmax", softmax<SoftmaxOp>},
                                          {"LogSoftmax", softmax<LogSoftmaxOp>},
                                          {"ReduceSum", reduce<Kind::Sum>},
                                          {"ReduceMean", reduce<Kind::Mean>},
                                          {"ReduceMax", reduce<Kind::Max>},
                                          {"ReduceMin", reduce<Kind::Min>},
                                          {"ReduceL1", reduce<Kind::L1>},
                                          {"ReduceL2", reduce<Kind::L2>},
                                          {"ReduceSumSquare", reduce<Kind::SumSquare>},
                                          {"ReduceLogSum", reduce<Kind::LogSum>},
                                          {"ReduceLogSumExp", reduce<Kind::LogSumExp>}};
    return entries;
}

}  // namespace convoy::onnx
