// metrics.jsonl of a run: one JSON object per line. Lines of steps ("kind": "step") and of epochs ("kind": "epoch").
//
//     kind, step, epoch (from 1), loss, accuracy, lr, samples_per_s, data_wait_s             of the steps since the last such line
//     kind, step, epoch, loss, accuracy, test_loss, test_accuracy, lr, samples_per_s, data_wait_s, seconds, read_bytes, skipped    of the whole epoch
//
// Accuracies and test values are left out where there are none. read_bytes and skipped (pictures that could not be read) are of all ranks
// together. The fields of kTimingFields depend on the machine, or on where a run was interrupted; all others are the same, bit for
// bit, whether a run was interrupted or not.
#pragma once

#include <array>
#include <filesystem>
#include <string_view>

#include "base/json.h"
#include "train/checkpoint.h"

namespace convoy {

inline constexpr std::array<std::string_view, 5> kTimingFields{"samples_per_s", "data_wait_s", "seconds", "read_bytes", "skipped"};

class MetricsFile {
  public:
    // Opens RUN/metrics.jsonl for appending. Lines that a run at `progress` had not written yet (of later steps or unfinished epochs, and a line cut off
    // by a kill) are dropped first, by an atomic rewrite. At progress 0 the file begins empty.
    MetricsFile(const std::filesystem::path& run_dir, const Progress& progress);
    ~MetricsFile();
    MetricsFile(const MetricsFile&) = delete;
    MetricsFile& operator=(const MetricsFile&) = delete;

    // One line, written whole. Error when the disk is full.
    void append(const Json& line);
    // Makes what was appended durable.
    void sync();

  private:
    std::filesystem::path path_;
    int descriptor_ = -1;
};

}  // namespace convoy
