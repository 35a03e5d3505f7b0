// Which engine was the fastest for a problem, remembered from run to run: measuring takes time, and two measurements may disagree, while the same
// engine gives the same bits. Many processes may read and write the file at once.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/file.h"

namespace convoy::cuda {

class EngineCache {
  public:
    // The process's, kept as engines.json in the cache directory (base/file.h). A file that cannot be read or written is none.
    static EngineCache& shared();
    explicit EngineCache(std::string path);

    std::optional<std::string> find(const std::string& problem);
    // Adds it to the file; what other processes have stored there meanwhile stays, and is found from then on.
    void store(const std::string& problem, const std::string& engine);

    // A turn to measure, one at a time, of all threads of all processes that share the file: ranks may be either, and share a GPU. Whoever had to wait finds what
    // the others have chosen, and need not measure it, so ranks choose alike. What is stored during a turn is written when it ends. A turn may be taken
    // within a turn. A process that keeps its turn for more than a minute is not waited for any more.
    class Turn {
      public:
        explicit Turn(EngineCache& cache);
        ~Turn();
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;

      private:
        EngineCache& cache_;
        std::unique_lock<std::recursive_mutex> lock_;
        std::optional<FileLock> of_processes_;  // of the outermost
    };

  private:
    using Engines = std::map<std::string, std::string>;
    static Engines parse(const std::string& text);
    void read();
    void write();

    std::string path_;
    std::recursive_mutex turns_;
    std::mutex mutex_;  // of all below
    int turns_taken_ = 0;
    bool waited_in_vain_ = false;  // for another process's turn: not to be done again
    Engines engines_, unwritten_;
};

}  // namespace convoy::cuda
