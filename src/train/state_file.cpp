#include "train/state_file.h"

#include <algorithm>

#include "base/error.h"
#include "data/safetensors.h"

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

}  // namespace

void load_state_file(const std::filesystem::path& path, const std::string& what, StateScope scope, State& state,
                     const std::vector<std::string>& spare) {
    const SafetensorsFile file(path);
    std::vector<std::string> names, missing, unexpected, other;
    for (const StateSpec& spec : state.specs()) {
        if (scope == StateScope::Model && spec.kind == StateKind::Slot) continue;
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
            std::any_of(spare.begin(), spare.end(), [&](const std::string& prefix) { return name.rfind(prefix, 0) == 0; });
        if (!state.contains(name) && !begins_spare && !(scope == StateScope::Model && is_spare(name))) unexpected.push_back(name);
    }
    require(missing.empty() && unexpected.empty() && other.empty(), "{} does not belong to this model:{}{}{}", what,
            listed("missing", missing), listed("unexpected", unexpected), listed("of another shape", other));
    for (const std::string& name : names) state.write(name, file.read(name));
}

}  // namespace convoy
