// Many random numbers of a stream at once: a block of words serves several of them.
#pragma once

#include <span>

#include "base/random.h"

namespace convoy {

// What the stream's uniform(i) and normal(i) give for the indices i from `first` on.
void fill_uniform(const RandomStream& random, uint64_t first, std::span<double> values);
void fill_normal(const RandomStream& random, uint64_t first, std::span<double> values);

}  // namespace convoy
