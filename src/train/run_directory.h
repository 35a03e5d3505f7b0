// The directory of a run: config.json, metrics.jsonl, checkpoints/ and, for reports, placement.json, memory.json and trace.json. One process at a time may train in it.
#pragma once

#include <filesystem>

namespace convoy {

class RunDirectory {
  public:
    // Creates the directory as needed, makes sure that it can be written, and locks it until destruction (or the end of the process, however it
    // ends). Error when it cannot be written, or another process trains in it.
    explicit RunDirectory(const std::filesystem::path& path);
    ~RunDirectory();
    RunDirectory(const RunDirectory&) = delete;
    RunDirectory& operator=(const RunDirectory&) = delete;

    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
    int lock_ = -1;
};

}  // namespace convoy
