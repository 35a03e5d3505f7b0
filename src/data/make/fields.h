// Gaussian random fields whose power spectrum carries the targets: the task of CosmoFlow (parameters of the universe from the distribution of its
// matter) in miniature. White noise is filtered so that a wave of wave number k (in cycles per box) at the cosine mu to the depth axis has the power
//
//     A k^n exp(-(k / cutoff)^2) (1 + beta mu^2)^2
//
// with A such that the field has the deviation sigma: like the amplitude, the tilt, the smoothing and the redshift distortions of a survey. All four
// can be read off one field, but from no single voxel: they are statistics of second order, over all places and several scales.
#pragma once

#include "tensor/tensor.h"

namespace convoy {

struct FieldOptions {
    int64_t size = 64;     // voxels along each side; a power of two
    int64_t channels = 1;  // further ones are earlier ages: the same waves, of less amplitude and smoothed less
    uint64_t seed = 1;
};

// Error for sizes that are no power of two from 8 on, and for no or more than 8 channels.
void require_valid(const FieldOptions& options);

inline constexpr int64_t kFieldTargets = 4;

struct FieldSample {
    Tensor x;  // f32 [channels, size, size, size], of mean 0 and a deviation around 1
    Tensor y;  // f32 [4]: amplitude, tilt, smoothing, distortion; each uniform in -1..1
};

// Sample `index` of a set; it depends on the options and the index alone.
FieldSample make_field(const FieldOptions& options, uint64_t index);

}  // namespace convoy
