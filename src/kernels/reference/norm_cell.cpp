#include <cmath>

#include "kernels/reference/norm.h"

namespace convoy::ref {

namespace {

// Group norm's view of x: [samples, channels, inner], where a cell is channels/groups adjacent channels of one sample. Layer norm is the
// same with one group, the cells as samples, and each element of a cell a channel of its own. A cell is contiguous in both.
struct CellExtent {
    int64_t samples, channels, inner, groups;

    CellExtent(const Cells& cells, const Shape& x, int64_t count) {
        if (cells.groups > 0) {
            samples = x[0], channels = x[1], inner = product(x, 2, x.size()),
            groups = x[0] > 0 ? count / x[0] : 1;  // an empty part has no cells
        } else {
            samples = count, channels = product(x, cells.axis, x.size()), inner = 1, groups = 1;
        }
    }
    int64_t count() const { return samples * groups; }
    int64_t width() const { return channels / groups; }  // channels of a cell
    int64_t size() const { return width() * inner; }     // elements of a cell
    // Calls fn(offset, channel) for the elements of a cell, in order.
    template <class Fn>
    void for_each(int64_t cell, const Fn& fn) const {
        int64_t offset = cell * size();
        const int64_t first = cell % groups * width();
        for (int64_t c = first; c < first + width(); ++c) {
            for (int64_t i = 0; i < inner; ++i) fn(offset++, c);
        }
    }
};

template <class T>
double rstd_of(const View<const T>& stats, int64_t cell, double epsilon) {
    return 1 / std::sqrt(stats(1, cell) + epsilon);
}

}  // namespace

template <class T>
void reference(const CellStatsOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]);
    const auto stats = view<T>(args.outputs[0]);
    const CellExtent e(op.cells, x.shape, stats.shape[1]);
    parallel_for(args.threads, e.count(), [&](int64_t cell) {
        double sum = 0, squares = 0;
        e.for_each(cell, [&](int64_t i, int64_t) { sum += x[i]; });
        const double mean = sum / static_cast<double>(e.size());
        e.for_each(cell, [&](int64_t i, int64_t) { squares += (x[i] - mean) * (x[i] - mean); });
        stats(0, cell) = static_cast<T>(mean);
        stats(1, cell) = static_cast<T>(squares / static_cast<double>(e.size()));
    });
}

template <class T>
void reference(const CellNormalizeOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]), stats = const_view<T>(args.inputs[1]);
    const auto gamma = const_view<T>(args.inputs[2]), beta = const_view<T>(args.inputs[3]);
    const auto y = view<T>(args.outputs[0]);
    const CellExtent e(op.cells, x.shape, stats.shape[1]);
    parallel_for(args.threads, e.count(), [&](int64_t cell) {
        const T mean = stats(0, cell), rstd = static_cast<T>(rstd_of(stats, cell, op.epsilon));
        e.for_each(cell, [&](int64_t i, int64_t c) { y[i] = (x[i] - mean) * rstd * gamma[c] + beta[c]; });
    });
}

template <class T>
void reference(const CellNormGradAffineOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]), dy = const_view<T>(args.inputs[1]), stats = const_view<T>(args.inputs[2]);
    const auto dgamma = view<T>(args.outputs[0]), dbeta = view<T>(args.outputs[1]);
    const CellExtent e(op.cells, x.shape, stats.shape[1]);
    parallel_for(args.threads, e.channels, [&](int64_t c) {
        double gamma_sum = 0, beta_sum = 0;
        for (int64_t n = 0; n < e.samples; ++n) {
            const int64_t cell = n * e.groups + c / e.width(), first = (n * e.channels + c) * e.inner;
            const double mean = stats(0, cell), rstd = rstd_of(stats, cell, op.epsilon);
            for (int64_t i = first; i < first + e.inner; ++i) {
                gamma_sum += dy[i] * (x[i] - mean) * rstd;
                beta_sum += dy[i];
            }
        }
        dgamma[c] = static_cast<T>(gamma_sum);
        dbeta[c] = static_cast<T>(beta_sum);
    });
}

template <class T>
void reference(const CellNormGradSumsOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]), dy = const_view<T>(args.inputs[1]), stats = const_view<T>(args.inputs[2]);
    const auto gamma = const_view<T>(args.inputs[3]);
    const auto sums = view<T>(args.outputs[0]);
    const CellExtent e(op.cells, x.shape, stats.shape[1]);
    parallel_for(args.threads, e.count(), [&](int64_t cell) {
        const double mean = stats(0, cell), rstd = rstd_of(stats, cell, op.epsilon);
        double plain = 0, weighted = 0;
        e.for_each(cell, [&](int64_t i, int64_t c) {
            const double term = static_cast<double>(gamma[c]) * dy[i];
            plain += term;
            weighted += term * (x[i] - mean) * rstd;
        });
        sums(0, cell) = static_cast<T>(plain);
        sums(1, cell) = static_cast<T>(weighted);
    });
}

template <class T>
void reference(const CellNormGradInputOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]), dy = const_view<T>(args.inputs[1]), stats = const_view<T>(args.inputs[2]);
    const auto gamma = const_view<T>(args.inputs[3]), sums = const_view<T>(args.inputs[4]);
    const auto dx = view<T>(args.outputs[0]);
    const CellExtent e(op.cells, x.shape, stats.shape[1]);
    parallel_for(args.threads, e.count(), [&](int64_t cell) {
        // The statistics and the sums are of whole cells, of which x may be a part.
        const double size = static_cast<double>(numel(x.global) / stats.global[1]);
        const double rstd64 = rstd_of(stats, cell, op.epsilon);
        // dx = rstd*(gamma*dy - sums0/size - xhat*sums1/size), with xhat = (x - mean)*rstd.
        const T mean = stats(0, cell), rstd = static_cast<T>(rstd64), shift = static_cast<T>(sums(0, cell) / size);
        const T slope = static_cast<T>(rstd64 * sums(1, cell) / size);
        e.for_each(cell, [&](int64_t i, int64_t c) { dx[i] = rstd * (gamma[c] * dy[i] - shift - (x[i] - mean) * slope); });
    });
}

template void reference<double>(const CellStatsOp&, const KernelArgs&);
template void reference<float>(const CellStatsOp&, const KernelArgs&);
template void reference<double>(const CellNormalizeOp&, const KernelArgs&);
template void reference<float>(const CellNormalizeOp&, const KernelArgs&);
template void reference<double>(const CellNormGradAffineOp&, const KernelArgs&);
template void reference<float>(const CellNormGradAffineOp&, const KernelArgs&);
template void reference<double>(const CellNormGradSumsOp&, const KernelArgs&);
template void reference<float>(const CellNormGradSumsOp&, const KernelArgs&);
template void reference<double>(const CellNormGradInputOp&, const KernelArgs&);
template void reference<float>(const CellNormGradInputOp&, const KernelArgs&);

}  // namespace convoy::ref
