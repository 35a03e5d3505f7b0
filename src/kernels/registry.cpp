#include "kernels/registry.h"

#include "base/error.h"
#include "base/suggest.h"

namespace convoy {

namespace {

std::vector<BackendEntry> entries() { return {reference_entry(), cpu_entry(), cuda_entry()}; }

}  // namespace

std::unique_ptr<Backend> make_backend(const std::string& name, const BackendOptions& options) {
    std::vector<std::string> known;
    for (const auto& entry : entries()) {
        if (entry.name == name) return entry.make(options);
        known.push_back(entry.name);
    }
    fail("unknown backend \"{}\", expected one of {}{}", name, fmt::join(known, ", "), did_you_mean(name, known));
}

std::vector<std::string> backend_names() {
    std::vector<std::string> names;
    for (const auto& entry : entries()) names.push_back(entry.name);
    return names;
}

std::vector<BackendStatus> backend_statuses() {
    std::vector<BackendStatus> statuses;
    for (const auto& entry : entries()) statuses.push_back(entry.status());
    return statuses;
}

}  // namespace convoy
