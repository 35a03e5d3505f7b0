// The cpu backend's own vectorised float32 kernels, family by family, for the list of implementations. Each refuses (offers nothing for) what it
// does not recognise: other types, other ops, other ways of joining them.
//
// Where operands may have any layout as long as all have the same one, a candidate's layouts say Layout::same(); the compiler puts one layout in
// the place of all of them.
#pragma once

#include <memory>

#include "kernels/cpu/implementation.h"

namespace convoy::cpu {

namespace vec {
struct VectorKernels;
}

// Batch norm: statistics, normalising [+ add] [+ ReLU], sums and input gradient [behind a ReLU].
const Implementation& norm_implementation();
// Activations, sums and products of tensors, bias, PReLU, dropout.
const Implementation& elementwise_implementation();
const Implementation& pool_implementation();
// Softmax, cross-entropy, errors against a target, and how many targets are met.
const Implementation& loss_implementation();
// Weight updates and squared norms.
const Implementation& update_implementation();
// Joining and slicing along channels.
const Implementation& rearrange_implementation();

// The same for a chosen instruction set, which must outlive them: for tests.
std::unique_ptr<Implementation> make_norm_implementation(const vec::VectorKernels& kernels);
std::unique_ptr<Implementation> make_elementwise_implementation(const vec::VectorKernels& kernels);
std::unique_ptr<Implementation> make_pool_implementation(const vec::VectorKernels& kernels);
std::unique_ptr<Implementation> make_loss_implementation(const vec::VectorKernels& kernels);
std::unique_ptr<Implementation> make_update_implementation(const vec::VectorKernels& kernels);
std::unique_ptr<Implementation> make_rearrange_implementation(const vec::VectorKernels& kernels);

}  // namespace convoy::cpu
