// Patches of an input as columns of a matrix (im2col), for a range of output positions at a time, so that the matrix stays small whatever
// the input's size. The matrix is [channels * kernel, positions], row-major; padding is zero.
#pragma once

#include "kernels/reference/geometry.h"

namespace convoy::ref {

// How many positions are taken at a time when the matrix has `rows` rows of elements of `element_bytes`.
int64_t column_block(const Geometry& g, int64_t rows, int64_t element_bytes);

// Writes the columns of `positions` from x[channels, in].
template <class T>
void gather_columns(const Geometry& g, int64_t channels, const T* x, Range positions, T* columns);

// The adjoint: adds the columns of `positions` into dx[channels, in].
template <class T>
void scatter_columns(const Geometry& g, int64_t channels, const T* columns, Range positions, T* dx);

}  // namespace convoy::ref
