// Pooling where channels lie side by side. Outputs are gathered from the inputs they see; gradients go by rows of inputs, which stay in the cache
// while the few rows of outputs that see them are added. So results are written once, rows are independent of each other, and sums are taken in
// the order of the windows.
#include "kernels/cpu/vector/families.h"
#include "kernels/cpu/vector/vec.h"

namespace convoy::cpu::vec::CONVOY_ISA {

namespace {

// One row of results: everything but its last spatial dim is fixed.
struct Row {
    const PoolArgs& a;
    int64_t plane, h0, h1;
    int64_t first;  // offset of its first element here, in units of `lanes`

    CONVOY_INLINE Row(const PoolArgs& args, int64_t number)
        : a(args),
          plane(number / (args.here[0] * args.here[1])),
          h0(number / args.here[1] % args.here[0]),
          h1(number % args.here[1]),
          first(number * args.here[2]) {}

    // Calls fn(offset of the line's first element there in units of lanes, first two terms of the taps, entries of the links) for every line of
    // the other side that this row sees, in row-major order.
    template <class Fn>
    CONVOY_INLINE void for_lines(const Fn& fn) const {
        const Links &l0 = a.links[0], &l1 = a.links[1];
        for (int32_t e0 = l0.first[h0]; e0 < l0.first[h0 + 1]; ++e0)
            for (int32_t e1 = l1.first[h1]; e1 < l1.first[h1 + 1]; ++e1)
                fn(((plane * a.there[0] + l0.index[e0]) * a.there[1] + l1.index[e1]) * a.there[2],
                   static_cast<int32_t>(l0.tap[e0] * a.tap_stride[0] + l1.tap[e1] * a.tap_stride[1]), e0, e1);
    }
    // The tap of the first input that output h2 sees; 0 when it sees none.
    CONVOY_INLINE int32_t first_tap(int64_t h2) const {
        const int64_t h[3] = {h0, h1, h2};
        int64_t tap = 0;
        for (int d = 0; d < 3; ++d) {
            const Links& l = a.links[d];
            if (l.first[h[d]] == l.first[h[d] + 1]) return 0;
            tap += l.tap[l.first[h[d]]] * a.tap_stride[d];
        }
        return static_cast<int32_t>(tap);
    }
};

template <class Fn>
CONVOY_INLINE void for_results(const PoolArgs& a, int64_t begin, int64_t end, const Fn& fn) {
    for (int64_t r = begin; r < end; ++r) {
        const Row row(a, r);
        for (int64_t h2 = 0; h2 < a.here[2]; ++h2) fn(row, h2, (row.first + h2) * a.lanes);
    }
}

// Calls fn(Lanes<N>, l) so that all lanes are covered; the last vector may overlap the one before it, which is harmless where a result does not
// depend on what was there.
template <int kMost, class Fn>
CONVOY_INLINE void for_lanes(int64_t lanes, const Fn& fn) {
    const auto cover = [&](auto width) {
        constexpr int n = decltype(width)::n;
        for (int64_t l = 0; l < lanes; l += n) fn(width, l + n > lanes ? lanes - n : l);
    };
    if (kMost >= 64 && lanes >= 64) return cover(Lanes<kMost>{});
    if (lanes >= 16) return cover(Lanes<16>{});
    if (lanes >= 8) return cover(Lanes<8>{});
    if (lanes >= 4) return cover(Lanes<4>{});
    cover(Lanes<1>{});
}

// The same with no lane in two vectors.
template <class Fn>
CONVOY_INLINE void for_lanes_once(int64_t lanes, const Fn& fn) {
    int64_t l = 0;
    for (; l + 16 <= lanes; l += 16) fn(Lanes<16>{}, l);
    for (; l + 4 <= lanes; l += 4) fn(Lanes<4>{}, l);
    for (; l < lanes; ++l) fn(Lanes<1>{}, l);
}

template <class Where>
void max_pool(const PoolArgs& a, int64_t begin, int64_t end) {
    Where* const where = static_cast<Where*>(a.new_where);
    const Links across = a.links[2];
    for_results(a, begin, end, [&](const Row& row, int64_t h2, int64_t at) {
        const int32_t first_tap = row.first_tap(h2), first = across.first[h2], last = across.first[h2 + 1];
        for_lanes<16>(a.lanes, [&](auto lanes, int64_t l) {
            constexpr int n = decltype(lanes)::n;
            auto best = broadcast<n>(-__builtin_inff());
            auto position = broadcast_int<n>(first_tap);
            row.for_lines([&](int64_t line, int32_t taps, int32_t, int32_t) {
                for (int32_t e = first; e < last; ++e) {
                    const auto value = load<n>(a.source + (line + across.index[e]) * a.lanes + l);
                    // What is larger is taken, and the first NaN, which stays.
                    const auto keep = either(value <= best, is_nan(best));
                    best = select(keep, best, value);
                    position = select(keep, position, broadcast_int<n>(taps + across.tap[e]));
                }
            });
            store(a.result + at + l, best);
            store_where(where + at + l, position);
        });
    });
}

void average_pool(const PoolArgs& a, int64_t begin, int64_t end) {
    const Links across = a.links[2];
    for_results(a, begin, end, [&](const Row& row, int64_t h2, int64_t at) {
        const float share = a.share[0][row.h0] * a.share[1][row.h1] * a.share[2][h2];
        const int32_t first = across.first[h2], last = across.first[h2 + 1];
        for_lanes<64>(a.lanes, [&](auto lanes, int64_t l) {
            constexpr int n = decltype(lanes)::n;
            auto sum = broadcast<n>(0);
            row.for_lines([&](int64_t line, int32_t, int32_t, int32_t) {
                // Line by line, so that a large window loses no more bits than a small one.
                auto part = broadcast<n>(0);
                for (int32_t e = first; e < last; ++e) part = part + load<n>(a.source + (line + across.index[e]) * a.lanes + l);
                sum = sum + part;
            });
            store(a.result + at + l, sum * broadcast<n>(share));
        });
    });
}

// Rows of inputs. add(Lanes<N>, l, line, taps, entries of the links, row of results) adds what one line of outputs gives them.
template <class Fn>
CONVOY_INLINE void gradient_rows(const PoolArgs& a, int64_t begin, int64_t end, const Fn& add) {
    for (int64_t r = begin; r < end; ++r) {
        const Row row(a, r);
        float* const result = a.result + row.first * a.lanes;
        for (int64_t i = 0; i < a.here[2] * a.lanes; ++i) result[i] = 0;
        row.for_lines([&](int64_t line, int32_t taps, int32_t e0, int32_t e1) {
            for_lanes_once(a.lanes, [&](auto lanes, int64_t l) { add(lanes, l, line, taps, e0, e1, result + l); });
        });
    }
}

template <class Where>
void max_pool_grad(const PoolArgs& a, int64_t begin, int64_t end) {
    const Where* const where = static_cast<const Where*>(a.where);
    const Links across = a.links[2];
    gradient_rows(a, begin, end, [&](auto lanes, int64_t l, int64_t line, int32_t taps, int32_t, int32_t, float* result) {
        constexpr int n = decltype(lanes)::n;
        for (int64_t o = 0; o < a.there[2]; ++o) {
            const int64_t from = (line + o) * a.lanes + l;
            auto value = load<n>(a.source + from);
            if (a.mask) value = select(load<n>(a.mask + from) <= broadcast<n>(0), broadcast<n>(0), value);
            const auto position = load_where<n>(where + from);
            for (int32_t e = across.first[o]; e < across.first[o + 1]; ++e)
                accumulate(result + across.index[e] * a.lanes,
                           select(position == broadcast_int<n>(taps + across.tap[e]), value, broadcast<n>(0)));
        }
    });
}

void average_pool_grad(const PoolArgs& a, int64_t begin, int64_t end) {
    const Links across = a.links[2];
    gradient_rows(a, begin, end, [&](auto lanes, int64_t l, int64_t line, int32_t, int32_t e0, int32_t e1, float* result) {
        constexpr int n = decltype(lanes)::n;
        const float share = a.share[0][a.links[0].index[e0]] * a.share[1][a.links[1].index[e1]];
        for (int64_t o = 0; o < a.there[2]; ++o) {
            const auto value = load<n>(a.source + (line + o) * a.lanes + l) * broadcast<n>(share * a.share[2][o]);
            for (int32_t e = across.first[o]; e < across.first[o + 1]; ++e) accumulate(result + across.index[e] * a.lanes, value);
        }
    });
}

}  // namespace

void enter_pool(VectorKernels& table) {
    table.max_pool_u8 = max_pool<uint8_t>;
    table.max_pool_i32 = max_pool<int32_t>;
    table.max_pool_grad_u8 = max_pool_grad<uint8_t>;
    table.max_pool_grad_i32 = max_pool_grad<int32_t>;
    table.average_pool = average_pool;
    table.average_pool_grad = average_pool_grad;
}

}  // namespace convoy::cpu::vec::CONVOY_ISA
