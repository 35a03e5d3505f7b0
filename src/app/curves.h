// The curves of a run as a picture: loss and accuracy over steps, in training and on the test split.
#pragma once

#include <filesystem>

namespace convoy {

// Draws RUN/curves.png from RUN/metrics.jsonl and returns its path. Error when the metrics cannot be read or the picture not be written.
std::filesystem::path draw_curves(const std::filesystem::path& run_dir);

}  // namespace convoy
