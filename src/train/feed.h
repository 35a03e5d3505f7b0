// A program that takes batches: training or evaluation, for one number of samples. Slots are looked up once; running it allocates nothing.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "data/prefetch.h"
#include "exec/session.h"

namespace convoy {

class BatchProgram {
  public:
    // Loads `graph`, made by training_graph with so many micro-batches, or by evaluation_graph (1), for `samples` samples in all. The loss is watched.
    BatchProgram(Session& session, const Graph& graph, int64_t samples, int micro_batches);

    int64_t samples() const { return samples_; }
    Executor& executor() { return *executor_; }

    // Copies the first samples() samples of the batch into the inputs, converting the floating type as needed. Requires as many.
    void set(const Batch& batch);
    // Of a training program: learning rate and number of the step, from 1.
    void set_hyper(double lr, int64_t step);
    // False when the loss was not finite; the update was not done then.
    bool run(const StepContext& context) { return executor_->run(context); }

    // Of the last run: the mean loss and how many targets were predicted right (nothing for a regression).
    double loss();
    std::optional<double> correct();

  private:
    struct Feed {
        SlotId slot;
        Tensor staging;
    };
    void set(const Tensor& rows, std::vector<Feed>& feeds);

    int64_t samples_;
    std::unique_ptr<Executor> executor_;
    std::vector<Feed> inputs_, targets_;  // one per micro-batch
    std::optional<Feed> hyper_, correct_;
    Feed loss_;
};

// How many of `wanted` micro-batches a batch of `samples` is computed in: as many when they divide it, else one.
int micro_batches_for(int64_t samples, int wanted);

// The type in which batches are read for a program of this dtype.
DType data_type_for(DType dtype);

}  // namespace convoy
