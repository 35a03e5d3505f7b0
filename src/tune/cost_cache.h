// A CostTable kept in the user's cache directory: one file for each backend and number of threads on each kind of machine. Many processes may read and write
// it at once: it is replaced in one step, under a lock, by what it holds and what is new together.
#pragma once

#include <filesystem>
#include <string>

#include "tune/cost_table.h"

namespace convoy {

// What measurements hold for.
struct CostSetting {
    std::string backend;  // "cpu"
    int threads = 1;
    std::string machine;  // processor and libraries, with versions: "AMD EPYC 9R14; oneDNN 2.6.3; convoy 0.1.0"
};

// "kernels-cpu-2-1a2b3c4d.json" in the cache directory. Error when there is no such directory.
std::filesystem::path cache_file(const CostSetting& setting);

class CostCache {
  public:
    CostCache(std::filesystem::path path, CostSetting setting) : path_(std::move(path)), setting_(std::move(setting)) {}

    const std::filesystem::path& path() const { return path_; }
    // What it holds; nothing when there is no file. One that cannot be read, is damaged or comes from another machine is ignored, and one line on standard error
    // says so.
    CostTable read() const;
    // Adds what is new to the file and gives back all that it holds then. What is in the file already stays. A file that would be ignored is replaced. Error
    // when it cannot be written.
    CostTable add(const CostTable& table) const;

  private:
    CostTable parse(const std::string& text) const;

    std::filesystem::path path_;
    CostSetting setting_;
};

}  // namespace convoy
