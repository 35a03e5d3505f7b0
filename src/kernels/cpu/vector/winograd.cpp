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

// One transform of a tile whose last `Dims` dims are active: along dim 2 as it is read, then along dim 1, then along dim 0; the last of them writes.
template <class T, int B, int Dims>
class Tile {
  public:
    CONVOY_INLINE explicit Tile(const TileArgs& args) : a_(args), whole_(covered(args.to)) {}

    CONVOY_INLINE void run() {
        for (int64_t i = 0; i < a_.count; ++i) {
            from_ = a_.from.data + i * a_.from_step;
            to_ = a_.to.data + i * a_.to_step;
            run_one();
        }
    }

  private:
    CONVOY_INLINE void run_one() {
        for (int i0 = 0; i0 < kFrom[0]; ++i0)
            for (int i1 = 0; i1 < kFrom[1]; ++i1) {
                Vec<B> in[T::kFrom], out[T::kTo];
                read_row(i0, i1, in);
                T::apply(in, out);
                for (int j2 = 0; j2 < T::kTo; ++j2) {
                    if constexpr (Dims == 1)
                        write(0, 0, j2, out[j2]);
                    else
                        rows_[(i0 * kFrom[1] + i1) * T::kTo + j2] = out[j2];
                }
            }
        if constexpr (Dims > 1)
            for (int i0 = 0; i0 < kFrom[0]; ++i0)
                for (int j2 = 0; j2 < T::kTo; ++j2) column(i0, j2);
        if constexpr (Dims > 2)
            for (int j1 = 0; j1 < T::kTo; ++j1)
                for (int j2 = 0; j2 < T::kTo; ++j2) {
                    Vec<B> in[T::kFrom], out[T::kTo];
                    for (int i = 0; i < T::kFrom; ++i) in[i] = planes_[(i * T::kTo + j1) * T::kTo + j2];
                    T::apply(in, out);
                    for (int j = 0; j < T::kTo; ++j) write(j, j1, j2, out[j]);
                }
    }

    static constexpr int kFrom[2] = {Dims > 2 ? T::kFrom : 1, Dims > 1 ? T::kFrom : 1};
    static constexpr int kTo[2] = {Dims > 2 ? T::kTo : 1, Dims > 1 ? T::kTo : 1};

    static CONVOY_INLINE bool inside(const TileBox& box, int d, int64_t i) { return i >= box.begin[d] && i < box.end[d]; }
    static CONVOY_INLINE bool covered(const TileBox& box) {
        return box.begin[0] == 0 && box.begin[1] == 0 && box.begin[2] == 0 && box.end[0] == kTo[0] && box.end[1] == kTo[1] &&
               box.end[2] == T::kTo;
    }

    CONVOY_INLINE void read_row(int64_t i0, int64_t i1, Vec<B>* in) const {
        const TileBox& box = a_.from;
        if (!inside(box, 0, i0) || !inside(box, 1, i1)) {
            for (int i = 0; i < T::kFrom; ++i) in[i] = broadcast<B>(0);
            return;
        }
        const float* const row = from_ + i0 * box.step[0] + i1 * box.step[1];
        if (box.begin[2] == 0 && box.end[2] == T::kFrom) {
            for (int i = 0; i < T::kFrom; ++i) in[i] = load<B>(row + i * box.step[2]);
            return;
        }
        for (int i = 0; i < T::kFrom; ++i) in[i] = inside(box, 2, i) ? load<B>(row + i * box.step[2]) : broadcast<B>(0);
    }

    CONVOY_INLINE void write(int64_t j0, int64_t j1, int64_t j2, const Vec<B>& v) const {
        const TileBox& box = a_.to;
        if (!whole_ && (!inside(box, 0, j0) || !inside(box, 1, j1) || !inside(box, 2, j2))) return;
        store(to_ + j0 * box.step[0] + j1 * box.step[1] + j2 * box.step[2], v);
    }

    // Dim 1 at one place of the others.
    CONVOY_INLINE void column(int i0, int j2) {
        Vec<B> in[T::kFrom], out[T::kTo];
        for (int i = 0; i < T::kFrom; ++i) in[i] = rows_[(i0 * T::kFrom + i) * T::kTo + j2];
        T::apply(in, out);
        for (int j = 0; j < T::kTo; ++j) {
            if constexpr (Dims > 2)
                planes_[(i0 * T::kTo + j) * T::kTo + j2] = out[j];
            else
                write(0, j, j2, out[j]);
        }
    }

    const TileArgs& a_;
    const float* from_ = nullptr;
    float* to_ = nullptr;
    const bool whole_;  // all that comes out is wanted
    Vec<B> rows_[kFrom[0] * kFrom[1] * T::kTo], planes_[kFrom[0] * kTo[1] * T::kTo];
};

template <class T, int Dims>
void run_dims(const TileArgs& args) {
    if (args.lanes == 16)
        Tile<T, 16, Dims>(args).run();
    else
        Tile<T, 8, Dims>(args).run();
}

void move_dim(const TileBox& from, int d, TileBox& to, int place) {
    to.step[place] = from.step[d];
    to.begin[place] = from.begin[d];
    to.end[place] = from.end[d];
}

// The order of dims is nobody's concern: those that are not active come first.
TileArgs active_last(const TileArgs& args) {
    TileArgs result = args;
    int place = 0;
    for (int active = 0; active < 2; ++active)
        for (int d = 0; d < 3; ++d) {
            if (args.active[d] != (active == 1)) continue;
            move_dim(args.from, d, result.from, place);
            move_dim(args.to, d, result.to, place);
            result.active[place++] = args.active[d];
        }
    return result;
}

template <class T>
void run_tile(const TileArgs& args) {
    const bool in_order = args.active[0] <= args.active[1] && args.active[1] <= args.active[2];
    if (!in_order) return run_tile<T>(active_last(args));
    if (args.active[0]) return run_dims<T, 3>(args);
    args.active[1] ? run_dims<T, 2>(args) : run_dims<T, 1>(args);
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
