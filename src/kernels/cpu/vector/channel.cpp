// Maps and sums with one number per channel: bias, PReLU and their gradients.
#include "kernels/cpu/vector/families.h"
#include "kernels/cpu/vector/spans.h"

namespace convoy::cpu::vec::CONVOY_ISA {

namespace {

template <ChannelMap kKind>
void map_units(const ChannelMapArgs& a, int64_t begin, int64_t end) {
    for_units(a.spans, begin, end, [&](const Unit& unit) {
        const Periods<1> c(a.spans, {a.vector}, unit.block);
        const float *x = a.x + unit.first, *dy = kKind == ChannelMap::PReluGrad ? a.dy + unit.first : nullptr;
        float* const y = a.y + unit.first;
        for_vectors(unit.count, a.spans.period, [&](auto lanes, int64_t i, int64_t j) {
            constexpr int n = decltype(lanes)::n;
            const auto value = load<n>(x + i), v = load<n>(c.of[0] + j);
            if constexpr (kKind == ChannelMap::Bias) store(y + i, value + v);
            if constexpr (kKind == ChannelMap::BiasRelu) store(y + i, relu(value + v));
            if constexpr (kKind == ChannelMap::PRelu) store(y + i, select(value > broadcast<n>(0), value, v * value));
            if constexpr (kKind == ChannelMap::PReluGrad) {
                const auto g = load<n>(dy + i);
                store(y + i, select(value > broadcast<n>(0), g, v * g));
            }
        });
    });
}

void channel_map(const ChannelMapArgs& a, int64_t begin, int64_t end) {
    switch (a.kind) {
        case ChannelMap::Bias: return map_units<ChannelMap::Bias>(a, begin, end);
        case ChannelMap::BiasRelu: return map_units<ChannelMap::BiasRelu>(a, begin, end);
        case ChannelMap::PRelu: return map_units<ChannelMap::PRelu>(a, begin, end);
        case ChannelMap::PReluGrad: return map_units<ChannelMap::PReluGrad>(a, begin, end);
    }
}

template <ChannelSum kKind>
void sum_units(const ChannelSumArgs& a, const SumBuffers& buffers, int64_t begin, int64_t end) {
    const Spans& s = a.spans;
    for_units(s, begin, end, [&](const Unit& unit) {
        const float *x = a.x + unit.first, *dy = kKind == ChannelSum::PReluSlope ? a.dy + unit.first : nullptr;
        clear(buffers.scratch, s.period);
        for_rows(unit.count, s.period, [&](auto lanes, int64_t i, int64_t j) {
            constexpr int n = decltype(lanes)::n;
            auto value = load<n>(x + i);
            if constexpr (kKind == ChannelSum::PReluSlope)
                value = select(value > broadcast<n>(0), broadcast<n>(0), value * load<n>(dy + i));
            accumulate(buffers.scratch + j, value);
        });
        add_floats(s, buffers.sums, unit.block, buffers.scratch);
    });
}

void channel_sum(const ChannelSumArgs& a, const SumBuffers& buffers, int64_t begin, int64_t end) {
    a.kind == ChannelSum::Sum ? sum_units<ChannelSum::Sum>(a, buffers, begin, end)
                              : sum_units<ChannelSum::PReluSlope>(a, buffers, begin, end);
}

}  // namespace

void enter_channel(VectorKernels& table) {
    table.channel_map = channel_map;
    table.channel_sum = channel_sum;
}

}  // namespace convoy::cpu::vec::CONVOY_ISA
