// A run as TensorBoard shows it: the metrics as scalars, examples as images, parameters and gradients as histograms.
#pragma once

#include "app/canvas.h"
#include "app/event_file.h"
#include "train/observer.h"

namespace convoy {

class TensorBoard : public TrainObserver {
  public:
    // Writes an event file into the run directory.
    explicit TensorBoard(const std::filesystem::path& run_dir) : file_(run_dir) {}

    void on_start(const TrainStart& start) override;
    void on_metrics(const Json& line) override;
    void on_examples(const Batch& batch, const DatasetInfo& info) override;
    void on_parameter(int64_t step, const std::string& name, const Tensor& value, const Tensor* gradient) override;

  private:
    EventFile file_;
};

// One sample of a batch as a picture: its first three channels as colours when it has three, else its first channel; of a volume the middle slice. From
// the darkest value to the brightest.
Image picture_of(const Tensor& input, int64_t row);

}  // namespace convoy
