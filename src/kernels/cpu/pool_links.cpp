#include "kernels/cpu/pool_links.h"

#include <algorithm>

#include "base/error.h"

namespace convoy::cpu {

int64_t PoolDim::counted(int64_t o, bool count_padding) const {
    int64_t count = 0;
    if (adaptive) {
        for_each_input(o, [&](int64_t, int64_t) { ++count; });
        return count;
    }
    const int64_t begin = count_padding ? std::min<int64_t>(-pad, 0) : 0, end = in + (count_padding ? std::max<int64_t>(pad_hi, 0) : 0);
    for (int64_t k = 0; k < kernel; ++k) {
        const int64_t i = o * stride - pad + k * dilation;
        count += i >= begin && i < end;
    }
    return count;
}

bool PoolDim::all_see() const {
    for (int64_t o = 0; o < out; ++o) {
        bool sees = false;
        for_each_input(o, [&](int64_t, int64_t) { sees = true; });
        if (!sees) return false;
    }
    return true;
}

PoolDims window_dims(const Window& window, const Shape& x, const Shape& y) {
    const int rank = window.rank();
    CONVOY_CHECK(rank >= 1 && rank <= 3 && x.size() == rank + 2 && y.size() == rank + 2, "a window of {} dims from {} to {}", rank,
                 to_string(x), to_string(y));
    PoolDims dims;
    for (int i = 0; i < rank; ++i)
        dims[static_cast<size_t>(3 - rank + i)] = {.in = x[2 + i],
                                                   .out = y[2 + i],
                                                   .kernel = window.kernel[i],
                                                   .stride = window.stride[i],
                                                   .dilation = window.dilation[i],
                                                   .pad = window.pad_lo[i],
                                                   .pad_hi = window.pad_hi[i]};
    return dims;
}

PoolDims adaptive_dims(const Shape& x, const Shape& y) {
    const int rank = x.size() - 2;
    CONVOY_CHECK(rank >= 1 && rank <= 3 && y.size() == x.size(), "an adaptive pooling from {} to {}", to_string(x), to_string(y));
    PoolDims dims;
    for (int i = 0; i < rank; ++i) dims[static_cast<size_t>(3 - rank + i)] = {.in = x[2 + i], .out = y[2 + i], .adaptive = true};
    return dims;
}

PoolLinks::PoolLinks(const PoolDims& dims, bool reverse) : dims_(dims), reverse_(reverse) {
    for (size_t d = 0; d < 3; ++d) {
        const PoolDim& dim = dims[d];
        const bool back = reverse && d < 2;
        // Pairs in the order of outputs, which is also the order that a reversed list shall have.
        std::vector<std::vector<std::pair<int64_t, int64_t>>> seen(static_cast<size_t>(back ? dim.in : dim.out));
        for (int64_t o = 0; o < dim.out; ++o)
            dim.for_each_input(o, [&](int64_t i, int64_t tap) { seen[static_cast<size_t>(back ? i : o)].emplace_back(back ? o : i, tap); });
        Lists& lists = lists_[d];
        lists.first.push_back(0);
        for (const auto& list : seen) {
            for (const auto& [index, tap] : list) {
                lists.index.push_back(static_cast<int32_t>(index));
                lists.tap.push_back(static_cast<int32_t>(tap));
            }
            lists.first.push_back(static_cast<int32_t>(lists.index.size()));
        }
    }
}

PoolLinks::PoolLinks(const PoolDims& dims, bool reverse, bool count_padding) : PoolLinks(dims, reverse) {
    for (size_t d = 0; d < 3; ++d)
        for (int64_t o = 0; o < dims[d].out; ++o) {
            const int64_t count = dims[d].counted(o, count_padding);
            lists_[d].share.push_back(count == 0 ? 0.0f : 1.0f / static_cast<float>(count));
        }
}

void PoolLinks::bind(vec::PoolArgs& args) const {
    for (size_t d = 0; d < 3; ++d) {
        args.here[d] = reverse_ ? dims_[d].in : dims_[d].out;
        args.there[d] = reverse_ ? dims_[d].out : dims_[d].in;
        args.links[d] = {lists_[d].first.data(), lists_[d].index.data(), lists_[d].tap.data()};
        args.share[d] = lists_[d].share.data();
    }
    args.tap_stride[0] = dims_[1].kernel * dims_[2].kernel;
    args.tap_stride[1] = dims_[2].kernel;
}

}  // namespace convoy::cpu
