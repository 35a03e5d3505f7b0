#include "exec/energy.h"

#include <algorithm>

#include "exec/share.h"

namespace convoy {

namespace {

constexpr int64_t kIdentityBytes = 64;

// Whether no rank before this one has the same GPU.
bool first_of_gpu(const std::string& identity, Link& link) {
    const auto ranks = static_cast<size_t>(link.size());
    std::vector<char> all(ranks * kIdentityBytes), own(kIdentityBytes);
    std::copy_n(identity.data(), std::min<size_t>(identity.size(), kIdentityBytes), own.data());
    const std::vector<int64_t> counts(ranks, kIdentityBytes);
    link.everyone().all_gather(reinterpret_cast<const std::byte*>(own.data()), reinterpret_cast<std::byte*>(all.data()), counts, DType::u8);
    for (Rank r = 0; r < link.rank(); ++r)
        if (std::equal(own.begin(), own.end(), all.begin() + r * kIdentityBytes)) return false;
    return true;
}

double sum(double value, Link* link) {
    if (link) link->everyone().all_reduce(reinterpret_cast<std::byte*>(&value), 1, DType::f64);
    return value;
}

}  // namespace

EnergyCount::EnergyCount(const Backend& backend, Link* link) : backend_(backend), link_(link) {
    const auto device = backend.endpoint();
    if (link) reads_ = first_of_gpu(device ? device->identity : "", *link);
    const Energy now = backend.energy();
    available_ = sum(now.joules ? 0 : 1, link) == 0;
    last_ = now.joules.value_or(0);
    source_ = share_text(link, 0, available_ || !now.joules ? now.source : "another rank has no figure of its GPU");
}

std::optional<double> EnergyCount::take() {
    if (!available_) return std::nullopt;
    const double now = backend_.energy().joules.value_or(last_);
    const double used = reads_ ? now - last_ : 0;
    last_ = now;
    return sum(used, link_);
}

}  // namespace convoy
