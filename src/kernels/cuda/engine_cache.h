// Which engine was the fastest for a problem, remembered from run to run: measuring takes time, and two measurements may disagree, while the same
// engine gives the same bits.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace convoy::cuda {

class EngineCache {
  public:
    // The process's, kept as engines.json in the cache directory (base/file.h). A file that cannot be read or written is none.
    static EngineCache& shared();
    explicit EngineCache(std::string path);

    std::optional<std::string> find(const std::string& problem);
    void store(const std::string& problem, const std::string& engine);

  private:
    std::string path_;
    std::mutex mutex_;  // ranks may be threads
    std::map<std::string, std::string> engines_;
};

}  // namespace convoy::cuda
