#include "plan/term_fit.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace convoy {

// Normal equations of the relative errors, solved term by term, each held at 0 from below.
Terms fit_terms(const std::vector<Terms>& terms, const std::vector<double>& seconds) {
    CONVOY_CHECK(!terms.empty() && terms.size() == seconds.size(), "{} samples have {} times", terms.size(), seconds.size());
    constexpr size_t kTerms = std::tuple_size_v<Terms>;
    Terms scale{}, right{}, rates{};
    for (size_t i = 0; i < terms.size(); ++i)
        for (size_t j = 0; j < kTerms; ++j) scale[j] += terms[i][j] / seconds[i] / static_cast<double>(terms.size());
    std::array<Terms, kTerms> products{};
    for (size_t i = 0; i < terms.size(); ++i) {
        const auto relative = [&](size_t j) { return scale[j] > 0 ? terms[i][j] / seconds[i] / scale[j] : 0; };
        for (size_t j = 0; j < kTerms; ++j) {
            right[j] += relative(j);
            for (size_t k = 0; k < kTerms; ++k) products[j][k] += relative(j) * relative(k);
        }
    }
    constexpr int kRounds = 2000;
    constexpr double kSettled = 1e-9;
    double moved = 1;
    for (int round = 0; round < kRounds && moved > kSettled; ++round) {
        moved = 0;
        for (size_t j = 0; j < kTerms; ++j) {
            if (products[j][j] <= 0) continue;
            double off = right[j];
            for (size_t k = 0; k < kTerms; ++k) off -= products[j][k] * rates[k];
            const double next = std::max(0.0, rates[j] + off / products[j][j]);
            moved = std::max(moved, std::abs(next - rates[j]));
            rates[j] = next;
        }
    }
    for (size_t j = 0; j < kTerms; ++j) rates[j] = scale[j] > 0 ? rates[j] / scale[j] : 0;
    return rates;
}

double sum_of(const Terms& terms, const Terms& rates) {
    double sum = 0;
    for (size_t j = 0; j < terms.size(); ++j) sum += terms[j] * rates[j];
    return sum;
}

}  // namespace convoy
