// The algorithms for convolutions: one explicit list. Each says for a convolution in which layouts it offers to compute it, with what memory and how
// many operations, or why it refuses; and makes the kernel of an offer that was taken. What comes before and after (finding the convolution in a
// problem, adding a bias, the activation, the bias's gradient) is done once for all of them, in convolution.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/cpu/conv/view.h"
#include "kernels/cpu/implementation.h"

namespace convoy::cpu {

// One way in which an algorithm computes a convolution.
struct ConvOffer {
    std::string variant;  // distinguishes the offers of an algorithm
    Layout x, w, y;
    int64_t workspace_bytes = 0;
    double operations = 0;
    double seconds = 0;  // on all threads
};

struct ConvOffers {
    std::vector<ConvOffer> list;
    std::string refusal;  // when the list is empty

    static ConvOffers refuse(std::string reason) { return {{}, std::move(reason)}; }
};

struct ConvCall {
    ConvView view;
    std::string variant;
    const KernelRequest& request;
    CpuContext context;
    float *x = nullptr, *w = nullptr, *y = nullptr;  // or their gradients; the direction says which is written
    void* workspace = nullptr;
};

struct ConvAlgorithm {
    std::string_view name;
    Numerics numerics;
    bool ends;  // adds bias and activation, or sums the bias's gradient, by itself
    ConvOffers (*offers)(const ConvView& view, const CpuContext& context);
    std::unique_ptr<Kernel> (*prepare)(const ConvCall& call);
};

// In the order in which they are offered.
const std::vector<const ConvAlgorithm*>& conv_algorithms();

// oneDNN's (kernels/cpu/onednn).
const ConvAlgorithm& onednn_winograd();
const ConvAlgorithm& onednn_direct();
const ConvAlgorithm& onednn_gemm();
const ConvAlgorithm& winograd3d();  // its two-dimensional method, and own transforms along the depth
// Own.
const ConvAlgorithm& winograd_f4();
const ConvAlgorithm& winograd_f2();
const ConvAlgorithm& fft();
const ConvAlgorithm& matrix();  // windows of one element: a plain matrix product
const ConvAlgorithm& amx();     // direct, in tiles of split numbers
const ConvAlgorithm& direct();
const ConvAlgorithm& im2col();
const ConvAlgorithm& im2row();
const ConvAlgorithm& kn2row();
const ConvAlgorithm& kn2row_gemm();
const ConvAlgorithm& kn2col();
const ConvAlgorithm& scalar_row();
const ConvAlgorithm& scalar_column();

// --- What the algorithms share ------------------------------------------------------------------------------------------------------

// [K..][F][C/groups]: every tap's weights as one matrix.
Layout tap_major(int rank);
// [F/B][C/B][K..] of B x B weights, in which the channels of the result are neighbours.
Layout blocked_weights(const ConvView& view, int64_t block);

// A rough time: operations of products whose matrices are m x n x k, at the speed that such sizes reach, and bytes that are moved besides.
struct Estimate {
    double operations = 0, bytes = 0;
    int64_t m = 64, n = 64, k = 64;
    double slowness = 1;
};
double seconds_of(const Estimate& estimate, const CpuContext& context);

}  // namespace convoy::cpu
