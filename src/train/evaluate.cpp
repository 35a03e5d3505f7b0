#include "train/evaluate.h"

#include <algorithm>
#include <chrono>

#include "model/autodiff.h"
#include "onnx/model_source.h"
#include "train/checkpoint.h"
#include "train/task.h"
#include "train/team.h"
#include "train/weights.h"

namespace convoy {

namespace {

std::unique_ptr<BatchProgram> load(Session& session, const TrainConfig& config, int64_t samples) {
    return std::make_unique<BatchProgram>(session, evaluation_graph(make_model(config, Mode::Evaluation, samples)), samples, 1);
}

// The targets that belong to a box of the whole batch's predictions, of those that were read. Labels have no dim of classes.
Tensor targets_of(const Batch& batch, const TensorPart& read, Box box, TargetKind kind) {
    if (kind == TargetKind::Voxel) {
        const auto without_classes = [](const Dims& dims) { return join(dims.slice(0, 1), dims.slice(2)); };
        box = {without_classes(box.origin), without_classes(box.shape)};
    }
    box.origin[0] = std::lower_bound(read.rows.begin(), read.rows.end(), box.origin[0]) - read.rows.begin();
    for (int d = 0; d < read.box.origin.size(); ++d) box.origin[d + 1] -= read.box.origin[d];
    return part_of(batch.target, box);
}

}  // namespace

Evaluator::Evaluator(Session& session, const Dataset& dataset, const TrainConfig& config)
    : session_(session),
      dataset_(dataset),
      order_(dataset.size(), config.batch / config.micro_batches, 0, false),
      workers_(data_workers(config)) {
    const Model model = make_model(config, Mode::Evaluation, 1);
    output_ = model.losses.at(0).output;
    output_shape_ = model.graph.shape(model.graph.output(output_)).slice(1);
    full_ = load(session, config, order_.batch_size());
    if (const int64_t rest = dataset.size() % order_.batch_size(); rest > 0) last_ = load(session, config, rest);
}

std::optional<EvalResult> Evaluator::run(const std::atomic<bool>* stop) {
    const auto begin = std::chrono::steady_clock::now();
    PrefetchOptions reading{.type = full_->input_type(), .workers = workers_, .end_epoch = 1, .full = full_->part()};
    if (last_) reading.last = last_->part();
    Prefetcher batches(dataset_, order_, reading);
    const StepContext context{.seed = session_.options().seed};
    const Team team(session_.options().link);
    const TargetKind kind = dataset_.info().target;
    ScoreSums scores(kind, output_shape_);
    MetricSums sums;
    bool classifies = false;
    while (const Batch* batch = batches.next()) {
        if (team.any(stop && *stop)) return std::nullopt;
        BatchProgram& program = batch->count == full_->samples() ? *full_ : *last_;
        program.set(*batch);
        if (!program.run(context))
            throw NonFiniteError(fmt::format("the loss of batch {} of dataset \"{}\" is {}: {}", batch->position.batch + 1,
                                             dataset_.info().name, program.loss(),
                                             first_non_finite(program, context, team).value_or("every layer's result is finite")));
        sums.loss += program.loss() * static_cast<double>(batch->count);
        sums.samples += batch->count;
        if (const auto part = scores.wanted() ? program.output(output_) : std::nullopt)
            scores.add(part->tensor, part->box, targets_of(*batch, program.part().target, part->box, kind));
        if (const auto correct = program.correct()) {
            classifies = true;
            sums.correct += *correct;
        }
    }
    const auto samples = static_cast<double>(sums.samples);
    EvalResult result{.loss = sums.loss / samples, .scores = scores.scores(team), .samples = sums.samples};
    if (classifies) result.accuracy = sums.correct / samples / static_cast<double>(numel(dataset_.info().target_shape));
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    result.samples_per_s = samples / result.seconds;
    return result;
}

EvalResult evaluate(const TrainConfig& given, const std::filesystem::path& weights, const EvalOptions& options) {
    const Task task = open_task(given, options.split == Split::Train ? Splits::TrainOnly : Splits::TestOnly);
    const TrainConfig& config = task.config;
    Session session(session_options(config, options.link));
    Evaluator evaluator(session, task.split(options.split), config);
    if (!weights.empty()) load_weights(weights, session.state(), {.spare = open_model(config.model).training_only});
    return evaluator.run(options.stop).value_or(EvalResult{});
}

}  // namespace convoy
