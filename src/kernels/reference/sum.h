// Sums of many numbers into one, in an order that does not depend on the number of threads. Internal to this folder.
#pragma once

#include <array>

#include "kernels/reference/view.h"

namespace convoy::ref {

// The sum of fn(begin, end), which returns the (double) sum over its range, over [0, count). The ranges, no smaller than `grain` except the
// only one, are always the same ones, so the result is the same to the bit for every number of threads.
template <class Fn>
double fixed_order_sum(int threads, int64_t count, int64_t grain, const Fn& fn) {
    constexpr int64_t kParts = 64;
    std::array<double, kParts> partial{};
    const int64_t parts = std::clamp<int64_t>(count / std::max<int64_t>(grain, 1), 1, kParts);
    parallel_for(threads, parts, [&](int64_t i) {
        const auto range = part_of(count, parts, i);
        partial[static_cast<size_t>(i)] = fn(range.begin, range.end);
    });
    double sum = 0;
    for (const double p : partial) sum += p;
    return sum;
}

}  // namespace convoy::ref
