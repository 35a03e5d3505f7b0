// Batch norm: statistics in one read of x, normalising, and the gradients, each also with the ReLU that follows.
#include "kernels/cpu/vector/families.h"
#include "kernels/cpu/vector/spans.h"

namespace convoy::cpu::vec::CONVOY_ISA {

namespace {

template <bool kAdd, bool kRelu>
void normalize_units(const NormalizeArgs& a, int64_t begin, int64_t end) {
    for_units(a.spans, begin, end, [&](const Unit& unit) {
        const Periods<3> c(a.spans, {a.mean, a.scale, a.shift}, unit.block);
        const float *x = a.x + unit.first, *other = kAdd ? a.other + unit.first : nullptr;
        float* const y = a.y + unit.first;
        for_vectors(unit.count, a.spans.period, [&](auto lanes, int64_t i, int64_t j) {
            constexpr int n = decltype(lanes)::n;
            auto z = (load<n>(x + i) - load<n>(c.of[0] + j)) * load<n>(c.of[1] + j) + load<n>(c.of[2] + j);
            if constexpr (kAdd) z = z + load<n>(other + i);
            if constexpr (kRelu) z = relu(z);
            store(y + i, z);
        });
    });
}

void normalize(const NormalizeArgs& a, int64_t begin, int64_t end) {
    if (a.other) return a.relu ? normalize_units<true, true>(a, begin, end) : normalize_units<true, false>(a, begin, end);
    a.relu ? normalize_units<false, true>(a, begin, end) : normalize_units<false, false>(a, begin, end);
}

// Four registers: sums in them run at the speed of additions.
constexpr int kRegisters = 4 * CONVOY_WIDTH;
static_assert(kShortPeriod % kRegisters == 0);

// Sums of `rows` periods, place by place: of x into m, then with m as their mean of x - m into d and of its square into q.
void sum_short_rows(const float* x, int64_t rows, float* m) {
    for (int64_t j = 0; j < kShortPeriod; j += kRegisters) {
        auto sum = broadcast<kRegisters>(0);
        for (int64_t r = 0; r < rows; ++r) sum = sum + load<kRegisters>(x + r * kShortPeriod + j);
        store(m + j, sum);
    }
}
void sum_short_differences(const float* x, int64_t rows, const float* m, float* d, float* q) {
    for (int64_t j = 0; j < kShortPeriod; j += kRegisters) {
        const auto mean = load<kRegisters>(m + j);
        auto sum = broadcast<kRegisters>(0), squares = broadcast<kRegisters>(0);
        for (int64_t r = 0; r < rows; ++r) {
            const auto difference = load<kRegisters>(x + r * kShortPeriod + j) - mean;
            sum = sum + difference;
            squares = squares + difference * difference;
        }
        store(d + j, sum);
        store(q + j, squares);
    }
}
// The same for any period, with sums in the cache.
void sum_rows(const float* x, int64_t rows, int64_t period, float* m) {
    clear(m, period);
    for_rows(rows * period, period, [&](auto lanes, int64_t i, int64_t j) { accumulate(m + j, load<decltype(lanes)::n>(x + i)); });
}
void sum_differences(const float* x, int64_t count, int64_t period, const float* m, float* d, float* q) {
    for_rows(count, period, [&](auto lanes, int64_t i, int64_t j) {
        constexpr int n = decltype(lanes)::n;
        const auto difference = load<n>(x + i) - load<n>(m + j);
        accumulate(d + j, difference);
        accumulate(q + j, difference * difference);
    });
}

// Within a unit, which stays in the cache, two passes: about the mean m of each place of the period, then the sums of x - m and of its square.
// They are small numbers and lose nothing in float; what they say about the sums of x and x*x is added up in double:
// sum x = n*m + D and sum x*x = Q + 2*m*D + n*m*m, where D = sum (x - m), Q = sum (x - m)^2.
void stats(const StatsArgs& a, const SumBuffers& buffers, int64_t begin, int64_t end) {
    const Spans& s = a.spans;
    float *const m = buffers.scratch, *const d = m + s.period, *const q = d + s.period;
    for_units(s, begin, end, [&](const Unit& unit) {
        const float* const x = a.x + unit.first;
        const int64_t rows = unit.count / s.period, rest = unit.count % s.period, whole = rows * s.period;
        clear(m, 3 * s.period);
        if (rows == 0) {
            for (int64_t j = 0; j < rest; ++j) m[j] = x[j];
        } else {
            s.period == kShortPeriod ? sum_short_rows(x, rows, m) : sum_rows(x, rows, s.period, m);
            const float share = 1.0f / static_cast<float>(rows);
            for (int64_t j = 0; j < s.period; ++j) m[j] *= share;
            s.period == kShortPeriod ? sum_short_differences(x, rows, m, d, q) : sum_differences(x, whole, s.period, m, d, q);
        }
        sum_differences(x + whole, rest, s.period, m, d, q);
        const auto count = [=](int64_t j) { return static_cast<double>(rows + (j < rest ? 1 : 0)); };
        add_period(s, buffers.sums, unit.block,
                   [=](int64_t j) { return count(j) * static_cast<double>(m[j]) + static_cast<double>(d[j]); });
        add_period(s, buffers.sums + s.blocks * s.stored, unit.block, [=](int64_t j) {
            const double mean = m[j];
            return static_cast<double>(q[j]) + mean * (2 * static_cast<double>(d[j]) + count(j) * mean);
        });
    });
}

template <Mask kMask>
void grad_sums_units(const GradSumsArgs& a, const SumBuffers& buffers, int64_t begin, int64_t end) {
    const Spans& s = a.spans;
    float *const plain = buffers.scratch, *const weighted = plain + s.period;
    for_units(s, begin, end, [&](const Unit& unit) {
        constexpr int kVectors = kMask == Mask::Normalized ? 3 : 1;
        const float* const vectors[3] = {a.mean, a.scale, a.shift};
        const float* used[kVectors];
        for (int k = 0; k < kVectors; ++k) used[k] = vectors[k];
        const Periods<kVectors> c(s, used, unit.block);
        const float *x = a.x + unit.first, *dy = a.dy + unit.first, *y = kMask == Mask::Output ? a.y + unit.first : nullptr;
        float* const d = kMask == Mask::Output ? a.d + unit.first : nullptr;
        clear(plain, 2 * s.period);
        for_rows(unit.count, s.period, [&](auto lanes, int64_t i, int64_t j) {
            constexpr int n = decltype(lanes)::n;
            const auto centred = load<n>(x + i) - load<n>(c.of[0] + j);
            auto g = load<n>(dy + i);
            if constexpr (kMask == Mask::Normalized) {
                const auto z = centred * load<n>(c.of[1] + j) + load<n>(c.of[2] + j);
                g = select(z <= broadcast<n>(0), broadcast<n>(0), g);
            }
            if constexpr (kMask == Mask::Output) {
                g = select(load<n>(y + i) <= broadcast<n>(0), broadcast<n>(0), g);
                store(d + i, g);
            }
            accumulate(plain + j, g);
            accumulate(weighted + j, g * centred);
        });
        add_floats(s, buffers.sums, unit.block, plain);
        add_floats(s, buffers.sums + s.blocks * s.stored, unit.block, weighted);
    });
}

void grad_sums(const GradSumsArgs& a, const SumBuffers& buffers, int64_t begin, int64_t end) {
    switch (a.mask) {
        case Mask::None: return grad_sums_units<Mask::None>(a, buffers, begin, end);
        case Mask::Output: return grad_sums_units<Mask::Output>(a, buffers, begin, end);
        case Mask::Normalized: return grad_sums_units<Mask::Normalized>(a, buffers, begin, end);
    }
}

template <bool kMasked>
void grad_input_units(const GradInputArgs& a, int64_t begin, int64_t end) {
    for_units(a.spans, begin, end, [&](const Unit& unit) {
        const Periods<5> c(a.spans, {a.mean, a.scale, a.level, a.slope, a.shift}, unit.block);
        const float *x = a.x + unit.first, *dy = a.dy + unit.first;
        float* const dx = a.dx + unit.first;
        for_vectors(unit.count, a.spans.period, [&](auto lanes, int64_t i, int64_t j) {
            constexpr int n = decltype(lanes)::n;
            const auto centred = load<n>(x + i) - load<n>(c.of[0] + j), scale = load<n>(c.of[1] + j);
            auto g = load<n>(dy + i);
            if constexpr (kMasked) g = select(centred * scale + load<n>(c.of[4] + j) <= broadcast<n>(0), broadcast<n>(0), g);
            store(dx + i, scale * (g - load<n>(c.of[2] + j) - centred * load<n>(c.of[3] + j)));
        });
    });
}

void grad_input(const GradInputArgs& a, int64_t begin, int64_t end) {
    a.mask == Mask::Normalized ? grad_input_units<true>(a, begin, end) : grad_input_units<false>(a, begin, end);
}

}  // namespace

void enter_norm(VectorKernels& table) {
    table.normalize = normalize;
    table.stats = stats;
    table.grad_sums = grad_sums;
    table.grad_input = grad_input;
}

}  // namespace convoy::cpu::vec::CONVOY_ISA
