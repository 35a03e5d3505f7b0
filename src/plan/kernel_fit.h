// Seconds of kernels from a table of measurements: the entry itself, or a sum of terms (operations, elements read and written) that is fitted to the
// family, corrected by how the nearest shapes differ from it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "plan/measured.h"
#include "plan/term_fit.h"

namespace convoy {

// A table for one setting: so many threads, so many ranks busy. Of other settings what is missing is taken, the nearest first.
class KernelFit {
  public:
    // What the roofline says of a shape, for families with too few entries to fit terms to.
    using Roofline = std::function<double(const KernelShape&)>;
    KernelFit(const KernelTable& table, int threads, int busy, Roofline roofline);

    struct Answer {
        double seconds = 0, error = 0;
        bool exact = false, found = false;
    };
    Answer find(const KernelShape& shape) const;

  private:
    struct Entry {
        KernelShape shape;
        std::vector<double> place;  // logarithms of its numbers
        double seconds;
    };
    struct Family {
        std::vector<Entry> entries;
        std::optional<Terms> rates;  // none: the roofline
        std::vector<double> ratios;  // of every entry to that, as logarithms
        double error = 0;            // the median of what leaving one out mispredicts
    };
    static std::string stem(const std::string& family);
    void fit(Family& family) const;
    double base(const Family& family, const KernelShape& shape) const;
    double predict(const Family& family, const KernelShape& shape) const;
    // What the others say of an entry.
    double left_out(const Family& family, size_t entry) const;

    Roofline roofline_;
    std::unordered_map<std::string, Family> families_, stems_;
};

}  // namespace convoy
