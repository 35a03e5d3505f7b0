#include "kernels/cuda/engine_cache.h"

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"

namespace convoy::cuda {

namespace {

// For another process's turn, which is one convolution's. Some engines are compiled when they are first asked for, which takes seconds each. Ranks wait for each
// other for longer.
constexpr std::chrono::seconds kPatience{60};

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

EngineCache::EngineCache(std::string path) : path_(std::move(path)) { read(); }

// What is known already stays: a run keeps to what it has chosen.
void EngineCache::read() {
    std::error_code ignored;
    if (path_.empty() || !std::filesystem::exists(path_, ignored)) return;
    try {
        engines_.merge(parse(read_file(path_)));
    } catch (const Error&) {  // it is written anew
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
    } catch (const std::exception& e) {
        warn_once("engine cache",
                  "what was found out about the GPU's engines is measured again in the next run, because it cannot be kept: {}", e.what());
        path_.clear();  // not to be tried again
    }
}

EngineCache::Turn::Turn(EngineCache& cache) : cache_(cache), lock_(cache.turns_) {
    std::string path;
    {
        const std::lock_guard lock(cache_.mutex_);
        if (++cache_.turns_taken_ > 1) return;
        if (!cache_.waited_in_vain_) path = cache_.path_;
    }
    if (path.empty()) return;
    try {
        of_processes_.emplace(path + ".turn", kPatience);
    } catch (const Error&) {  // writing says so
    }
    const std::lock_guard lock(cache_.mutex_);
    cache_.waited_in_vain_ = of_processes_ && !of_processes_->held();
    if (cache_.waited_in_vain_)
        warn_once("engine turn", "another process has held {}.turn for a minute; engines are chosen without waiting for it", path);
    cache_.read();
}

EngineCache::Turn::~Turn() {
    const std::lock_guard lock(cache_.mutex_);
    if (--cache_.turns_taken_ == 0) cache_.write();
}

}  // namespace convoy::cuda
