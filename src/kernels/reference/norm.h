// Normalisation: batch norm, group and layer norm, local response norm. Statistics are computed in two passes (mean, then squared
// deviations) and all sums in double, also for float tensors. Work is shared out by channel or cell, so no result depends on the number of
// threads.
#pragma once

#include "kernels/reference/view.h"

namespace convoy::ref {

template <class T>
void reference(const BatchStatsOp& op, const KernelArgs& args);
template <class T>
void reference(const RunningStatsOp& op, const KernelArgs& args);
// In place or not. The variance is kept unbiased: scaled by count/(count - 1), or as it is when count is 1.
template <class T>
void reference(const RunningUpdateOp& op, const KernelArgs& args);
// y may be in the place of x.
template <class T>
void reference(const BatchNormalizeOp& op, const KernelArgs& args);
template <class T>
void reference(const BatchNormGradSumsOp& op, const KernelArgs& args);
template <class T>
void reference(const BatchNormGradInputOp& op, const KernelArgs& args);
template <class T>
void reference(const BatchNormFixedGradInputOp& op, const KernelArgs& args);
// Mean and variance of all parts together, from their counts, means and variances: nothing is subtracted that nearly cancels.
template <class T>
void reference(const MergeStatsOp& op, const KernelArgs& args);

// How many cells there are is read from the statistics' shape, and their size from that of x.
template <class T>
void reference(const CellStatsOp& op, const KernelArgs& args);
template <class T>
void reference(const CellNormalizeOp& op, const KernelArgs& args);
template <class T>
void reference(const CellNormGradAffineOp& op, const KernelArgs& args);
template <class T>
void reference(const CellNormGradSumsOp& op, const KernelArgs& args);
template <class T>
void reference(const CellNormGradInputOp& op, const KernelArgs& args);

// Channel c is normalised by the channels [c - size/2, c - size/2 + size) that there are.
template <class T>
void reference(const LrnOp& op, const KernelArgs& args);
template <class T>
void reference(const LrnGradOp& op, const KernelArgs& args);

}  // namespace convoy::ref
