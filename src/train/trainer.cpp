#include "train/trainer.h"

#include <algorithm>
#include <chrono>

#include "base/json.h"
#include "data/open_dataset.h"
#include "exec/energy.h"
#include "exec/session.h"
#include "onnx/model_source.h"
#include "train/batch_reader.h"
#include "train/feed.h"
#include "train/fields.h"
#include "train/metrics.h"
#include "train/run_directory.h"
#include "train/run_record.h"
#include "train/step_tracer.h"
#include "train/tally.h"
#include "train/task.h"
#include "train/team.h"
#include "train/weights.h"

namespace convoy {

namespace {

// Over how many seconds the shown rate is taken.
constexpr double kLately = 3;

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

SessionOptions with_costs(SessionOptions options, const std::shared_ptr<const Costs>& costs) {
    options.costs = costs;
    return options;
}

class Trainer {
  public:
    Trainer(const TrainConfig& config, const TrainOptions& options, TrainObserver& observer);
    TrainResult run();

  private:
    void open_run();
    std::optional<std::filesystem::path> resume();
    std::unique_ptr<BatchProgram> load(int64_t samples);
    void record_run();
    void announce();
    BatchProgram& program_for(int64_t samples) { return samples == full_->samples() ? *full_ : *last_; }
    double step(const Batch& batch, double rate, TraceLog* log, BatchReader& batches);
    TraceEvent host_event(const char* what) const {
        return {.what = what, .phase = "data", .queue = static_cast<int>(Queue::Host), .step = progress_.step};
    }
    void after_step(double loss, double rate);
    bool checkpoint_is_due() const;
    bool is_looked_at() const;
    void write(const Json& line);
    void log_window(double rate);
    void count_energy();
    void put_energy(Json& line, const Tally& tally) const;
    bool finish_epoch();
    std::optional<EvalResult> validate();
    void save();
    void show_parameters();
    void show_trace(bool now = false);
    TrainResult stopped();
    TrainResult result(bool early);
    std::string last_checkpoint_text() const;
    // Pictures of either split that could not be read so far, by all ranks.
    int64_t skipped() const { return team_.sum(static_cast<int64_t>(task_.train->skipped().size() + task_.test->skipped().size())); }

    bool stopping() const { return team_.any(options_.stop && *options_.stop); }
    double lr(int64_t step) const { return lr_at(config_.schedule, step, span_); }
    double mean_loss(const MetricSums& sums) const { return sums.loss / static_cast<double>(sums.samples); }
    std::optional<double> accuracy(const MetricSums& sums) const;
    [[noreturn]] void fail_non_finite(BatchProgram& program, const StepContext& context) const;

    const Clock::time_point begin_ = Clock::now();
    const TrainOptions options_;
    TrainObserver& observer_;
    const Team team_;
    Task task_;
    const TrainConfig& config_;
    BatchOrder order_;
    ScheduleSpan span_;
    bool classifies_;

    std::optional<RunDirectory> directory_;
    std::optional<CheckpointStore> store_;
    std::optional<MetricsFile> metrics_;
    Progress progress_;
    std::optional<Progress> saved_;
    std::filesystem::path saved_path_;

    std::vector<Unfollowed> unfollowed_;
    Session session_;
    std::unique_ptr<BatchProgram> full_, last_;
    const BatchProgram* ran_ = nullptr;  // the last step; its results are there until another program runs
    std::optional<Evaluator> evaluator_;
    EnergyCount energy_;
    Tally in_run_, in_epoch_, in_window_, lately_;
    std::optional<StepTracer> tracer_;
};

Trainer::Trainer(const TrainConfig& config, const TrainOptions& options, TrainObserver& observer)
    : options_(options),
      observer_(observer),
      team_(options.link),
      task_(open_task(config)),
      config_(task_.config),
      order_(task_.train->size(), config_.batch, config_.seed, true),
      span_{order_.batch_size(), order_.batches(), order_.batches() * config_.epochs},
      classifies_(task_.train->info().target != TargetKind::Regression),
      session_(with_costs(session_options(config_, options.link, &unfollowed_), options.costs)),
      energy_(session_.backend(), options.link) {
    require(!options_.resume || !config_.run_dir.empty(), "cannot resume: no run directory was given");
    std::optional<std::filesystem::path> checkpoint;
    if (!config_.run_dir.empty()) {
        open_run();
        if (options_.resume) checkpoint = resume();
        if (team_.leads()) {
            write_config(config_.run_dir, config_);
            metrics_.emplace(config_.run_dir, progress_);
        }
    }
    full_ = load(order_.batch_size());
    if (const int64_t rest = order_.samples() % order_.batch_size(); rest > 0) last_ = load(rest);
    if (!config_.run_dir.empty()) record_run();
    if (config_.validate) evaluator_.emplace(session_, *task_.test, config_);
    if (checkpoint)
        load_state(*checkpoint, session_.state());
    else if (!config_.init.empty())
        load_weights(config_.init, session_.state(), {.spare = open_model(config_.model).training_only, .skip = config_.skip});
    if (options_.trace_steps > 0)
        tracer_.emplace(options_.link, options_.trace_steps, StepTracer::Range{progress_.step, span_.total_steps});
}

// Everything that can be wrong with the run directory is found here, before anything is computed. The first rank alone looks: its error ends the
// others, which wait for it before their first step.
void Trainer::open_run() {
    const std::filesystem::path path = config_.run_dir;
    store_.emplace(path, config_.keep);
    if (!team_.leads()) return;
    if (options_.resume) {
        require(std::filesystem::exists(path / "config.json"), "cannot resume: {} holds no run (there is no config.json)", path.string());
        require_resumable(read_config(path), config_);
    }
    const auto present = options_.resume ? std::vector<std::filesystem::path>{} : store_->list();
    require(present.empty(),
            "the run directory {} already holds a run, with {} as its newest checkpoint; resume it or use another directory", path.string(),
            present.empty() ? "" : present[0].filename().string());
    directory_.emplace(path);
}

// The first rank finds the checkpoint; every rank reads it.
std::optional<std::filesystem::path> Trainer::resume() {
    std::optional<std::filesystem::path> path;
    if (team_.leads()) path = store_->latest([&](const std::string& text) { observer_.on_message(text); });
    const std::string chosen = team_.from_leader(path ? path->string() : "");
    if (chosen.empty()) {
        observer_.on_message(fmt::format("{} holds no checkpoint yet: the run begins anew", config_.run_dir));
        return std::nullopt;
    }
    path = chosen;
    const Checkpoint checkpoint = read_checkpoint(*path, false);
    require_resumable(checkpoint.config, config_);
    require(checkpoint.train_samples == order_.samples(), "cannot resume: dataset \"{}\" has {} samples, but had {} in the run",
            config_.data.name, order_.samples(), checkpoint.train_samples);
    require(checkpoint.progress.batch <= order_.batches(), "cannot resume: {} stands at batch {} of an epoch, which has {}", path->string(),
            checkpoint.progress.batch, order_.batches());
    progress_ = checkpoint.progress;
    saved_ = progress_;
    saved_path_ = *path;
    return path;
}

std::unique_ptr<BatchProgram> Trainer::load(int64_t samples) {
    return std::make_unique<BatchProgram>(session_, training_graph_of(config_, samples, options_.tensors), samples,
                                          micro_batches_for(samples, config_.micro_batches));
}

void Trainer::record_run() {
    write_run_record(config_.run_dir, {.config = config_,
                                       .graph = training_graph_of(config_, full_->samples()),
                                       .program = full_->executor().program(),
                                       .session = session_.options(),
                                       .unfollowed = unfollowed_});
}

void Trainer::announce() {
    TrainStart start{.config = config_,
                     .train_samples = task_.train->size(),
                     .test_samples = task_.test->size(),
                     .steps_per_epoch = span_.steps_per_epoch,
                     .total_steps = span_.total_steps,
                     .arena_bytes = session_.step_bytes(),
                     .state_bytes = session_.state().bytes(),
                     .first_step = progress_.step,
                     .unfollowed = unfollowed_,
                     .data = fmt::format("{}, {}; for example {}", name_of(dataset_kind(config_.data.name)),
                                         targets_text(task_.train->info()), task_.train->describe(0)),
                     .train_transforms = task_.train->info().transforms,
                     .test_transforms = task_.test->info().transforms,
                     .data_workers = data_workers(config_)};
    for (const StateSpec& spec : session_.state().specs())
        if (spec.kind == StateKind::Parameter) start.parameters += numel(spec.shape);
    observer_.on_start(start);
}

TrainResult Trainer::run() {
    announce();
    const bool epoch_done = progress_.batch == order_.batches();
    const BatchPosition start = epoch_done ? BatchPosition{progress_.epoch + 1, 0} : BatchPosition{progress_.epoch, progress_.batch};
    PrefetchOptions reading{
        .type = full_->input_type(), .workers = data_workers(config_), .start = start, .end_epoch = config_.epochs, .full = full_->part()};
    if (last_) reading.last = last_->part();
    BatchReader batches(*task_.train, order_, reading, session_.backend());
    energy_.take();  // what was used before the first step is no part of any
    while (progress_.epoch < config_.epochs) {
        while (progress_.batch < order_.batches()) {
            if (stopping()) return stopped();
            const auto begin = Clock::now();
            const double waited_before = batches.waited_seconds();
            const Batch& batch = batches.next({progress_.epoch, progress_.batch});
            const int64_t count = batch.count, bytes = batch.bytes;  // its memory may be another batch's when the step is over
            if (options_.tensors && in_run_.samples == 0) observer_.on_examples(batch, task_.train->info());
            TraceLog* const log = tracer_ ? tracer_->log_for(progress_.step) : nullptr;
            if (log) log->add(host_event("wait for data"), begin, Clock::now());
            const double rate = lr(progress_.step), loss = step(batch, rate, log, batches);
            if (is_looked_at()) session_.state().settle();  // what is put off of these steps counts to their time
            const double elapsed = seconds_since(begin), waited = batches.waited_seconds() - waited_before;
            lately_.fade(elapsed, kLately);
            for (Tally* tally : {&in_run_, &in_epoch_, &in_window_, &lately_}) tally->add(static_cast<double>(count), elapsed, waited);
            in_epoch_.bytes += bytes;
            in_run_.bytes += bytes;
            after_step(loss, rate);
        }
        if (!finish_epoch()) return stopped();
    }
    return result(false);
}

// One update; returns the loss before it. Allocates nothing, unless it is traced.
double Trainer::step(const Batch& batch, double rate, TraceLog* log, BatchReader& batches) {
    BatchProgram& program = program_for(batch.count);
    ran_ = &program;
    const int64_t count = batch.count;
    const StepContext context{.seed = config_.seed, .step = static_cast<uint32_t>(progress_.step)};
    const auto begin = log ? Clock::now() : Clock::time_point{};
    program.set(batch);
    program.set_hyper(rate, progress_.step + 1);
    if (log) log->add(host_event("copy the batch in"), begin, Clock::now());
    const auto ahead = [&] { batches.send_ahead([&](const Batch& later) { program_for(later.count).send(later); }); };
    if (!(log ? program.run_traced(context, *log) : program.run(context, ahead))) fail_non_finite(program, context);
    const double loss = program.loss(), correct = program.correct().value_or(0);
    for (MetricSums* sums : {&progress_.in_epoch, &progress_.in_window}) {
        sums->loss += loss * static_cast<double>(count);
        sums->correct += correct;
        sums->samples += count;
    }
    progress_.samples += count;
    ++progress_.batch;
    ++progress_.step;
    return loss;
}

void Trainer::fail_non_finite(BatchProgram& program, const StepContext& context) const {
    const double loss = program.loss();
    const auto found = first_non_finite(program, context, team_);
    throw NonFiniteError(fmt::format("step {} (epoch {}, batch {} of {}): the loss is {}; {}. The update of this step was not done{}",
                                     progress_.step + 1, progress_.epoch + 1, progress_.batch + 1, order_.batches(), loss,
                                     found.value_or("yet every result before it is finite"), last_checkpoint_text()));
}

std::string Trainer::last_checkpoint_text() const {
    if (!store_) return "";
    if (!saved_) return ". There is no checkpoint yet";
    return fmt::format(". The last checkpoint, {} (step {}), is intact", saved_path_.string(), saved_->step);
}

bool Trainer::checkpoint_is_due() const { return config_.checkpoint_every > 0 && progress_.step % config_.checkpoint_every == 0; }

// Whether the state is read before the next step.
bool Trainer::is_looked_at() const { return checkpoint_is_due() || progress_.batch == order_.batches(); }

void Trainer::after_step(double loss, double rate) {
    const MetricSums& epoch = progress_.in_epoch;
    observer_.on_step({.step = progress_.step,
                       .total_steps = span_.total_steps,
                       .epoch = progress_.epoch + 1,
                       .epochs = config_.epochs,
                       .batch = progress_.batch,
                       .batches = order_.batches(),
                       .loss = loss,
                       .epoch_loss = mean_loss(epoch),
                       .epoch_accuracy = accuracy(epoch),
                       .lr = rate,
                       .samples_per_s = lately_.rate(),
                       .data_wait_s = in_run_.waited,
                       .eta_s = static_cast<double>(config_.epochs * order_.samples() - progress_.samples) / lately_.rate()});
    show_trace();
    if (config_.log_every > 0 && progress_.step % config_.log_every == 0) log_window(rate);
    // At the end of an epoch the checkpoint follows the validation.
    if (!checkpoint_is_due() || progress_.batch == order_.batches()) return;
    count_energy();
    save();
    energy_.take();
}

void Trainer::show_trace(bool now) {
    if (!tracer_) return;
    if (const auto trace = tracer_->take(progress_.step, now)) observer_.on_trace(*trace);
}

void Trainer::write(const Json& line) {
    if (metrics_) metrics_->append(line);
    observer_.on_metrics(line);
}

// Adds what was used since the last time: that of training alone, when it is taken anew after anything else.
void Trainer::count_energy() {
    const double joules = energy_.take().value_or(0);
    for (Tally* tally : {&in_run_, &in_epoch_, &in_window_}) tally->joules += joules;
}

void Trainer::put_energy(Json& line, const Tally& tally) const {
    if (!energy_.available()) return;
    line["joules"] = tally.joules;
    line["watts"] = tally.watts();
}

void Trainer::log_window(double rate) {
    count_energy();
    Json line{{"kind", "step"}, {"step", progress_.step}, {"epoch", progress_.epoch + 1}, {"loss", mean_loss(progress_.in_window)}};
    put(line, "accuracy", accuracy(progress_.in_window));
    line["lr"] = rate;
    line["samples_per_s"] = in_window_.rate();
    line["data_wait_s"] = in_window_.waited;
    put_energy(line, in_window_);
    write(line);
    progress_.in_window = {};
    in_window_ = {};
}

// Validation, metrics and the checkpoint of the epoch. False when stopped during the validation, which is then done by the run that goes on.
bool Trainer::finish_epoch() {
    const double rate = lr(progress_.step - 1);
    count_energy();
    EpochReport report{.epoch = progress_.epoch + 1,
                       .epochs = config_.epochs,
                       .step = progress_.step,
                       .train_loss = mean_loss(progress_.in_epoch),
                       .train_accuracy = accuracy(progress_.in_epoch),
                       .lr = rate,
                       .samples_per_s = in_epoch_.rate(),
                       .data_wait_s = in_epoch_.waited,
                       .seconds = in_epoch_.seconds,
                       .read_bytes = in_epoch_.bytes,
                       .read_bytes_of_all = team_.sum(in_epoch_.bytes),
                       .skipped = skipped()};
    if (energy_.available()) {
        report.joules = in_epoch_.joules;
        report.watts = in_epoch_.watts();
    }
    if (options_.tensors) show_parameters();
    if (evaluator_) {
        ran_ = nullptr;
        report.validation = validate();
        energy_.take();  // of no training
        if (!report.validation) return false;
    }
    EpochOutcome outcome{.train_loss = report.train_loss, .train_accuracy = report.train_accuracy};
    if (report.validation) {
        outcome.test_loss = report.validation->loss;
        outcome.test_accuracy = report.validation->accuracy;
        outcome.test_scores = report.validation->scores;
        if (outcome.test_accuracy) progress_.best_accuracy = std::max(*outcome.test_accuracy, progress_.best_accuracy.value_or(0));
    }
    Json line{{"kind", "epoch"}, {"step", report.step}, {"epoch", report.epoch}, {"loss", report.train_loss}};
    put(line, "accuracy", outcome.train_accuracy);
    put(line, "test_loss", outcome.test_loss);
    put(line, "test_accuracy", outcome.test_accuracy);
    for (const auto& [name, value] : outcome.test_scores) line["test_" + name] = value;
    line["lr"] = rate;
    line["samples_per_s"] = report.samples_per_s;
    line["data_wait_s"] = report.data_wait_s;
    line["seconds"] = report.seconds;
    put_energy(line, in_epoch_);
    line["read_bytes"] = report.read_bytes_of_all;
    line["skipped"] = report.skipped;
    write(line);
    progress_.last = outcome;
    ++progress_.epoch;
    progress_.batch = 0;
    progress_.in_epoch = {};
    in_epoch_ = {};
    observer_.on_epoch(report);
    save();
    energy_.take();
    return true;
}

std::optional<EvalResult> Trainer::validate() {
    try {
        return evaluator_->run(options_.stop);
    } catch (const NonFiniteError& error) {
        throw NonFiniteError(fmt::format("validation after step {} (epoch {}): {}{}", progress_.step, progress_.epoch + 1, error.what(),
                                         last_checkpoint_text()));
    }
}

void Trainer::save() {
    if (!store_ || saved_ == progress_) return;
    if (metrics_) metrics_->sync();
    try {
        const auto tensors = snapshot(session_.state(), team_.leads());
        saved_path_ = store_->directory() / checkpoint_name(progress_.step);
        if (team_.leads()) store_->write({.config = config_, .train_samples = order_.samples(), .progress = progress_}, tensors);
    } catch (const NonFiniteError& error) {
        throw NonFiniteError(fmt::format("after step {} (epoch {}): {}; no checkpoint is made of that{}", progress_.step,
                                         progress_.epoch + 1, error.what(), last_checkpoint_text()));
    }
    saved_ = progress_;
    observer_.on_checkpoint(saved_path_, progress_.step);
}

// Every parameter with its gradient in the last step, if this run has done one in this epoch.
void Trainer::show_parameters() {
    for (const StateSpec& spec : session_.state().specs()) {
        if (spec.kind != StateKind::Parameter) continue;
        const Tensor value = session_.state().read(spec.name);
        const std::string name = "grad:" + spec.name;
        const auto part = ran_ ? ran_->output(name) : std::nullopt;
        const bool learned = team_.any(part.has_value());
        const Tensor gradient =
            !learned ? Tensor() : team_.whole(part ? &part->tensor : nullptr, part ? part->box : Box{}, spec.shape, value.dtype());
        observer_.on_parameter(progress_.step, spec.name, value, learned ? &gradient : nullptr);
    }
}

TrainResult Trainer::stopped() {
    count_energy();
    show_trace(true);
    save();
    return result(true);
}

TrainResult Trainer::result(bool early) {
    session_.state().settle();  // the last step too may fail
    const int64_t bytes = team_.sum(in_run_.bytes), bad = skipped();
    TrainResult result{.best_accuracy = progress_.best_accuracy,
                       .samples_per_s = in_run_.rate(),
                       .seconds = seconds_since(begin_),
                       .data_wait_s = in_run_.waited,
                       .read_bytes = bytes,
                       .skipped = bad,
                       .steps = progress_.step,
                       .epochs = progress_.epoch,
                       .stopped_early = early,
                       .energy_source = energy_.source()};
    if (energy_.available()) {
        result.joules = in_run_.joules;
        result.watts = in_run_.watts();
    }
    if (const auto& last = progress_.last) {
        result.train_loss = last->train_loss;
        result.train_accuracy = last->train_accuracy;
        result.test_loss = last->test_loss;
        result.test_accuracy = last->test_accuracy;
        result.test_scores = last->test_scores;
    } else if (progress_.in_epoch.samples > 0) {
        result.train_loss = mean_loss(progress_.in_epoch);
        result.train_accuracy = accuracy(progress_.in_epoch);
    }
    return result;
}

std::optional<double> Trainer::accuracy(const MetricSums& sums) const {
    if (!classifies_) return std::nullopt;
    return sums.correct / static_cast<double>(sums.samples * numel(task_.train->info().target_shape));
}

}  // namespace

TrainResult train(const TrainConfig& config, const TrainOptions& options, TrainObserver& observer) {
    return Trainer(config, options, observer).run();
}

}  // namespace convoy
