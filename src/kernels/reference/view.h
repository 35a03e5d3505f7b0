// What all reference kernels share: how they see a tensor, what they are called with, and how they use threads. Internal to this folder.
//
// A kernel is an overload `template <class T> void reference(const SomeOp&, const KernelArgs&)`, declared in its family's header and
// explicitly instantiated for double and float in its .cpp. One that needs scratch memory has beside it an overload
// `int64_t workspace_bytes(const SomeOp&, const WorkspaceArgs&)`; without one it gets none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels/backend.h"

namespace convoy::ref {

struct KernelArgs {
    std::span<const Operand> inputs, outputs;
    void* workspace = nullptr;  // 64-byte aligned, as many bytes as workspace_bytes() said
    int threads = 1;
    StepContext context;
};

struct WorkspaceArgs {
    std::span<const TensorDesc> inputs, outputs;
    int threads = 1;
};

// A plain tensor with elements of type T.
template <class T>
struct View {
    T* data;
    Shape shape;
    Dims strides;  // row-major, in elements
    Shape global;  // the whole tensor of which this is a part
    Dims origin;   // of this part in it
    int64_t count;

    int rank() const { return shape.size(); }
    T& operator[](int64_t offset) const { return data[offset]; }
    // The element at an index with one entry per dim (or for the leading dims: the first element of that part).
    template <class... Index>
    T& operator()(Index... index) const {
        const int64_t values[] = {static_cast<int64_t>(index)...};
        int64_t offset = 0;
        for (int i = 0; i < static_cast<int>(sizeof...(index)); ++i) offset += values[i] * strides[i];
        return data[offset];
    }
    // Elements per index of the first `dims` dims.
    int64_t inner(int dims) const { return product(shape, dims, shape.size()); }
};

// Bug unless the operand is plain and of type T.
template <class T>
View<T> view(const Operand& operand) {
    const auto& desc = operand.desc;
    CONVOY_CHECK(desc.dtype == dtype_of<T>(), "an operand of {} read as {}", name_of(desc.dtype), name_of(dtype_of<T>()));
    CONVOY_CHECK(operand.layout.is_plain(), "the reference got layout {}", operand.layout.text());
    return {static_cast<T*>(operand.data), desc.shape, row_major_strides(desc.shape), desc.global, desc.origin, numel(desc.shape)};
}
template <class T>
View<const T> const_view(const Operand& operand) {
    const auto v = view<T>(operand);
    return {v.data, v.shape, v.strides, v.global, v.origin, v.count};
}

// Calls fn(i) for every i of [0, count). Each thread has one contiguous range. fn may not throw.
template <class Fn>
void parallel_for(int threads, int64_t count, const Fn& fn) {
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && count > 1)
    for (int64_t i = 0; i < count; ++i) fn(i);
}

// The i-th of `parts` nearly equal, contiguous ranges of [0, count).
struct Range {
    int64_t begin, end;
};
inline Range part_of(int64_t count, int64_t parts, int64_t i) { return {count * i / parts, count * (i + 1) / parts}; }

// How many threads are worth starting for `count` pieces of work when each should have at least `grain` of them.
inline int parts_for(int threads, int64_t count, int64_t grain = 1) {
    return static_cast<int>(std::clamp<int64_t>(count / std::max<int64_t>(grain, 1), 1, std::max(threads, 1)));
}

// Calls fn(part, begin, end) for `parts` ranges that cover [0, count), each on its own thread.
template <class Fn>
void parallel_parts(int parts, int64_t count, const Fn& fn) {
    parallel_for(parts, parts, [&](int64_t part) {
        const auto range = part_of(count, parts, part);
        fn(part, range.begin, range.end);
    });
}

// Calls fn(begin, end) on ranges that cover [0, count), one per thread; ranges are no smaller than `grain`, except the only one.
template <class Fn>
void parallel_ranges(int threads, int64_t count, int64_t grain, const Fn& fn) {
    parallel_parts(parts_for(threads, count, grain), count, [&](int64_t, int64_t begin, int64_t end) { fn(begin, end); });
}

// Scratch memory is handed out in multiples of this.
constexpr int64_t kLine = 64;
inline int64_t whole_lines(int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

}  // namespace convoy::ref
