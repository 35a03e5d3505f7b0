// Sums of many numbers into one, in an order that does not depend on the number of threads. Internal to this folder.
#pragma once

#include <array>

#include "kernels/reference/view.h"

namespace convoy::ref {

// The sum of fn(begin, end), which returns the (double) sum over its range, over [0, count). The ranges are always the same ones, so the result
// is the same to the bit for every number of threads.
template <class Fn>
double fixed_order_sum(int threads, int64_t count, const Fn& fn) {
    constexpr int64_t kParts = 64;
    std::array<double, kParts> partial{};
    // Below that a part is not worth a thread.
    constexpr int64_t kGrain = 1024;
    const int64_t parts = std::clamp<int64_t>(count / kGrain, 1, kParts);
    parallel_for(threads, parts, [&](int64_t i) {
        const auto range = part_of(count, parts, i);
        partial[static_cast<size_t>(i)] = fn(range.begin, range.end);
    });
    double sum = 0;
    for (const double p : partial) sum += p;
    return sum;
}

}  // namespace convoy::ref
