// Convolutions by cuDNN, in whichever of several ways is fastest here: as asked; with channels or padding written out; as the convolution that the
// other direction is; as products of matrices; gradients of weights by own tiles, by slices of channels and in parts of the batch. Each way is measured as a whole when the kernel is prepared, and the choice is remembered.
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/device.h"
#include "kernels/patterns.h"

namespace convoy::cuda {

// Tensor cores work along the channels.
Layout library_layout(DType compute, int rank);
struct LibraryConvCase {
    ConvProblem conv;
    bool transforms;  // whether its engines may use Winograd's or Fourier's
};
// Nothing, with the reason in `why`, when the library has no way to do it. The request's problem must outlive the call only.
std::unique_ptr<Kernel> library_conv(const KernelRequest& request, const LibraryConvCase& which, Device& device, std::string& why);

}  // namespace convoy::cuda
