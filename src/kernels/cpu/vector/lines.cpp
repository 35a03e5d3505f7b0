// Lines of classes: softmax, cross-entropy and accuracy. Sixteen lines at a time are brought into a small buffer [classes][16], where every step
// is vector code whatever the layout and the number of classes.
#include "kernels/cpu/vector/families.h"
#include "kernels/cpu/vector/math.h"

namespace convoy::cpu::vec::CONVOY_ISA {

namespace {

constexpr int64_t kLines = 16;

// The offset of class 0 of a line.
CONVOY_INLINE int64_t start_of(const LineArgs& a, int64_t line) { return line / a.inner * a.inner * a.classes + line % a.inner; }

// Lines [first, first + count) into the buffer; the lines that are missing to sixteen repeat the last.
void gather(const LineArgs& a, const float* from, int64_t first, int64_t count, float* buffer) {
    if (count == kLines && first / a.inner == (first + count - 1) / a.inner && a.inner > 1) {
        const float* const x = from + start_of(a, first);
        for (int64_t k = 0; k < a.classes; ++k) store(buffer + k * kLines, load<kLines>(x + k * a.inner));
        return;
    }
    for (int64_t l = 0; l < kLines; ++l) {
        const float* const x = from + start_of(a, first + least(l, count - 1));
        for (int64_t k = 0; k < a.classes; ++k) buffer[k * kLines + l] = x[k * a.inner];
    }
}

void scatter(const LineArgs& a, const float* buffer, int64_t first, int64_t count, float* to) {
    if (count == kLines && first / a.inner == (first + count - 1) / a.inner && a.inner > 1) {
        float* const y = to + start_of(a, first);
        for (int64_t k = 0; k < a.classes; ++k) store(y + k * a.inner, load<kLines>(buffer + k * kLines));
        return;
    }
    for (int64_t l = 0; l < count; ++l) {
        float* const y = to + start_of(a, first + l);
        for (int64_t k = 0; k < a.classes; ++k) y[k * a.inner] = buffer[k * kLines + l];
    }
}

// Of sixteen lines: the largest logit; the sum of exp(logit - largest) over all classes but one, which `except` names (-1: none); and that
// one's own term.
struct Exponentials {
    alignas(64) float largest[kLines], others[kLines], own[kLines];
};

// Replaces the logits by exp(logit - largest).
CONVOY_INLINE void exponentials(const LineArgs& a, float* buffer, const int32_t* except, Exponentials& e) {
    for (int64_t l = 0; l < kLines; ++l) {
        e.largest[l] = buffer[l];
        e.others[l] = e.own[l] = 0;
    }
    for (int64_t k = 1; k < a.classes; ++k)
#pragma omp simd
        for (int64_t l = 0; l < kLines; ++l) e.largest[l] = e.largest[l] < buffer[k * kLines + l] ? buffer[k * kLines + l] : e.largest[l];
    // Sums of sums, so that many classes lose no more bits than few.
    constexpr int64_t kPiece = 32;
    for (int64_t first = 0; first < a.classes; first += kPiece) {
        alignas(64) float part[kLines] = {};
        for (int64_t k = first; k < least(first + kPiece, a.classes); ++k)
#pragma omp simd
            for (int64_t l = 0; l < kLines; ++l) {
                const float term = exp_of(buffer[k * kLines + l] - e.largest[l]);
                buffer[k * kLines + l] = term;
                part[l] += except[l] == k ? 0 : term;
                e.own[l] = except[l] == k ? term : e.own[l];
            }
        for (int64_t l = 0; l < kLines; ++l) e.others[l] += part[l];
    }
}

// Calls fn(first, count) for every sixteen lines.
template <class Fn>
CONVOY_INLINE void for_lines(int64_t begin, int64_t end, const Fn& fn) {
    for (int64_t first = begin; first < end; first += kLines) fn(first, least(kLines, end - first));
}

struct Targets {
    alignas(64) int32_t of[kLines];
    CONVOY_INLINE Targets(const LineArgs& a, int64_t first, int64_t count) {
        for (int64_t l = 0; l < kLines; ++l) of[l] = a.target ? a.target[first + least(l, count - 1)] : -1;
    }
};

void softmax(const LineArgs& a, int64_t begin, int64_t end) {
    for_lines(begin, end, [&](int64_t first, int64_t count) {
        gather(a, a.x, first, count, a.buffer);
        const Targets none(a, first, count);
        Exponentials e;
        exponentials(a, a.buffer, none.of, e);
        for (int64_t l = 0; l < kLines; ++l) e.others[l] = 1 / e.others[l];
        for (int64_t k = 0; k < a.classes; ++k)
#pragma omp simd
            for (int64_t l = 0; l < kLines; ++l) a.buffer[k * kLines + l] *= e.others[l];
        scatter(a, a.buffer, first, count, a.y);
    });
}

void softmax_grad(const LineArgs& a, int64_t begin, int64_t end) {
    float *const y = a.buffer, *const dy = a.buffer + kLines * a.classes;
    for_lines(begin, end, [&](int64_t first, int64_t count) {
        gather(a, a.x, first, count, y);
        gather(a, a.dy, first, count, dy);
        alignas(64) double sum[kLines] = {};
        for (int64_t k = 0; k < a.classes; ++k)
#pragma omp simd
            for (int64_t l = 0; l < kLines; ++l) sum[l] += static_cast<double>(y[k * kLines + l]) * static_cast<double>(dy[k * kLines + l]);
        for (int64_t k = 0; k < a.classes; ++k)
#pragma omp simd
            for (int64_t l = 0; l < kLines; ++l) {
                // In double, because where one class has nearly everything, little is left of the difference.
                const double difference = static_cast<double>(dy[k * kLines + l]) - sum[l];
                dy[k * kLines + l] = static_cast<float>(static_cast<double>(y[k * kLines + l]) * difference);
            }
        scatter(a, dy, first, count, a.y);
    });
}

CONVOY_INLINE double weight_of(const LineArgs& a, int64_t k) { return a.weights ? static_cast<double>(a.weights[k]) : 1; }

double cross_entropy(const LineArgs& a, int64_t begin, int64_t end) {
    double total = 0;
    for_lines(begin, end, [&](int64_t first, int64_t count) {
        gather(a, a.x, first, count, a.buffer);
        const Targets targets(a, first, count);
        // The sum over the classes of weight*logit, and the target's own logit, which the exponentials overwrite.
        alignas(64) double weighted[kLines] = {};
        alignas(64) float own[kLines] = {};
        if (a.smoothing != 0)
            for (int64_t k = 0; k < a.classes; ++k)
                for (int64_t l = 0; l < kLines; ++l) weighted[l] += weight_of(a, k) * static_cast<double>(a.buffer[k * kLines + l]);
        for (int64_t l = 0; l < count; ++l) {
            const int32_t t = targets.of[l];
            own[l] = t >= 0 && t < a.classes ? a.buffer[t * kLines + l] : __builtin_nanf("");
        }
        Exponentials e;
        exponentials(a, a.buffer, targets.of, e);
        for (int64_t l = 0; l < count; ++l) {
            const int32_t t = targets.of[l];
            const double largest = e.largest[l], others = e.others[l];
            const double above = __builtin_log(others + static_cast<double>(e.own[l]));  // log(sum) above the largest logit
            const double loss = above + (largest - static_cast<double>(own[l]));
            total += t >= 0 && t < a.classes ? weight_of(a, t) * (1 - a.smoothing) * loss : loss;
            if (a.smoothing != 0) total += a.smoothing / static_cast<double>(a.classes) * (a.weight_sum * (above + largest) - weighted[l]);
        }
    });
    return total;
}

// dlogit_k = scale*(own*(p_k - [k = t]) + spread*(W*p_k - w_k)), where own is the target's weight and W the sum of all; p_t - 1 is computed from
// the other classes' sum, because near 1 the difference would have no digits left.
void cross_entropy_grad(const LineArgs& a, int64_t begin, int64_t end) {
    const double spread = a.scale * a.smoothing / static_cast<double>(a.classes);
    for_lines(begin, end, [&](int64_t first, int64_t count) {
        gather(a, a.x, first, count, a.buffer);
        const Targets targets(a, first, count);
        Exponentials e;
        exponentials(a, a.buffer, targets.of, e);
        alignas(64) float factor[kLines], at_target[kLines];
        for (int64_t l = 0; l < kLines; ++l) {
            const int32_t t = targets.of[l];
            const double sum = static_cast<double>(e.others[l]) + static_cast<double>(e.own[l]);
            const double own = t >= 0 && t < a.classes ? a.scale * weight_of(a, t) * (1 - a.smoothing) : __builtin_nan("");
            factor[l] = static_cast<float>((own + spread * a.weight_sum) / sum);
            // In place of factor*term at the target: own*(p_t - 1) + spread*W*p_t.
            at_target[l] =
                static_cast<float>((spread * a.weight_sum * static_cast<double>(e.own[l]) - own * static_cast<double>(e.others[l])) / sum);
        }
        for (int64_t k = 0; k < a.classes; ++k) {
            const float less = static_cast<float>(spread * weight_of(a, k));
#pragma omp simd
            for (int64_t l = 0; l < kLines; ++l) {
                const float product = factor[l] * a.buffer[k * kLines + l];
                a.buffer[k * kLines + l] = (targets.of[l] == k ? at_target[l] : product) - less;
            }
        }
        scatter(a, a.buffer, first, count, a.y);
    });
}

int64_t correct(const LineArgs& a, int64_t begin, int64_t end) {
    int64_t total = 0;
    for_lines(begin, end, [&](int64_t first, int64_t count) {
        gather(a, a.x, first, count, a.buffer);
        alignas(64) float largest[kLines];
        alignas(64) int32_t at[kLines] = {};
        for (int64_t l = 0; l < kLines; ++l) largest[l] = a.buffer[l];
        for (int64_t k = 1; k < a.classes; ++k)
#pragma omp simd
            for (int64_t l = 0; l < kLines; ++l) {
                const bool larger = a.buffer[k * kLines + l] > largest[l];
                largest[l] = larger ? a.buffer[k * kLines + l] : largest[l];
                at[l] = larger ? static_cast<int32_t>(k) : at[l];
            }
        for (int64_t l = 0; l < count; ++l) total += at[l] == a.target[first + l];
    });
    return total;
}

}  // namespace

void enter_lines(VectorKernels& table) {
    table.softmax = softmax;
    table.softmax_grad = softmax_grad;
    table.cross_entropy = cross_entropy;
    table.cross_entropy_grad = cross_entropy_grad;
    table.correct = correct;
}

}  // namespace convoy::cpu::vec::CONVOY_ISA
