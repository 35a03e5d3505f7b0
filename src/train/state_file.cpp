#include "train/state_file.h"

#include <algorithm>

#include "base/error.h"
#include "data/safetensors.h"
#include "program/plan.h"

namespace convoy {

namespace {

constexpr size_t kMostListed = 4;

bool has_suffix(std::string_view name, std::string_view suffix) {
    return name.size() >= suffix.size() && name.substr(name.size() - suffix.size()) == suffix;
}

// Tensors that files of weights may have and a model has no use for: optimizer slots, and a counter that PyTorch keeps.
bool is_spare(std::string_view name) { return name.rfind("optimizer.", 0) == 0 || has_suffix(name, ".num_batches_tracked"); }

std::string listed(const char* title, const std::vector<std::string>& parts) {
    if (parts.empty()) return "";
    std::string text = fmt::format("\n  {}: ", title);
    for (size_t i = 0; i < parts.size() && i < kMostListed; ++i) text += (i ? ", " : "") + parts[i];
    if (parts.size() > kMostListed) text += fmt::format(" and {} more", parts.size() - kMostListed);
    return text;
}

// A pattern that means nothing is most likely a wrong one.
void require_used(const std::vector<std::string>& patterns, const SafetensorsFile& file, const State& state, const std::string& what) {
    for (const std::string& pattern : patterns) {
        const auto fits = [&](const std::string& name) { return matches(pattern, name); };
        const auto& specs = state.specs();
        require(std::any_of(specs.begin(), specs.end(), [&](const StateSpec& spec) { return fits(spec.name); }) ||
                    std::any_of(file.names().begin(), file.names().end(), fits),
                "neither the model nor {} has a tensor that matches \"{}\"; names are like \"{}\"", what, pattern,
                specs.empty() ? "" : specs.back().name);
    }
}

}  // namespace

void load_state_file(const std::filesystem::path& path, const std::string& what, StateScope scope, State& state,
                     const LoadOptions& options) {
    const SafetensorsFile file(path);
    require_used(options.skip, file, state, what);
    const auto skipped = [&](const std::string& name) {
        return std::any_of(options.skip.begin(), options.skip.end(), [&](const std::string& pattern) { return matches(pattern, name); });
    };
    std::vector<std::string> names, missing, unexpected, other;
    for (const StateSpec& spec : state.specs()) {
        if (scope == StateScope::Model && spec.kind == StateKind::Slot) continue;
        if (skipped(spec.name)) continue;
        names.push_back(spec.name);
        if (!file.contains(spec.name))
            missing.push_back(spec.name);
        else if (file.shape(spec.name) != spec.shape)
            other.push_back(fmt::format("{} ({}, the model has {})", spec.name, to_string(file.shape(spec.name)), to_string(spec.shape)));
        else
            require(is_floating(file.dtype(spec.name)), "{}: tensor \"{}\" holds {}, expected floating point numbers", what, spec.name,
                    name_of(file.dtype(spec.name)));
    }
    for (const std::string& name : file.names()) {
        const bool begins_spare =
            std::any_of(options.spare.begin(), options.spare.end(), [&](const std::string& prefix) { return name.rfind(prefix, 0) == 0; });
        if (!state.contains(name) && !skipped(name) && !begins_spare && !(scope == StateScope::Model && is_spare(name)))
            unexpected.push_back(name);
    }
    require(missing.empty() && unexpected.empty() && other.empty(), "{} does not belong to this model:{}{}{}", what,
            listed("missing", missing), listed("unexpected", unexpected), listed("of another shape", other));
    require(!names.empty(), "{}: every tensor of the model is to be left out", what);
    for (const std::string& name : names) state.write(name, file.read(name));
}

}  // namespace convoy
