#include "plan/kernel_fit.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <tuple>

namespace convoy {

namespace {

std::vector<double> place_of(const KernelShape& shape) {
    std::vector<double> place{std::log2(1 + shape.work), std::log2(1 + shape.bytes)};
    for (const double s : shape.sizes) place.push_back(std::log2(1 + s));
    return place;
}

// What a kernel does for every operation, every element of its first input and of its first output, and of what else it reads and writes (weights, which
// some algorithms transform at every call; in numbers of 4 bytes); and once.
Terms terms_of(const KernelShape& shape) {
    if (shape.sizes.size() < 6) return {1, shape.work, shape.bytes};
    const auto elements = [&](size_t first) { return shape.sizes[first] * shape.sizes[first + 1] * shape.sizes[first + 2]; };
    const double in = elements(0), out = elements(3);
    return {1, shape.work, in, out, std::max(shape.bytes / 4 - in - out, 0.0)};
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

}  // namespace

// The ops without their attributes and algorithm: what is asked when a family was never measured.
std::string KernelFit::stem(const std::string& family) {
    std::string text;
    bool first = true;
    for (const char c : family.substr(0, family.find(','))) {  // the first word of each op
        if (c == '+')
            first = true;
        else if (c == ' ' && !text.empty() && text.back() != '+')
            first = false;
        if (c == '+' || (first && c != ' ')) text += c;
    }
    return text;
}

double KernelFit::base(const Family& family, const KernelShape& shape) const {
    constexpr double kLeast = 1e-9;
    return family.rates ? std::max(sum_of(terms_of(shape), *family.rates), kLeast) : roofline_(shape);
}

void KernelFit::fit(Family& family) const {
    constexpr size_t kEnough = 6;  // entries
    std::vector<Terms> terms;
    std::vector<double> seconds;
    bool alike = true;
    for (const Entry& e : family.entries) {
        terms.push_back(terms_of(e.shape));
        seconds.push_back(e.seconds);
        alike = alike && e.shape.sizes.size() == family.entries[0].shape.sizes.size();
    }
    family.rates.reset();
    if (alike && terms.size() >= kEnough) family.rates = fit_terms(terms, seconds);
    family.ratios.clear();
    for (const Entry& e : family.entries) family.ratios.push_back(std::log(e.seconds / base(family, e.shape)));
}

double KernelFit::left_out(const Family& family, size_t entry) const {
    Family others;
    for (size_t i = 0; i < family.entries.size(); ++i)
        if (i != entry) others.entries.push_back(family.entries[i]);
    fit(others);
    return predict(others, family.entries[entry].shape);
}

KernelFit::KernelFit(const KernelTable& table, int threads, int busy, Roofline roofline) : roofline_(std::move(roofline)) {
    // For each family the nearest setting that it was measured in.
    using Setting = std::tuple<int, int>;
    const auto off = [&](const KernelSample& s) { return Setting{std::abs(s.threads - threads), std::abs(s.busy - busy)}; };
    std::map<std::string, Setting> nearest;
    for (const KernelSample& s : table) {
        const auto [at, fresh] = nearest.emplace(s.shape.family, off(s));
        if (!fresh) at->second = std::min(at->second, off(s));
    }
    for (const KernelSample& s : table) {
        if (off(s) != nearest.at(s.shape.family)) continue;
        for (auto& [families, name] : {std::pair{&families_, s.shape.family}, std::pair{&stems_, stem(s.shape.family)}})
            (*families)[name].entries.push_back({s.shape, place_of(s.shape), s.seconds});
    }
    for (auto* families : {&families_, &stems_})
        for (auto& [name, family] : *families) {
            fit(family);
            std::vector<double> off_by;
            constexpr size_t kAsked = 32;  // of many entries, as many as tell the median
            const size_t count = family.entries.size(), every = std::max<size_t>(count / kAsked, 1);
            for (size_t i = 0; i < count && count > 1; i += every)
                off_by.push_back(std::abs(left_out(family, i) / family.entries[i].seconds - 1));
            std::sort(off_by.begin(), off_by.end());
            family.error = off_by.empty() ? 0.3 : off_by[off_by.size() / 2];
        }
}

// Corrected by the mean of the four nearest, weighted by one over the squared distance.
double KernelFit::predict(const Family& family, const KernelShape& shape) const {
    constexpr size_t kNearest = 4;
    const auto place = place_of(shape);
    std::vector<std::pair<double, double>> near;  // distance, ratio
    for (size_t i = 0; i < family.entries.size(); ++i) near.emplace_back(distance(family.entries[i].place, place), family.ratios[i]);
    const size_t count = std::min(kNearest, near.size());
    std::partial_sort(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(count), near.end());
    double sum = 0, weights = 0;
    for (size_t i = 0; i < count; ++i) {
        const double weight = 1 / (near[i].first + 1e-3);
        sum += weight * near[i].second;
        weights += weight;
    }
    return base(family, shape) * std::exp(sum / weights);
}

KernelFit::Answer KernelFit::find(const KernelShape& shape) const {
    constexpr double kRepeats = 0.03;  // how well a measurement repeats
    if (const auto at = families_.find(shape.family); at != families_.end()) {
        for (const Entry& e : at->second.entries)
            if (e.shape == shape) return {e.seconds, kRepeats, true, true};
        return {predict(at->second, shape), at->second.error, false, true};
    }
    if (const auto at = stems_.find(stem(shape.family)); at != stems_.end())
        return {predict(at->second, shape), std::max(0.2, at->second.error), false, true};
    return {};
}

}  // namespace convoy
