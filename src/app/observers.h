// Several observers of one run, told one after the other.
#pragma once

#include <vector>

#include "train/observer.h"

namespace convoy {

class Observers : public TrainObserver {
  public:
    void add(TrainObserver& observer) { all_.push_back(&observer); }

    void on_start(const TrainStart& start) override { tell(&TrainObserver::on_start, start); }
    void on_step(const StepReport& report) override { tell(&TrainObserver::on_step, report); }
    void on_epoch(const EpochReport& report) override { tell(&TrainObserver::on_epoch, report); }
    void on_checkpoint(const std::filesystem::path& path, int64_t step) override { tell(&TrainObserver::on_checkpoint, path, step); }
    void on_metrics(const Json& line) override { tell(&TrainObserver::on_metrics, line); }
    void on_examples(const Batch& batch, const DatasetInfo& info) override { tell(&TrainObserver::on_examples, batch, info); }
    void on_parameter(int64_t step, const std::string& name, const Tensor& value, const Tensor* gradient) override {
        tell(&TrainObserver::on_parameter, step, name, value, gradient);
    }
    void on_trace(const Trace& trace) override { tell(&TrainObserver::on_trace, trace); }
    void on_message(const std::string& text) override { tell(&TrainObserver::on_message, text); }

  private:
    template <class Method, class... Args>
    void tell(Method method, const Args&... args) {
        for (TrainObserver* observer : all_) (observer->*method)(args...);
    }

    std::vector<TrainObserver*> all_;
};

}  // namespace convoy
