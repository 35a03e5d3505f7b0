// Fourier transforms of cubes whose sides are powers of two, for making data. Not for training.
#pragma once

#include <complex>
#include <vector>

#include "tensor/dims.h"

namespace convoy {

// In place, row-major over `shape`, of any number of dims, each a power of two. Forward: the sum over x of v(x) exp(-2 pi i k x / n); the inverse is
// divided by the number of elements. Error for other sizes.
void fourier(std::vector<std::complex<double>>& values, const Shape& shape, bool inverse);

}  // namespace convoy
