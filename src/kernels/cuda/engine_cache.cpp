#include "kernels/cuda/engine_cache.h"

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace convoy::cuda {

namespace {

std::string default_path() {
    try {
        return cache_directory() / "engines.json";
    } catch (const Error&) {
        return "";
    }
}

}  // namespace

EngineCache& EngineCache::shared() {
    static EngineCache cache(default_path());
    return cache;
}

EngineCache::EngineCache(std::string path) : path_(std::move(path)) {
    std::error_code ignored;
    if (path_.empty() || !std::filesystem::exists(path_, ignored)) return;
    try {
        engines_ = Json::parse(read_file(path_)).get<std::map<std::string, std::string>>();
    } catch (const std::exception&) {
        engines_.clear();  // it is written anew
    }
}

std::optional<std::string> EngineCache::find(const std::string& problem) {
    const std::lock_guard lock(mutex_);
    const auto found = engines_.find(problem);
    return found == engines_.end() ? std::nullopt : std::optional<std::string>(found->second);
}

void EngineCache::store(const std::string& problem, const std::string& engine) {
    const std::lock_guard lock(mutex_);
    engines_[problem] = engine;
    if (path_.empty()) return;
    try {
        std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
        write_file(path_, Json(engines_).dump(1));
    } catch (const std::exception&) {
        path_.clear();  // not to be tried again
    }
}

}  // namespace convoy::cuda
