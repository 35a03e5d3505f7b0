#include "data/make/fft.h"

#include <bit>
#include <cmath>

#include "base/error.h"

namespace convoy {

namespace {

using Complex = std::complex<double>;

// One line by Cooley and Tukey's method: the elements in bit-reversed order, then butterflies of growing spans. `turns` holds exp(-+2 pi i k / n).
void transform(std::vector<Complex>& line, const std::vector<Complex>& turns) {
    const size_t n = line.size();
    for (size_t i = 1, j = 0; i < n; ++i) {
        size_t bit = n >> 1;
        for (; (j & bit) != 0; bit >>= 1) j ^= bit;
        j ^= bit;
        if (i < j) std::swap(line[i], line[j]);
    }
    for (size_t span = 2; span <= n; span *= 2)
        for (size_t begin = 0; begin < n; begin += span)
            for (size_t k = 0; k < span / 2; ++k) {
                Complex &a = line[begin + k], &b = line[begin + k + span / 2];
                // Written out, because the library's product looks for infinities.
                const Complex turn = turns[k * (n / span)];
                const Complex product(b.real() * turn.real() - b.imag() * turn.imag(), b.real() * turn.imag() + b.imag() * turn.real());
                b = a - product;
                a += product;
            }
}

}  // namespace

void fourier(std::vector<Complex>& values, const Shape& shape, bool inverse) {
    CONVOY_CHECK(static_cast<int64_t>(values.size()) == numel(shape), "{} values for {}", values.size(), to_string(shape));
    size_t stride = values.size();
    for (const int64_t size : shape) {
        require(size > 0 && std::has_single_bit(static_cast<uint64_t>(size)), "a Fourier transform of {}: expected powers of two",
                to_string(shape));
        const auto n = static_cast<size_t>(size);
        stride /= n;
        std::vector<Complex> turns(n), line(n);
        for (size_t k = 0; k < n; ++k)
            turns[k] = std::polar(1.0, (inverse ? 2 : -2) * M_PI * static_cast<double>(k) / static_cast<double>(n));
        for (size_t outer = 0; outer < values.size(); outer += n * stride)
            for (size_t inner = 0; inner < stride; ++inner) {
                Complex* const first = values.data() + outer + inner;
                for (size_t i = 0; i < n; ++i) line[i] = first[i * stride];
                transform(line, turns);
                for (size_t i = 0; i < n; ++i) first[i * stride] = line[i];
            }
    }
    if (inverse)
        for (Complex& v : values) v /= static_cast<double>(values.size());
}

}  // namespace convoy
