// A program that takes batches: training or evaluation, for one number of samples. Slots are looked up once; running it allocates nothing. One rank
// of many says which part of the batch it needs, and is given that.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "data/prefetch.h"
#include "exec/session.h"
#include "train/team.h"

namespace convoy {

class BatchProgram {
  public:
    // Loads `graph`, made by training_graph with so many micro-batches, or by evaluation_graph (1), for `samples` samples in all. The loss is watched. Error
    // when the plan leaves this rank without the loss.
    BatchProgram(Session& session, const Graph& graph, int64_t samples, int micro_batches);

    int64_t samples() const { return samples_; }
    // What this rank reads of a batch: its samples, and of each the box, halo included, in which everything lies that it needs.
    const BatchPart& part() const { return part_; }
    Executor& executor() { return *executor_; }

    // The type in which inputs are best read: as this program takes them.
    DType input_type() const;
    // Takes a batch of samples() samples, of which part() was read, converting the floating type as needed. It must stay as it is until the next run is over.
    void set(const Batch& batch);
    // Whether a batch can be sent while a step runs.
    bool sends_ahead() const { return sends_ahead_; }
    // Sends the batch that will be set next; it must stay as it is until the run after that is over. Requires sends_ahead().
    void send(const Batch& batch);
    // Of a training program: learning rate and number of the step, from 1.
    void set_hyper(double lr, int64_t step);
    // False when the loss was not finite; the update was not done then.
    bool run(const StepContext& context, const std::function<void()>& meanwhile = nullptr) { return executor_->run(context, meanwhile); }
    bool run_traced(const StepContext& context, TraceLog& log) { return executor_->run_traced(context, log); }

    // Of the last run: the mean loss and how many targets were predicted right (nothing for a regression).
    double loss();
    std::optional<double> correct();
    // What of an output this rank has, after the last run; nothing when it has none of it.
    struct Part {
        Tensor tensor;
        Box box;
    };
    std::optional<Part> output(std::string_view name) const;

  private:
    struct Feed {
        SlotId slot;
        Tensor staging;  // of an input with an intake, empty
        Box box = {};    // of the whole batch; of what was read, once that is known
        std::unique_ptr<Intake> intake = nullptr;
    };
    Feed feed_of(SlotId slot) const { return {slot, executor_->tensor_for(slot)}; }
    void add_feeds(std::string_view name, int micro_batches, std::vector<Feed>& feeds);
    static TensorPart part_of(std::vector<Feed>& feeds);
    void require_part(const Batch& batch) const;
    bool takes_whole(const Tensor& batch, const Feed& feed) const;
    void send(const Tensor& batch, std::vector<Feed>& feeds);
    void set(const Tensor& batch, std::vector<Feed>& feeds);

    int64_t samples_;
    BatchPart part_;
    std::unique_ptr<Executor> executor_;
    std::vector<Feed> inputs_, targets_;  // of each micro-batch none, one or several, as this rank reads them
    std::vector<Feed> hyper_;
    std::optional<Feed> correct_;
    Feed loss_;
    bool sends_ahead_ = false;
    const Batch* sent_ = nullptr;  // and not yet set
};

// Where the step that gave a loss that is not finite first went wrong, on any rank, as Executor::find_non_finite says it. All ranks ask together.
std::optional<std::string> first_non_finite(BatchProgram& program, const StepContext& context, const Team& team);

// How many of `wanted` micro-batches a batch of `samples` is computed in: as many when they divide it, else one.
int micro_batches_for(int64_t samples, int wanted);

}  // namespace convoy
