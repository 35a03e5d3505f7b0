#include "data/make/fields.h"

#include <array>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "data/make/fft.h"

namespace convoy {

namespace {

struct Spectrum {
    double sigma, tilt, cutoff, beta;
    double power(double k2, double mu2) const {
        const double distortion = 1 + beta * mu2;
        return sigma * sigma * std::pow(k2, tilt / 2) * std::exp(-k2 / (cutoff * cutoff)) * distortion * distortion;
    }
};

double between(double low, double high, double unit) { return low + (high - low) * (unit + 1) / 2; }

// From targets in -1..1. The cutoff, in cycles per box, lies inside what the grid can hold; the ranges are wide enough that each target changes what
// neighbouring voxels have in common by more than one field's chance does.
Spectrum spectrum_of(const std::array<double, kFieldTargets>& t, int64_t size) {
    const auto nyquist = static_cast<double>(size) / 2;
    return {.sigma = between(0.7, 1.3, t[0]),
            .tilt = between(-2, 1, t[1]),
            .cutoff = nyquist * std::exp(between(std::log(0.25), std::log(1), t[2])),
            .beta = std::exp(between(std::log(0.25), std::log(4), t[3])) - 1};
}

// Wave numbers squared along one axis: 0, 1, 4, ..., back to 1.
std::vector<double> squares(int64_t size) {
    std::vector<double> result;
    for (int64_t i = 0; i < size; ++i) {
        const auto k = static_cast<double>(std::min(i, size - i));
        result.push_back(k * k);
    }
    return result;
}

// Calls fn(index, k^2, mu^2) for every wave but the constant one.
template <class F>
void for_each_wave(int64_t size, F&& fn) {
    const std::vector<double> k2 = squares(size);
    size_t at = 0;
    for (const double depth : k2)
        for (const double row : k2)
            for (const double column : k2) {
                const double all = depth + row + column;
                if (all > 0) fn(at, all, depth / all);
                ++at;
            }
}

// The deviation of a field of this spectrum.
double deviation(const Spectrum& spectrum, int64_t size) {
    double variance = 0;
    for_each_wave(size, [&](size_t, double k2, double mu2) { variance += spectrum.power(k2, mu2); });
    return std::sqrt(variance / std::pow(static_cast<double>(size), 3));
}

}  // namespace

void require_valid(const FieldOptions& options) {
    require(options.size >= 8 && options.size <= 512 && std::has_single_bit(static_cast<uint64_t>(options.size)),
            "fields of {0}x{0}x{0}: expected a power of two from 8 to 512", options.size);
    require(options.channels >= 1 && options.channels <= 8, "fields of {} channels: expected 1 to 8", options.channels);
}

FieldSample make_field(const FieldOptions& options, uint64_t index) {
    require_valid(options);
    const int64_t size = options.size, voxels = size * size * size;
    const auto step = static_cast<uint32_t>(index);
    FieldSample sample{Tensor({options.channels, size, size, size}, DType::f32), Tensor({kFieldTargets}, DType::f32)};

    const RandomStream choice{options.seed, step, stream_of("fields targets")};
    std::array<double, kFieldTargets> targets{};
    for (size_t t = 0; t < targets.size(); ++t) {
        targets[t] = 2 * choice.uniform(t) - 1;
        sample.y.as<float>()[t] = static_cast<float>(targets[t]);
    }

    const RandomStream noise{options.seed, step, stream_of("fields noise")};
    std::vector<std::complex<double>> waves(static_cast<size_t>(voxels));
    for (size_t i = 0; i < waves.size(); ++i) waves[i] = noise.normal(i);
    const Shape cube{size, size, size};
    fourier(waves, cube, false);

    for (int64_t c = 0; c < options.channels; ++c) {
        Spectrum spectrum = spectrum_of(targets, size);
        const double sigma = spectrum.sigma;
        spectrum.cutoff *= std::pow(1.1, static_cast<double>(c));
        spectrum.sigma *= sigma / deviation(spectrum, size) * std::pow(0.8, static_cast<double>(c));
        std::vector<std::complex<double>> field = waves;
        field[0] = 0;
        for_each_wave(size, [&](size_t at, double k2, double mu2) { field[at] *= std::sqrt(spectrum.power(k2, mu2)); });
        fourier(field, cube, true);
        float* const out = sample.x.as<float>().data() + c * voxels;
        for (size_t i = 0; i < field.size(); ++i) out[i] = static_cast<float>(field[i].real());
    }
    return sample;
}

}  // namespace convoy
