// Seconds as a sum of terms, each a number of a shape times a rate that is not negative: least squares of the relative errors.
#pragma once

#include <array>
#include <vector>

namespace convoy {

using Terms = std::array<double, 5>;

// The rates, one for each term. Seconds are above 0.
Terms fit_terms(const std::vector<Terms>& terms, const std::vector<double>& seconds);
double sum_of(const Terms& terms, const Terms& rates);

}  // namespace convoy
