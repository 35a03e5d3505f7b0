#include "plan/term_fit.h"

#include <cmath>

#include <gtest/gtest.h>

namespace convoy {
namespace {

TEST(TermFit, FindsTheRates) {
    const Terms rates{1e-6, 0, 3e-9, 5e-12};
    std::vector<Terms> terms;
    std::vector<double> seconds;
    for (int i = 1; i <= 12; ++i) {
        const double n = i;
        terms.push_back({1, n, 1e3 * std::sqrt(n), 1e6 * n * n});
        seconds.push_back(sum_of(terms.back(), rates));
    }
    const auto found = fit_terms(terms, seconds);
    for (size_t i = 0; i < terms.size(); ++i) EXPECT_NEAR(sum_of(terms[i], found), seconds[i], 0.01 * seconds[i]);
}

TEST(TermFit, NoRateIsNegative) {
    const std::vector<Terms> terms{{1, 1}, {1, 2}, {1, 3}};
    for (const double rate : fit_terms(terms, {3, 2, 1})) EXPECT_GE(rate, 0);
}

TEST(TermFit, ATermThatIsAlwaysZeroHasNoRate) {
    const auto rates = fit_terms({{1, 0}, {2, 0}}, {2, 4});
    EXPECT_NEAR(rates[0], 2, 1e-6);
    EXPECT_EQ(rates[1], 0);
}

}  // namespace
}  // namespace convoy
