// metrics.jsonl of a run: one JSON object per line; and metrics.csv, the same as a table. Lines of steps ("kind": "step") and of epochs ("kind": "epoch").
//
//     kind, step, epoch (from 1), loss, accuracy, lr, samples_per_s, data_wait_s, joules, watts             of the steps since the last such line
//     kind, step, epoch, loss, accuracy, test_loss, test_accuracy, test_..., lr, samples_per_s, data_wait_s, seconds, joules, watts, read_bytes, skipped    of the whole epoch
//
// test_...: the scores of train/scores.h, as the targets allow.
//
// In the table every field but the scores of single classes has its column (kMetricColumns), which is empty where a line has no such field.
//
// joules is the energy of all GPUs while training, validation and checkpoints aside, and watts their mean power. Accuracies, test values and energy are left out where there are none. read_bytes and skipped (pictures that could not be read) are of all ranks
// together. The fields of kTimingFields depend on the machine, or on where a run was interrupted; all others are the same, bit for
// bit, whether a run was interrupted or not.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "train/checkpoint.h"

namespace convoy {

inline constexpr std::array<std::string_view, 7> kTimingFields{"samples_per_s", "data_wait_s", "seconds", "joules",
                                                               "watts",         "read_bytes",  "skipped"};

inline constexpr std::array<std::string_view, 18> kMetricColumns{
    "kind",          "step", "epoch",         "loss",        "accuracy", "test_loss",  "test_accuracy", "test_mae", "test_r2",
    "test_mean_iou", "lr",   "samples_per_s", "data_wait_s", "seconds",  "read_bytes", "skipped",       "joules",   "watts"};

class MetricsFile {
  public:
    // Opens both files for appending. Lines that a run at `progress` had not written yet (of later steps or unfinished epochs, and a line cut off
    // by a kill) are dropped first, by an atomic rewrite; the table is made anew from what is left. At progress 0 the files begin empty.
    MetricsFile(const std::filesystem::path& run_dir, const Progress& progress);
    ~MetricsFile();
    MetricsFile(const MetricsFile&) = delete;
    MetricsFile& operator=(const MetricsFile&) = delete;

    // One line, written whole, to each. Error when the disk is full.
    void append(const Json& line);
    // Makes what was appended durable.
    void sync();

  private:
    // A file that grows by whole lines.
    class Lines {
      public:
        explicit Lines(std::filesystem::path path);
        ~Lines();
        Lines(const Lines&) = delete;
        Lines& operator=(const Lines&) = delete;
        void append(const std::string& text);
        void sync();

      private:
        std::filesystem::path path_;
        int descriptor_ = -1;
    };
    std::unique_ptr<Lines> lines_, table_;
};

// A line of metrics as one of the table.
std::string csv_row(const Json& line);

}  // namespace convoy
