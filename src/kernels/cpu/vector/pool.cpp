// Pooling where channels lie side by side: every result is gathered from what it sees, so results are independent of each other, and each is
// written once. `here` is the side that is computed (outputs, or for gradients inputs), `there` the other.
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

    int64_t there_count() const { return a.there[0] * a.there[1] * a.there[2]; }

    // The tap of the first element that h2 sees; 0 when it sees none.
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

    // Calls fn(offset there in units of lanes, tap) for all that element h2 sees, in row-major order (with the
    // entries of the links, for who wants them), and line() after each line of them.
    template <class Fn, class Line>
    CONVOY_INLINE void for_each(int64_t h2, const Fn& fn, const Line& line) const {
        const Links &l0 = a.links[0], &l1 = a.links[1], &l2 = a.links[2];
        const int64_t start = plane * there_count();
        for (int32_t e0 = l0.first[h0]; e0 < l0.first[h0 + 1]; ++e0)
            for (int32_t e1 = l1.first[h1]; e1 < l1.first[h1 + 1]; ++e1) {
                const int64_t base = start + (l0.index[e0] * a.there[1] + l1.index[e1]) * a.there[2];
                const int64_t tap = l0.tap[e0] * a.tap_stride[0] + l1.tap[e1] * a.tap_stride[1];
                for (int32_t e2 = l2.first[h2]; e2 < l2.first[h2 + 1]; ++e2)
                    fn(base + l2.index[e2], static_cast<int32_t>(tap + l2.tap[e2]), e0, e1, e2);
                line();
            }
    }
};

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

template <class Fn>
CONVOY_INLINE void for_row_elements(const PoolArgs& a, int64_t begin, int64_t end, const Fn& fn) {
    for (int64_t r = begin; r < end; ++r) {
        const Row row(a, r);
        for (int64_t h2 = 0; h2 < a.here[2]; ++h2) fn(row, h2, (row.first + h2) * a.lanes);
    }
}

const auto kNothing = [] {};

template <class Where>
void max_pool(const PoolArgs& a, int64_t begin, int64_t end) {
    Where* const where = static_cast<Where*>(a.new_where);
    for_row_elements(a, begin, end, [&](const Row& row, int64_t h2, int64_t at) {
        const int32_t first = row.first_tap(h2);
        for_lanes<16>(a.lanes, [&](auto lanes, int64_t l) {
            constexpr int n = decltype(lanes)::n;
            auto best = broadcast<n>(-__builtin_inff());
            auto position = broadcast_int<n>(first);
            row.for_each(
                h2,
                [&](int64_t offset, int32_t tap, int32_t, int32_t, int32_t) {
                    const auto value = load<n>(a.source + offset * a.lanes + l);
                    // What is larger is taken, and the first NaN, which stays.
                    const auto keep = either(value <= best, is_nan(best));
                    best = select(keep, best, value);
                    position = select(keep, position, broadcast_int<n>(tap));
                },
                kNothing);
            store(a.result + at + l, best);
            store_where(where + at + l, position);
        });
    });
}

template <class Where>
void max_pool_grad(const PoolArgs& a, int64_t begin, int64_t end) {
    const Where* const where = static_cast<const Where*>(a.where);
    for_row_elements(a, begin, end, [&](const Row& row, int64_t h2, int64_t at) {
        for_lanes<16>(a.lanes, [&](auto lanes, int64_t l) {
            constexpr int n = decltype(lanes)::n;
            auto sum = broadcast<n>(0);
            row.for_each(
                h2,
                [&](int64_t offset, int32_t tap, int32_t, int32_t, int32_t) {
                    const int64_t from = offset * a.lanes + l;
                    sum = sum + select(load_where<n>(where + from) == broadcast_int<n>(tap), load<n>(a.source + from), broadcast<n>(0));
                },
                kNothing);
            if (a.mask) sum = select(load<n>(a.mask + at + l) <= broadcast<n>(0), broadcast<n>(0), sum);
            store(a.result + at + l, sum);
        });
    });
}

void average_pool(const PoolArgs& a, int64_t begin, int64_t end) {
    for_row_elements(a, begin, end, [&](const Row& row, int64_t h2, int64_t at) {
        const float share = a.share[0][row.h0] * a.share[1][row.h1] * a.share[2][h2];
        for_lanes<64>(a.lanes, [&](auto lanes, int64_t l) {
            constexpr int n = decltype(lanes)::n;
            // Line by line, so that a large window loses no more bits than a small one.
            auto sum = broadcast<n>(0), line = broadcast<n>(0);
            row.for_each(
                h2, [&](int64_t offset, int32_t, int32_t, int32_t, int32_t) { line = line + load<n>(a.source + offset * a.lanes + l); },
                [&] {
                    sum = sum + line;
                    line = broadcast<n>(0);
                });
            store(a.result + at + l, sum * broadcast<n>(share));
        });
    });
}

void average_pool_grad(const PoolArgs& a, int64_t begin, int64_t end) {
    for_row_elements(a, begin, end, [&](const Row& row, int64_t h2, int64_t at) {
        for_lanes<16>(a.lanes, [&](auto lanes, int64_t l) {
            constexpr int n = decltype(lanes)::n;
            auto sum = broadcast<n>(0);
            row.for_each(
                h2,
                [&](int64_t offset, int32_t, int32_t e0, int32_t e1, int32_t e2) {
                    const float share =
                        a.share[0][a.links[0].index[e0]] * a.share[1][a.links[1].index[e1]] * a.share[2][a.links[2].index[e2]];
                    sum = sum + load<n>(a.source + offset * a.lanes + l) * broadcast<n>(share);
                },
                kNothing);
            store(a.result + at + l, sum);
        });
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
