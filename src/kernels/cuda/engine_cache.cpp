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
        engines_ = parse(read_file(path_));
    } catch (const Error&) {
        engines_.clear();
    }
}

EngineCache::Engines EngineCache::parse(const std::string& text) {
    try {
        return Json::parse(text).get<Engines>();
    } catch (const std::exception&) {
        return {};  // it is written anew
    }
}

std::optional<std::string> EngineCache::find(const std::string& problem) {
    const std::lock_guard lock(mutex_);
    const auto found = engines_.find(problem);
    return found == engines_.end() ? std::nullopt : std::optional<std::string>(found->second);
}

void EngineCache::store(const std::string& problem, const std::string& engine) {
    const std::lock_guard lock(mutex_);
    engines_[problem] = unwritten_[problem] = engine;
    if (turns_taken_ == 0) write();
}

void EngineCache::write() {
    if (path_.empty() || unwritten_.empty()) return;
    try {
        update_file(path_, [&](const std::optional<std::string>& held) {
            Engines all = held ? parse(*held) : Engines();
            engines_.insert(all.begin(), all.end());
            for (const auto& [problem, engine] : unwritten_) all[problem] = engine;
            return Json(all).dump(1);
        });
        unwritten_.clear();
    } catch (const std::exception&) {
        path_.clear();  // not to be tried again
    }
}

EngineCache::Turn::Turn(EngineCache& cache) : cache_(cache), lock_(cache.turns_) {
    const std::lock_guard lock(cache_.mutex_);
    ++cache_.turns_taken_;
}

EngineCache::Turn::~Turn() {
    const std::lock_guard lock(cache_.mutex_);
    if (--cache_.turns_taken_ == 0) cache_.write();
}

}  // namespace convoy::cuda
