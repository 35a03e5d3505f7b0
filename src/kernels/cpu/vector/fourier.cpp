// The Fourier transform of a tile of real numbers and its inverse, on vectors of channels: tiles of 8, 16 or 32 elements along each active dim. Two rows
// of real numbers make one of complex ones, so that half the spectrum along the last dim is all that is kept.
#include "kernels/cpu/vector/families.h"
#include "kernels/cpu/vector/vec.h"

namespace convoy::cpu::vec::CONVOY_ISA {

namespace {

constexpr int kLargest = 32;

// cos and -sin of 2*pi*i/32.
constexpr float kCos[16] = {1.0f, 0.980785280f,  0.923879533f,  0.831469612f,  0.707106781f,  0.555570233f,  0.382683432f,  0.195090322f,
                            0.0f, -0.195090322f, -0.382683432f, -0.555570233f, -0.707106781f, -0.831469612f, -0.923879533f, -0.980785280f};
constexpr float kSin[16] = {0.0f,  -0.195090322f, -0.382683432f, -0.555570233f, -0.707106781f, -0.831469612f, -0.923879533f, -0.980785280f,
                            -1.0f, -0.980785280f, -0.923879533f, -0.831469612f, -0.707106781f, -0.555570233f, -0.382683432f, -0.195090322f};

template <int N>
constexpr int reversed(int i) {
    int r = 0;
    for (int bit = 1; bit < N; bit *= 2) {
        r = 2 * r + i % 2;
        i /= 2;
    }
    return r;
}

// In place, elements of `re` and `im` being `step` vectors apart. With the two swapped it is the inverse, times N.
template <int N, int B>
CONVOY_INLINE void transform(Vec<B>* re, Vec<B>* im, int64_t step) {
    Vec<B> r[N], c[N];
    for (int i = 0; i < N; ++i) {
        r[i] = re[reversed<N>(i) * step];
        c[i] = im[reversed<N>(i) * step];
    }
    for (int half = 1; half < N; half *= 2)
        for (int begin = 0; begin < N; begin += 2 * half)
            for (int i = 0; i < half; ++i) {
                const int a = begin + i, b = a + half, angle = i * (kLargest / 2 / half);
                const Vec<B> x = broadcast<B>(kCos[angle]), y = broadcast<B>(kSin[angle]);
                const Vec<B> br = r[b] * x - c[b] * y, bi = r[b] * y + c[b] * x;
                r[b] = r[a] - br;
                c[b] = c[a] - bi;
                r[a] = r[a] + br;
                c[a] = c[a] + bi;
            }
    for (int i = 0; i < N; ++i) {
        re[i * step] = r[i];
        im[i * step] = c[i];
    }
}

CONVOY_INLINE bool present(const TileBox& box, int d, int64_t i) { return i >= box.begin[d] && i < box.end[d] && i % box.spread[d] == 0; }
CONVOY_INLINE int64_t place(const TileBox& box, int d, int64_t i) { return i / box.spread[d] * box.step[d]; }

template <int N, int B>
struct Spectrum {
    static constexpr int kHalf = N / 2 + 1;
    const TileArgs& a;
    int64_t size[2];  // of dims 0 and 1
    Vec<B>*re, *im;   // [size0][size1][kHalf]

    explicit Spectrum(const TileArgs& args) : a(args) {
        for (int i = 0; i < 2; ++i) size[i] = a.active[i] ? N : 1;
        re = reinterpret_cast<Vec<B>*>(a.scratch);
        im = re + rows() * kHalf;
    }
    int64_t rows() const { return size[0] * size[1]; }

    void along_outer(bool inverse) const {
        Vec<B>*const p = inverse ? im : re, *const q = inverse ? re : im;
        if (a.active[1])
            for (int64_t i0 = 0; i0 < size[0]; ++i0)
                for (int k = 0; k < kHalf; ++k) transform<N>(p + i0 * size[1] * kHalf + k, q + i0 * size[1] * kHalf + k, kHalf);
        if (a.active[0])
            for (int64_t i = 0; i < size[1] * kHalf; ++i) transform<N>(p + i, q + i, size[1] * kHalf);
    }

    // Row r of the tile; whether there is anything in it.
    bool read(int64_t r, Vec<B>* to) const {
        const int64_t i0 = r / size[1], i1 = r % size[1];
        const TileBox& box = a.from;
        const bool any = r < rows() && present(box, 0, i0) && present(box, 1, i1);
        const float* const row = any ? box.data + place(box, 0, i0) + place(box, 1, i1) : nullptr;
        for (int i = 0; i < N; ++i) to[i] = any && present(box, 2, i) ? load<B>(row + place(box, 2, i)) : broadcast<B>(0);
        return any;
    }

    void forward() const {
        for (int64_t r = 0; r < rows(); r += 2) {
            Vec<B> x[N], y[N];
            const bool one = read(r, x), other = read(r + 1, y);
            Vec<B>*const xr = re + r * kHalf, *const xi = im + r * kHalf;
            if (!one && !other) {
                for (int k = 0; k < kHalf * (r + 1 < rows() ? 2 : 1); ++k) xr[k] = xi[k] = broadcast<B>(0);
                continue;
            }
            transform<N>(x, y, 1);
            const Vec<B> half = broadcast<B>(0.5f);
            for (int k = 0; k < kHalf; ++k) {
                const int m = (N - k) % N;
                xr[k] = half * (x[k] + x[m]);
                xi[k] = half * (y[k] - y[m]);
                if (r + 1 == rows()) continue;
                xr[kHalf + k] = half * (y[k] + y[m]);
                xi[kHalf + k] = half * (x[m] - x[k]);
            }
        }
        along_outer(false);
        const TileBox& box = a.to;
        for (int64_t r = 0; r < rows(); ++r)
            for (int k = 0; k < kHalf; ++k) {
                float* const to = box.data + r / size[1] * box.step[0] + r % size[1] * box.step[1] + k * box.step[2];
                store(to, re[r * kHalf + k]);
                store(to + a.part_step, im[r * kHalf + k]);
            }
    }

    void inverse() const {
        const TileBox& box = a.from;
        for (int64_t r = 0; r < rows(); ++r)
            for (int k = 0; k < kHalf; ++k) {
                const float* const from = box.data + r / size[1] * box.step[0] + r % size[1] * box.step[1] + k * box.step[2];
                re[r * kHalf + k] = load<B>(from);
                im[r * kHalf + k] = load<B>(from + a.part_step);
            }
        along_outer(true);
        const Vec<B> scale = broadcast<B>(1.0f / static_cast<float>(rows() * N));
        for (int64_t r = 0; r < rows(); r += 2) {
            const bool pair = r + 1 < rows();
            if (!wanted(r) && !(pair && wanted(r + 1))) continue;
            const Vec<B> zero = broadcast<B>(0);
            const Vec<B>*const ar = re + r * kHalf, *const ai = im + r * kHalf, *const br = ar + kHalf, *const bi = ai + kHalf;
            Vec<B> x[N], y[N];
            for (int k = 0; k < kHalf; ++k) {  // a + i*b, both of which are mirrored conjugates of themselves
                x[k] = ar[k] - (pair ? bi[k] : zero);
                y[k] = ai[k] + (pair ? br[k] : zero);
                if (k == 0 || k == N / 2) continue;
                x[N - k] = ar[k] + (pair ? bi[k] : zero);
                y[N - k] = (pair ? br[k] : zero) - ai[k];
            }
            transform<N>(y, x, 1);
            write(r, x, scale);
            if (pair) write(r + 1, y, scale);
        }
    }

    bool wanted(int64_t r) const { return present(a.to, 0, r / size[1]) && present(a.to, 1, r % size[1]); }
    void write(int64_t r, const Vec<B>* row, const Vec<B>& scale) const {
        const TileBox& box = a.to;
        if (!wanted(r)) return;
        float* const to = box.data + place(box, 0, r / size[1]) + place(box, 1, r % size[1]);
        for (int i = 0; i < N; ++i)
            if (present(box, 2, i)) store(to + place(box, 2, i), row[i] * scale);
    }
};

template <int N>
void run(const TileArgs& a, bool inverse) {
    if (a.lanes == 16) return inverse ? Spectrum<N, 16>(a).inverse() : Spectrum<N, 16>(a).forward();
    inverse ? Spectrum<N, 8>(a).inverse() : Spectrum<N, 8>(a).forward();
}

void run_size(const TileArgs& a, bool inverse) {
    switch (a.size) {
        case 8: return run<8>(a, inverse);
        case 16: return run<16>(a, inverse);
        default: return run<32>(a, inverse);
    }
}

void forward(const TileArgs& a) { run_size(a, false); }
void inverse(const TileArgs& a) { run_size(a, true); }

}  // namespace

void enter_fourier(VectorKernels& table) {
    table.fourier_forward = forward;
    table.fourier_inverse = inverse;
}

}  // namespace convoy::cpu::vec::CONVOY_ISA
