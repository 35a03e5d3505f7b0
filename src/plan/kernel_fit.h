// Seconds of kernels from a table of measurements: the entry itself, or the nearest shapes of the same family.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "plan/measured.h"

namespace convoy {

// A table for one setting: so many threads, so many ranks busy. Of other settings what is missing is taken, the nearest first.
class KernelFit {
  public:
    // What the roofline says of a shape; fits are of the ratio to it.
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
        double seconds, ratio;      // to the roofline, as a logarithm
    };
    struct Family {
        std::vector<Entry> entries;
        double error = 0;  // the median of what leaving one out mispredicts
    };
    static std::string stem(const std::string& family);
    static double predict(const std::vector<Entry>& entries, const std::vector<double>& place, size_t without);
    void add(std::unordered_map<std::string, Family>& families, const std::string& name, const KernelSample& sample);

    Roofline roofline_;
    std::unordered_map<std::string, Family> families_, stems_;
};

}  // namespace convoy
