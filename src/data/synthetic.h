// Made-up data of any shape that a network can learn from. Sample i is a pure function of (seed, i): it does not depend on the size of the
// dataset, on the batch, or on who reads it. Nothing is stored.
//
// The noise is uniform with mean 0 and variance 1. A pattern is a fixed random function of the seed, constant on a coarse grid of at most 8
// cells in each spatial dim, with mean 0 and variance 1.
//   Class:      every class has a pattern; input = noise + signal * pattern of the label.
//   Voxel:      each sample has a field of a few overlapping blobs, with values in 0..1; the label is the field cut into equal steps;
//               input = noise + 4 signal (field - 1/2), in every channel.
//   Regression: every target t has a pattern p_t; input = noise + signal * sum_t z_t p_t with random z; target t is the linear functional
//               mean(p_t * input), near signal * z_t.
#pragma once

#include <memory>

#include "data/dataset.h"

namespace convoy {

// Error when the description is not valid (require_valid) or `count` is not positive.
std::unique_ptr<Dataset> make_synthetic(const DatasetInfo& info, int64_t count, uint64_t seed, double signal);

}  // namespace convoy
