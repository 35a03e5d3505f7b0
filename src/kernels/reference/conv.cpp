#include "kernels/reference/conv.h"

#include "kernels/reference/conv_columns.h"
#include "kernels/reference/conv_direct.h"
#include "kernels/reference/gemm.h"

namespace convoy::ref {

namespace {

// A convolution with the sizes of its products. Within one group: weights [filters, rows], patches [rows, positions], result
// [filters, positions].
struct Conv {
    Geometry g;
    int64_t batch, groups, channels, filters;  // channels and filters of one group
    int64_t rows;                              // channels * kernel
    int64_t positions;
    int64_t block, blocks;  // positions at a time, and how often
    bool pointwise;         // the patches are the input itself

    Conv(const Window& window, int64_t group_count, const TensorDesc& x, const TensorDesc& y)
        : g(geometry(window, x.shape, y.shape)),
          batch(x.shape[0]),
          groups(group_count),
          channels(x.shape[1] / group_count),
          filters(y.shape[1] / group_count),
          rows(channels * g.kernel_count()),
          positions(g.out_count()),
          block(column_block(g, rows, size_of(x.dtype))),
          blocks((positions + block - 1) / block),
          pointwise(g.is_pointwise()) {}

    Range positions_of(int64_t i) const { return {i * block, std::min((i + 1) * block, positions)}; }
    int64_t columns_bytes(DType type) const { return pointwise ? 0 : whole_lines(rows * block * size_of(type)); }
    // Offsets of the group's first plane of a sample.
    int64_t x_at(int64_t n, int64_t group) const { return (n * groups + group) * channels * g.in_count(); }
    int64_t y_at(int64_t n, int64_t group) const { return (n * groups + group) * filters * positions; }
    int64_t w_at(int64_t group) const { return group * filters * rows; }
};

template <class T>
struct Columns {
    const T* data;
    int64_t stride;
};

// The patches of `channels` planes from x on, in `buffer` unless they can be read in place.
template <class T>
Columns<T> columns_of(const Conv& conv, const T* x, Range range, T* buffer) {
    if (conv.pointwise) return {x + range.begin, conv.positions};
    gather_columns(conv.g, conv.channels, x, range, buffer);
    return {buffer, range.end - range.begin};
}

template <class T>
T* scratch(void* workspace, int64_t offset_bytes) {
    return reinterpret_cast<T*>(static_cast<std::byte*>(workspace) + offset_bytes);
}

int64_t forward_tasks(const Conv& conv) { return conv.batch * conv.groups * conv.blocks; }

// The input gradient has a task for each sample, group and slice of channels: as many slices as it takes to occupy the threads.
int64_t channel_slices(const Conv& conv, int threads) {
    const int64_t planes = std::max<int64_t>(conv.batch * conv.groups, 1);
    return std::clamp<int64_t>((threads + planes - 1) / planes, 1, std::max<int64_t>(conv.channels, 1));
}
int64_t backward_tasks(const Conv& conv, int threads) { return conv.batch * conv.groups * channel_slices(conv, threads); }

int64_t weight_tasks(const Conv& conv) { return conv.batch * conv.blocks; }
int64_t weight_bytes(const Conv& conv, DType type) { return whole_lines(conv.groups * conv.filters * conv.rows * size_of(type)); }

}  // namespace

template <class T>
void reference(const ConvOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]), w = const_view<T>(args.inputs[1]);
    const auto y = view<T>(args.outputs[0]);
    const Conv conv(op.window, op.groups, args.inputs[0].desc, args.outputs[0].desc);
    if (!args.workspace && conv.columns_bytes(dtype_of<T>()) > 0) return conv_direct<T>(op, args);
    const int64_t tasks = forward_tasks(conv);
    parallel_parts(parts_for(args.threads, tasks), tasks, [&](int64_t part, int64_t begin, int64_t end) {
        T* const buffer = scratch<T>(args.workspace, part * conv.columns_bytes(dtype_of<T>()));
        for (int64_t task = begin; task < end; ++task) {
            const int64_t n = task / conv.blocks / conv.groups, group = task / conv.blocks % conv.groups;
            const Range range = conv.positions_of(task % conv.blocks);
            const auto columns = columns_of(conv, x.data + conv.x_at(n, group), range, buffer);
            gemm(Gemm<T>{.m = conv.filters,
                         .n = range.end - range.begin,
                         .k = conv.rows,
                         .a = w.data + conv.w_at(group),
                         .lda = conv.rows,
                         .b = columns.data,
                         .ldb = columns.stride,
                         .c = y.data + conv.y_at(n, group) + range.begin,
                         .ldc = conv.positions});
        }
    });
}

template <class T>
void reference(const ConvGradInputOp& op, const KernelArgs& args) {
    const auto dy = const_view<T>(args.inputs[0]), w = const_view<T>(args.inputs[1]);
    const auto dx = view<T>(args.outputs[0]);
    const Conv conv(op.window, op.groups, args.outputs[0].desc, args.inputs[0].desc);
    if (!args.workspace && conv.columns_bytes(dtype_of<T>()) > 0) return conv_direct<T>(op, args);
    const int64_t slices = channel_slices(conv, args.threads), tasks = backward_tasks(conv, args.threads);
    parallel_parts(parts_for(args.threads, tasks), tasks, [&](int64_t part, int64_t begin, int64_t end) {
        T* const buffer = scratch<T>(args.workspace, part * conv.columns_bytes(dtype_of<T>()));
        for (int64_t task = begin; task < end; ++task) {
            const int64_t n = task / slices / conv.groups, group = task / slices % conv.groups;
            const Range slice = part_of(conv.channels, slices, task % slices);
            const int64_t channels = slice.end - slice.begin, rows = channels * conv.g.kernel_count();
            T* const planes = dx.data + conv.x_at(n, group) + slice.begin * conv.g.in_count();
            std::fill_n(planes, channels * conv.g.in_count(), T{0});
            for (int64_t i = 0; i < conv.blocks; ++i) {
                const Range range = conv.positions_of(i);
                const int64_t width = range.end - range.begin;
                gemm(Gemm<T>{.m = rows,
                             .n = width,
                             .k = conv.filters,
                             .a = w.data + conv.w_at(group) + slice.begin * conv.g.kernel_count(),
                             .lda = conv.rows,
                             .transpose_a = true,
                             .b = dy.data + conv.y_at(n, group) + range.begin,
                             .ldb = conv.positions,
                             .c = conv.pointwise ? planes + range.begin : buffer,
                             .ldc = conv.pointwise ? conv.positions : width});
                if (!conv.pointwise) scatter_columns(conv.g, channels, buffer, range, planes);
            }
        }
    });
}

template <class T>
void reference(const ConvGradWeightOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]), dy = const_view<T>(args.inputs[1]);
    const auto dw = view<T>(args.outputs[0]);
    const Conv conv(op.window, op.groups, args.inputs[0].desc, args.inputs[1].desc);
    const int64_t tasks = weight_tasks(conv);
    const int parts = parts_for(args.threads, tasks);
    const int64_t columns_bytes = conv.columns_bytes(dtype_of<T>()), private_bytes = weight_bytes(conv, dtype_of<T>());
    if (!args.workspace && (columns_bytes > 0 || parts > 1)) return conv_direct<T>(op, args);
    // The first part sums in dw itself, each other one in a copy of its own; copies are added in order, so that timing changes nothing.
    const auto sums_of = [&](int64_t part) {
        return part == 0 ? dw.data : scratch<T>(args.workspace, parts * columns_bytes + (part - 1) * private_bytes);
    };
    parallel_parts(parts, tasks, [&](int64_t part, int64_t begin, int64_t end) {
        T* const buffer = scratch<T>(args.workspace, part * columns_bytes);
        T* const sums = sums_of(part);
        std::fill_n(sums, dw.count, T{0});
        for (int64_t task = begin; task < end; ++task) {
            const int64_t n = task / conv.blocks;
            const Range range = conv.positions_of(task % conv.blocks);
            for (int64_t group = 0; group < conv.groups; ++group) {
                const auto columns = columns_of(conv, x.data + conv.x_at(n, group), range, buffer);
                gemm(Gemm<T>{.m = conv.filters,
                             .n = conv.rows,
                             .k = range.end - range.begin,
                             .a = dy.data + conv.y_at(n, group) + range.begin,
                             .lda = conv.positions,
                             .b = columns.data,
                             .ldb = columns.stride,
                             .transpose_b = true,
                             .c = sums + conv.w_at(group),
                             .ldc = conv.rows,
                             .beta = 1});
            }
        }
    });
    parallel_ranges(args.threads, dw.count, 4096, [&](int64_t begin, int64_t end) {
        for (int part = 1; part < parts; ++part) {
            const T* const sums = sums_of(part);
            for (int64_t i = begin; i < end; ++i) dw[i] += sums[i];
        }
    });
}

int64_t workspace_bytes(const ConvOp& op, const WorkspaceArgs& args) {
    const Conv conv(op.window, op.groups, args.inputs[0], args.outputs[0]);
    return parts_for(args.threads, forward_tasks(conv)) * conv.columns_bytes(args.inputs[0].dtype);
}

int64_t workspace_bytes(const ConvGradInputOp& op, const WorkspaceArgs& args) {
    const Conv conv(op.window, op.groups, args.outputs[0], args.inputs[0]);
    return parts_for(args.threads, backward_tasks(conv, args.threads)) * conv.columns_bytes(args.inputs[0].dtype);
}

int64_t workspace_bytes(const ConvGradWeightOp& op, const WorkspaceArgs& args) {
    const Conv conv(op.window, op.groups, args.inputs[0], args.inputs[1]);
    const int64_t parts = parts_for(args.threads, weight_tasks(conv));
    return parts * conv.columns_bytes(args.inputs[0].dtype) + (parts - 1) * weight_bytes(conv, args.inputs[0].dtype);
}

template void reference<double>(const ConvOp&, const KernelArgs&);
template void reference<float>(const ConvOp&, const KernelArgs&);
template void reference<double>(const ConvGradInputOp&, const KernelArgs&);
template void reference<float>(const ConvGradInputOp&, const KernelArgs&);
template void reference<double>(const ConvGradWeightOp&, const KernelArgs&);
template void reference<float>(const ConvGradWeightOp&, const KernelArgs&);

}  // namespace convoy::ref
