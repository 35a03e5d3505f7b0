// Sums of lines of sixteen floats: what transforms along one dim (Winograd's method) consist of.
#include "kernels/cpu/vector/families.h"
#include "kernels/cpu/vector/vec.h"

namespace convoy::cpu::vec::CONVOY_ISA {

namespace {

constexpr int kLine = 16;

// Bias and activation, once a line is complete.
struct Finish {
    Vec<kLine> bias, slope;
    bool flat;  // a slope of 0 times infinity would be no number
    CONVOY_INLINE explicit Finish(const CombineArgs& a)
        : bias(a.bias ? load<kLine>(a.bias) : broadcast<kLine>(0)), slope(broadcast<kLine>(a.slope)), flat(a.slope == 0) {}
    CONVOY_INLINE Vec<kLine> operator()(const Vec<kLine>& sum) const {
        const Vec<kLine> v = sum + bias;
        return flat ? relu(v) : select(v <= broadcast<kLine>(0), v * slope, v);
    }
};

template <int K, bool Add, bool Last>
void combine_lines(const CombineArgs& a, int64_t lines) {
    const float* src[K];
    Vec<kLine> factor[K];
    for (int k = 0; k < K; ++k) {
        src[k] = a.src[k];
        factor[k] = broadcast<kLine>(a.factor[k]);
    }
    const Finish finish(a);
    float* dst = a.dst;
    const int64_t src_step = a.src_step, dst_step = a.dst_step;
    for (int64_t i = 0; i < lines; ++i) {
        Vec<kLine> sum = load<kLine>(src[0] + i * src_step) * factor[0];
        for (int k = 1; k < K; ++k) sum = sum + load<kLine>(src[k] + i * src_step) * factor[k];
        if constexpr (Add) sum = sum + load<kLine>(dst + i * dst_step);
        if constexpr (Last) sum = finish(sum);
        store(dst + i * dst_step, sum);
    }
}

template <int K>
void combine_count(const CombineArgs& a, int64_t lines) {
    if (a.add) return a.last ? combine_lines<K, true, true>(a, lines) : combine_lines<K, true, false>(a, lines);
    a.last ? combine_lines<K, false, true>(a, lines) : combine_lines<K, false, false>(a, lines);
}

void clear_lines(const CombineArgs& a, int64_t lines) {
    for (int64_t i = 0; i < lines; ++i) store(a.dst + i * a.dst_step, broadcast<kLine>(0));
}

void combine(const CombineArgs& a, int64_t lines) {
    switch (a.count) {
        case 0: return clear_lines(a, lines);
        case 1: return combine_count<1>(a, lines);
        case 2: return combine_count<2>(a, lines);
        case 3: return combine_count<3>(a, lines);
        default: return combine_count<4>(a, lines);
    }
}

}  // namespace

void enter_combine(VectorKernels& table) { table.combine = combine; }

}  // namespace convoy::cpu::vec::CONVOY_ISA
