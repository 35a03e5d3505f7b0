#include "data/resample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace convoy {

namespace {

struct Reach {
    int64_t first = 0, last = 0;  // inclusive
    double centre = 0, scale = 1;
    double weight(int64_t at) const { return std::max(0.0, 1 - std::abs((static_cast<double>(at) + 0.5 - centre) / scale)); }
};

Reach reach_of(double begin, double length, int64_t size, int64_t out, int64_t i) {
    const double step = length / static_cast<double>(out);
    Reach reach{.centre = begin + (static_cast<double>(i) + 0.5) * step, .scale = std::max(1.0, step)};
    reach.first = std::clamp<int64_t>(static_cast<int64_t>(std::floor(reach.centre - reach.scale)), 0, size - 1);
    reach.last = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(reach.centre + reach.scale)) - 1, reach.first, size - 1);
    while (reach.first < reach.last && reach.weight(reach.first) == 0) ++reach.first;
    while (reach.first < reach.last && reach.weight(reach.last) == 0) --reach.last;
    return reach;
}

// Four numbers at once, of which a pixel uses three.
using Four = float __attribute__((vector_size(16)));

}  // namespace

void FilterTable::make(double begin, double length, int64_t size, int64_t out) {
    const auto count = static_cast<size_t>(out);
    first.resize(count);
    taps = 0;
    for (int64_t i = 0; i < out; ++i) {
        const Reach reach = reach_of(begin, length, size, out, i);
        taps = std::max(taps, static_cast<int>(reach.last - reach.first + 1));
    }
    weight.assign(count * static_cast<size_t>(taps), 0);
    for (int64_t i = 0; i < out; ++i) {
        const Reach reach = reach_of(begin, length, size, out, i);
        // Every output has the same number of taps, all inside the source.
        const int64_t from = std::max<int64_t>(0, std::min(reach.first, size - taps));
        first[static_cast<size_t>(i)] = static_cast<int>(from);
        double sum = 0;
        for (int64_t at = reach.first; at <= reach.last; ++at) sum += reach.weight(at);
        for (int64_t at = reach.first; at <= reach.last; ++at)
            weight[static_cast<size_t>(i * taps + at - from)] = static_cast<float>(sum > 0 ? reach.weight(at) / sum : 1);
    }
}

void Resampler::run(const Pixels& source, const SourceRect& rect, ImageSize to, float* planes) {
    across_.make(rect.x, rect.width, source.size.width, to.width);
    down_.make(rect.y, rect.height, source.size.height, to.height);
    const int64_t left = across_.first.front(), right = across_.first.back() + across_.taps;
    const int64_t values = (right - left) * 3;
    line_.resize(static_cast<size_t>(values + 4));
    const int64_t plane = to.width * to.height;
    for (int64_t y = 0; y < to.height; ++y) {
        // Downwards first: neighbours in a row are neighbours in memory.
        float* const line = line_.data();
        for (int k = 0; k < down_.taps; ++k) {
            const float w = down_.weight[static_cast<size_t>(y * down_.taps + k)];
            const uint8_t* const row = source.row(down_.first[static_cast<size_t>(y)] + k) + 3 * left;
            if (k == 0)
                for (int64_t i = 0; i < values; ++i) line[i] = w * static_cast<float>(row[i]);
            else if (w != 0)
                for (int64_t i = 0; i < values; ++i) line[i] += w * static_cast<float>(row[i]);
        }
        float* const out = planes + y * to.width;
        const float* weights = across_.weight.data();
        for (int64_t x = 0; x < to.width; ++x, weights += across_.taps) {
            const float* pixel = line + 3 * (across_.first[static_cast<size_t>(x)] - left);
            Four sum{};
            for (int k = 0; k < across_.taps; ++k, pixel += 3) {
                Four value;
                std::memcpy(&value, pixel, sizeof value);
                sum += value * weights[k];
            }
            for (int64_t c = 0; c < 3; ++c) out[c * plane + x] = sum[c];
        }
    }
}

void resample_reference(const Pixels& source, const SourceRect& rect, ImageSize to, float* planes) {
    for (int64_t y = 0; y < to.height; ++y)
        for (int64_t x = 0; x < to.width; ++x) {
            const double sx = rect.width / static_cast<double>(to.width), sy = rect.height / static_cast<double>(to.height);
            const double cx = rect.x + (static_cast<double>(x) + 0.5) * sx, cy = rect.y + (static_cast<double>(y) + 0.5) * sy;
            std::array<double, 3> sum{};
            double weights = 0;
            for (int64_t j = 0; j < source.size.height; ++j)
                for (int64_t i = 0; i < source.size.width; ++i) {
                    const double wx = 1 - std::abs(static_cast<double>(i) + 0.5 - cx) / std::max(1.0, sx);
                    const double wy = 1 - std::abs(static_cast<double>(j) + 0.5 - cy) / std::max(1.0, sy);
                    if (wx <= 0 || wy <= 0) continue;
                    weights += wx * wy;
                    for (size_t c = 0; c < 3; ++c) sum[c] += wx * wy * source.row(j)[3 * i + static_cast<int64_t>(c)];
                }
            for (size_t c = 0; c < 3; ++c)
                planes[static_cast<int64_t>(c) * to.width * to.height + y * to.width + x] = static_cast<float>(sum[c] / weights);
        }
}

}  // namespace convoy
