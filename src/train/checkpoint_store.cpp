// The checkpoints of a run: writing one whole or not at all, keeping the newest, finding the last good one.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <cstdio>

#include "base/error.h"
#include "base/file.h"
#include "train/checkpoint_files.h"

namespace convoy {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-", kTemporary = ".tmp-", kTrash = ".trash-";

bool has_prefix(std::string_view name, std::string_view prefix) { return name.substr(0, prefix.size()) == prefix; }

// The step in a checkpoint's name; nothing for any other name.
std::optional<int64_t> step_of(const std::string& name) {
    if (!has_prefix(name, kPrefix) || name.size() < kPrefix.size() + 8) return std::nullopt;
    int64_t step = 0;
    const auto [end, failed] = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
    if (failed != std::errc{} || end != name.data() + name.size()) return std::nullopt;
    return step;
}

std::optional<int64_t> step_of(const fs::path& path) { return step_of(path.filename().string()); }

template <class T>
bool all_finite(std::span<const T> values) {
    return std::all_of(values.begin(), values.end(), [](T v) { return std::isfinite(v); });
}

// Moves `from` to `to`. When there is a checkpoint already (a damaged one, or one taken before the validation of its epoch) they change places,
// in one step where the file system can.
void move_into_place(const fs::path& from, const fs::path& to) {
    if (::rename(from.c_str(), to.c_str()) == 0) return;
    require(errno == ENOTEMPTY || errno == EEXIST, "cannot rename {} to {}: {}", from.string(), to.string(), std::strerror(errno));
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return;
    const fs::path away = to.parent_path() / (std::string(kTrash) + to.filename().string());
    fs::rename(to, away);
    fs::rename(from, to);
}

}  // namespace

std::vector<NamedTensor> snapshot(const State& state, bool keep) {
    std::vector<NamedTensor> tensors;
    for (const StateSpec& spec : state.specs()) {
        Tensor tensor = state.read(spec.name);
        const bool finite = tensor.dtype() == DType::f64 ? all_finite<double>(tensor.as<double>()) : all_finite<float>(tensor.as<float>());
        if (!finite) throw NonFiniteError(fmt::format("\"{}\" holds numbers that are not finite", spec.name));
        if (keep) tensors.push_back({spec.name, std::move(tensor)});
    }
    return tensors;
}

CheckpointStore::CheckpointStore(const fs::path& run_dir, int keep) : directory_(run_dir / "checkpoints"), keep_(keep) {
    CONVOY_CHECK(keep >= 1, "{} checkpoints to keep", keep);
}

std::vector<fs::path> CheckpointStore::list() const {
    std::vector<fs::path> found;
    if (!fs::exists(directory_)) return found;
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(directory_, failed))
        if (step_of(entry.path())) found.push_back(entry.path());
    require(!failed, "cannot read {}: {}", directory_.string(), failed.message());
    std::sort(found.begin(), found.end(), [](const fs::path& a, const fs::path& b) { return step_of(a) > step_of(b); });
    return found;
}

std::optional<fs::path> CheckpointStore::latest(const std::function<void(const std::string&)>& warn) const {
    std::vector<std::string> damages;
    for (const fs::path& path : list()) {
        try {
            read_checkpoint(path);
        } catch (const Error& error) {
            damages.emplace_back(error.what());
            continue;
        }
        for (const std::string& damage : damages) warn(fmt::format("{}; using {} instead", damage, path.string()));
        return path;
    }
    require(damages.empty(), "none of the {} checkpoints in {} can be used: {}", damages.size(), directory_.string(),
            damages.empty() ? "" : damages[0]);
    return std::nullopt;
}

void CheckpointStore::remove(const fs::path& path) {
    // What cannot be removed now is tried again at the next write; it is no reason to end a run.
    std::error_code ignored;
    fs::path away = path;
    if (step_of(path)) {
        away = directory_ / (std::string(kTrash) + path.filename().string());
        fs::remove_all(away, ignored);
        fs::rename(path, away, ignored);
    }
    fs::remove_all(away, ignored);
}

void CheckpointStore::clean() {
    std::vector<fs::path> leftovers;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(directory_, ignored)) {
        const std::string name = entry.path().filename().string();
        if (has_prefix(name, kTemporary) || has_prefix(name, kTrash) || has_prefix(name, ".probe")) leftovers.push_back(entry.path());
    }
    for (const fs::path& path : leftovers) remove(path);
}

fs::path CheckpointStore::write(const Checkpoint& checkpoint, const std::vector<NamedTensor>& tensors) {
    const int64_t step = checkpoint.progress.step;
    const std::string name = checkpoint_name(step);
    const fs::path temporary = directory_ / (std::string(kTemporary) + name), path = directory_ / name;
    clean();
    try {
        fs::create_directories(temporary);
        write_safetensors(temporary / kStateFile, tensors, {{"format", "pt"}});
        write_checkpoint_json(temporary, checkpoint);
        move_into_place(temporary, path);
        sync_directory(directory_);
    } catch (const std::exception& error) {
        remove(temporary);
        const auto older = list();
        fail("the checkpoint of step {} could not be written: {}; {}", step, error.what(),
             older.empty() ? "there is no older one" : fmt::format("the last good one is {}", older[0].string()));
    }
    int kept = 0;
    for (const fs::path& other : list())
        if (step_of(other) > step || kept++ >= keep_) remove(other);
    clean();
    return path;
}

}  // namespace convoy
