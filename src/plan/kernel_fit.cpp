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

void KernelFit::add(std::unordered_map<std::string, Family>& families, const std::string& name, const KernelSample& sample) {
    families[name].entries.push_back(
        {sample.shape, place_of(sample.shape), sample.seconds, std::log(sample.seconds / roofline_(sample.shape))});
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
        add(families_, s.shape.family, s);
        add(stems_, stem(s.shape.family), s);
    }
    for (auto* families : {&families_, &stems_})
        for (auto& [name, family] : *families) {
            std::vector<double> off_by;
            for (size_t i = 0; i < family.entries.size() && family.entries.size() > 1; ++i)
                off_by.push_back(std::abs(std::expm1(predict(family.entries, family.entries[i].place, i) - family.entries[i].ratio)));
            std::sort(off_by.begin(), off_by.end());
            family.error = off_by.empty() ? 0.3 : off_by[off_by.size() / 2];
        }
}

// The mean of the four nearest, weighted by one over the squared distance.
double KernelFit::predict(const std::vector<Entry>& entries, const std::vector<double>& place, size_t without) {
    constexpr size_t kNearest = 4;
    std::vector<std::pair<double, double>> near;  // distance, ratio
    for (size_t i = 0; i < entries.size(); ++i)
        if (i != without) near.emplace_back(distance(entries[i].place, place), entries[i].ratio);
    const size_t count = std::min(kNearest, near.size());
    std::partial_sort(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(count), near.end());
    double sum = 0, weights = 0;
    for (size_t i = 0; i < count; ++i) {
        const double weight = 1 / (near[i].first + 1e-3);
        sum += weight * near[i].second;
        weights += weight;
    }
    return sum / weights;
}

KernelFit::Answer KernelFit::find(const KernelShape& shape) const {
    constexpr double kRepeats = 0.03;  // how well a measurement repeats
    const auto place = place_of(shape);
    if (const auto at = families_.find(shape.family); at != families_.end()) {
        for (const Entry& e : at->second.entries)
            if (e.shape == shape) return {e.seconds, kRepeats, true, true};
        const double ratio = predict(at->second.entries, place, at->second.entries.size());
        return {roofline_(shape) * std::exp(ratio), at->second.error, false, true};
    }
    if (const auto at = stems_.find(stem(shape.family)); at != stems_.end()) {
        const double ratio = predict(at->second.entries, place, at->second.entries.size());
        return {roofline_(shape) * std::exp(ratio), std::max(0.2, at->second.error), false, true};
    }
    return {};
}

}  // namespace convoy
