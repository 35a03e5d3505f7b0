// Winograd's F(2, 3) and F(4, 3) of a tile of one, two or three dims, on vectors of channels. Along each active dim the same small matrix is applied,
// written out because most of its entries are 0 and 1.
#include "kernels/cpu/vector/families.h"
#include "kernels/cpu/vector/vec.h"

namespace convoy::cpu::vec::CONVOY_ISA {

namespace {

template <int B>
CONVOY_INLINE Vec<B> times(float factor, const Vec<B>& v) {
    return broadcast<B>(factor) * v;
}

// F(2, 3).
struct Input2 {
    static constexpr int kFrom = 4, kTo = 4;
    template <int B>
    CONVOY_INLINE static void apply(const Vec<B>* d, Vec<B>* t) {
        t[0] = d[0] - d[2];
        t[1] = d[1] + d[2];
        t[2] = d[2] - d[1];
        t[3] = d[1] - d[3];
    }
};
struct Weight2 {
    static constexpr int kFrom = 3, kTo = 4;
    template <int B>
    CONVOY_INLINE static void apply(const Vec<B>* g, Vec<B>* t) {
        const Vec<B> outer = times(0.5f, g[0] + g[2]), inner = times(0.5f, g[1]);
        t[0] = g[0];
        t[1] = outer + inner;
        t[2] = outer - inner;
        t[3] = g[2];
    }
};
struct Output2 {
    static constexpr int kFrom = 4, kTo = 2;
    template <int B>
    CONVOY_INLINE static void apply(const Vec<B>* m, Vec<B>* y) {
        y[0] = m[0] + m[1] + m[2];
        y[1] = m[1] - m[2] - m[3];
    }
};
struct OutputTurned2 {
    static constexpr int kFrom = 2, kTo = 4;
    template <int B>
    CONVOY_INLINE static void apply(const Vec<B>* y, Vec<B>* m) {
        m[0] = y[0];
        m[1] = y[0] + y[1];
        m[2] = y[0] - y[1];
        m[3] = broadcast<B>(0) - y[1];
    }
};
struct WeightTurned2 {
    static constexpr int kFrom = 4, kTo = 3;
    template <int B>
    CONVOY_INLINE static void apply(const Vec<B>* t, Vec<B>* g) {
        const Vec<B> sum = times(0.5f, t[1] + t[2]);
        g[0] = t[0] + sum;
        g[1] = times(0.5f, t[1] - t[2]);
        g[2] = sum + t[3];
    }
};

// F(4, 3).
struct Input4 {
    static constexpr int kFrom = 6, kTo = 6;
    template <int B>
    CONVOY_INLINE static void apply(const Vec<B>* d, Vec<B>* t) {
        const Vec<B> a = d[4] - times(4.0f, d[2]), b = d[3] - times(4.0f, d[1]), c = d[4] - d[2], e = times(2.0f, d[3] - d[1]);
        t[0] = times(4.0f, d[0]) - times(5.0f, d[2]) + d[4];
        t[1] = a + b;
        t[2] = a - b;
        t[3] = c + e;
        t[4] = c - e;
        t[5] = times(4.0f, d[1]) - times(5.0f, d[3]) + d[5];
    }
};
struct Weight4 {
    static constexpr int kFrom = 3, kTo = 6;
    template <int B>
    CONVOY_INLINE static void apply(const Vec<B>* g, Vec<B>* t) {
        const Vec<B> a = times(-1.0f / 6, g[0] + g[2]), b = times(1.0f / 6, g[1]);
        const Vec<B> c = times(1.0f / 24, g[0]) + times(1.0f / 6, g[2]), e = times(1.0f / 12, g[1]);
        t[0] = times(0.25f, g[0]);
        t[1] = a - b;
        t[2] = a + b;
        t[3] = c + e;
        t[4] = c - e;
        t[5] = g[2];
    }
};
struct Output4 {
    static constexpr int kFrom = 6, kTo = 4;
    template <int B>
    CONVOY_INLINE static void apply(const Vec<B>* m, Vec<B>* y) {
        const Vec<B> s = m[1] + m[2], d = m[1] - m[2], p = m[3] + m[4], q = m[3] - m[4];
        y[0] = m[0] + s + p;
        y[1] = d + times(2.0f, q);
        y[2] = s + times(4.0f, p);
        y[3] = d + times(8.0f, q) + m[5];
    }
};
struct OutputTurned4 {
    static constexpr int kFrom = 4, kTo = 6;
    template <int B>
    CONVOY_INLINE static void apply(const Vec<B>* y, Vec<B>* m) {
        const Vec<B> a = y[0] + y[2], b = y[1] + y[3], c = y[0] + times(4.0f, y[2]), e = times(2.0f, y[1]) + times(8.0f, y[3]);
        m[0] = y[0];
        m[1] = a + b;
        m[2] = a - b;
        m[3] = c + e;
        m[4] = c - e;
        m[5] = y[3];
    }
};
struct WeightTurned4 {
    static constexpr int kFrom = 6, kTo = 3;
    template <int B>
    CONVOY_INLINE static void apply(const Vec<B>* t, Vec<B>* g) {
        const Vec<B> s = t[1] + t[2], d = t[2] - t[1], p = t[3] + t[4], q = t[3] - t[4];
        g[0] = times(0.25f, t[0]) - times(1.0f / 6, s) + times(1.0f / 24, p);
        g[1] = times(1.0f / 6, d) + times(1.0f / 12, q);
        g[2] = times(1.0f / 6, p - s) + t[5];
    }
};

constexpr int kMost = 6;

// One transform of a tile: along dim 2 as it is read, then along dim 1, then along dim 0; the last of them writes.
template <class T, int B>
struct Tile {
    const TileArgs& a;
    int from[3], to[3];
    Vec<B> first[kMost * kMost * kMost], second[kMost * kMost * kMost];

    CONVOY_INLINE explicit Tile(const TileArgs& args) : a(args) {
        for (int i = 0; i < 3; ++i) {
            from[i] = a.active[i] ? T::kFrom : 1;
            to[i] = a.active[i] ? T::kTo : 1;
        }
    }

    static CONVOY_INLINE bool inside(const TileBox& box, int d, int64_t i) { return i >= box.begin[d] && i < box.end[d]; }

    CONVOY_INLINE void read_row(int64_t i0, int64_t i1, Vec<B>* in) const {
        const TileBox& box = a.from;
        if (!inside(box, 0, i0) || !inside(box, 1, i1)) {
            for (int i = 0; i < T::kFrom; ++i) in[i] = broadcast<B>(0);
            return;
        }
        const float* const row = box.data + i0 * box.step[0] + i1 * box.step[1];
        if (box.begin[2] == 0 && box.end[2] == T::kFrom) {
            for (int i = 0; i < T::kFrom; ++i) in[i] = load<B>(row + i * box.step[2]);
            return;
        }
        for (int i = 0; i < T::kFrom; ++i) in[i] = inside(box, 2, i) ? load<B>(row + i * box.step[2]) : broadcast<B>(0);
    }

    CONVOY_INLINE void write(int64_t j0, int64_t j1, int64_t j2, const Vec<B>& v) const {
        const TileBox& box = a.to;
        if (!inside(box, 0, j0) || !inside(box, 1, j1) || !inside(box, 2, j2)) return;
        store(box.data + j0 * box.step[0] + j1 * box.step[1] + j2 * box.step[2], v);
    }

    CONVOY_INLINE void run() {
        for (int i0 = 0; i0 < from[0]; ++i0)
            for (int i1 = 0; i1 < from[1]; ++i1) {
                Vec<B> in[T::kFrom], out[T::kTo];
                read_row(i0, i1, in);
                if (a.active[2])
                    T::apply(in, out);
                else
                    out[0] = in[0];
                Vec<B>* const at = first + (i0 * from[1] + i1) * to[2];
                if (a.active[2])
                    for (int j = 0; j < T::kTo; ++j) at[j] = out[j];
                else
                    at[0] = out[0];
            }
        for (int i0 = 0; i0 < from[0]; ++i0)
            for (int j2 = 0; j2 < to[2]; ++j2) column(i0, j2);
        if (!a.active[0]) return;
        for (int j1 = 0; j1 < to[1]; ++j1)
            for (int j2 = 0; j2 < to[2]; ++j2) {
                Vec<B> in[T::kFrom], out[T::kTo];
                for (int i = 0; i < T::kFrom; ++i) in[i] = second[(i * to[1] + j1) * to[2] + j2];
                T::apply(in, out);
                for (int j = 0; j < T::kTo; ++j) write(j, j1, j2, out[j]);
            }
    }

    // Dim 1 at one place of the others.
    CONVOY_INLINE void column(int i0, int j2) {
        const auto give = [&](int j1, const Vec<B>& v) {
            if (a.active[0])
                second[(i0 * to[1] + j1) * to[2] + j2] = v;
            else
                write(0, j1, j2, v);
        };
        if (!a.active[1]) return give(0, first[i0 * to[2] + j2]);
        Vec<B> in[T::kFrom], out[T::kTo];
        for (int i = 0; i < T::kFrom; ++i) in[i] = first[(i0 * T::kFrom + i) * to[2] + j2];
        T::apply(in, out);
        for (int j = 0; j < T::kTo; ++j) give(j, out[j]);
    }
};

template <class T>
void run_tile(const TileArgs& args) {
    if (args.lanes == 16)
        Tile<T, 16>(args).run();
    else
        Tile<T, 8>(args).run();
}

void winograd_tile(int outputs, TileStep step, const TileArgs& args) {
    const bool two = outputs == 2;
    switch (step) {
        case TileStep::Input: return two ? run_tile<Input2>(args) : run_tile<Input4>(args);
        case TileStep::Weight: return two ? run_tile<Weight2>(args) : run_tile<Weight4>(args);
        case TileStep::Output: return two ? run_tile<Output2>(args) : run_tile<Output4>(args);
        case TileStep::OutputTurned: return two ? run_tile<OutputTurned2>(args) : run_tile<OutputTurned4>(args);
        case TileStep::WeightTurned: return two ? run_tile<WeightTurned2>(args) : run_tile<WeightTurned4>(args);
    }
}

}  // namespace

void enter_winograd(VectorKernels& table) { table.winograd_tile = winograd_tile; }

}  // namespace convoy::cpu::vec::CONVOY_ISA
