#include "train/task.h"

#include <algorithm>

#include "base/error.h"
#include "data/open_dataset.h"
#include "model/autodiff.h"
#include "onnx/model_source.h"
#include "train/feed.h"

namespace convoy {

namespace {

// What the model's first loss wants of a dataset; its name is not set.
DatasetInfo wanted_by(const Model& model) {
    const Shape& output = model.graph.shape(model.graph.output(model.losses.at(0).output));
    DatasetInfo info{.input = model.graph.shape(model.graph.input("input")).slice(1)};
    if (model.losses[0].kind != LossKind::CrossEntropy) {
        info.target = TargetKind::Regression;
        info.target_shape = output.slice(1);
    } else {
        info.target = output.size() > 2 ? TargetKind::Voxel : TargetKind::Class;
        info.target_shape = output.slice(2);
        info.classes = model.classes;
    }
    return info;
}

std::string targets_of(const DatasetInfo& info) {
    switch (info.target) {
        case TargetKind::Class: return "one class for each sample";
        case TargetKind::Voxel: return fmt::format("a class for each of {} points of a sample", to_string(info.target_shape));
        case TargetKind::Regression: return fmt::format("{} real numbers for each sample", to_string(info.target_shape));
    }
    return "";
}

DatasetOptions dataset_options(const TrainConfig& config, const DatasetInfo& wanted, Split split) {
    DatasetOptions options{.data = config.data.path, .most = split == Split::Train ? config.data.most_train : config.data.most_test};
    options.synthetic = {.info = wanted,
                         .train = config.data.synthetic_train,
                         .test = config.data.synthetic_test,
                         .seed = config.seed,
                         .signal = config.data.synthetic_signal};
    options.synthetic.info.name = "synthetic";
    options.classes = config.classes;
    options.augment = config.data.augment;
    options.normalize = config.data.normalize;
    options.resize = config.data.resize;
    options.strict = config.data.strict;
    options.seed = config.seed;
    options.size = config.input.empty() ? wanted.input.slice(std::min(1, wanted.input.size())) : config.input.slice(1);
    return options;
}

// Takes from the model's file, then from the dataset, what the configuration leaves open.
void fill_in(TrainConfig& config, const ModelSource& source, const DatasetInfo& info) {
    if (config.input.empty()) config.input = info.input;
    require(config.input == info.input, "dataset \"{}\" has samples of {}, but the model was to have an input of {}", info.name,
            to_string(info.input), to_string(config.input));
    if (config.classes == 0 && source.fixed_classes)
        config.classes = source.make({.input = config.input, .mode = Mode::Evaluation}).classes;
    if (config.classes == 0) config.classes = info.target == TargetKind::Regression ? numel(info.target_shape) : info.classes;
}

void require_fit(const TrainConfig& config, const ModelSource& source, const DatasetInfo& info) {
    const DatasetInfo wanted = wanted_by(source.make({.input = config.input, .classes = config.classes, .mode = Mode::Evaluation}));
    require(wanted.target == info.target && wanted.target_shape == info.target_shape, "model \"{}\" learns {}, but dataset \"{}\" has {}",
            config.model, targets_of(wanted), info.name, targets_of(info));
    require(config.classes >= info.classes, "dataset \"{}\" has {} classes, but the model was to have {}", info.name, info.classes,
            config.classes);
}

// The parameters whose names match one of the patterns.
std::vector<std::string> parameters_like(const Model& model, const std::vector<std::string>& patterns) {
    std::vector<std::string> found;
    for (const std::string& pattern : patterns) {
        const size_t before = found.size();
        std::string last;
        for (const StateSpec& spec : model.graph.states()) {
            if (spec.kind != StateKind::Parameter) continue;
            if (matches(pattern, spec.name)) found.push_back(spec.name);
            last = spec.name;
        }
        require(found.size() > before, "model \"{}\" has no parameter that matches \"{}\" and could be frozen; names are like \"{}\"",
                model.name, pattern, last);
    }
    return found;
}

}  // namespace

Task open_task(const TrainConfig& given, Splits splits) {
    require_valid(given);
    Task task{.config = given};
    TrainConfig& config = task.config;
    const ModelSource source = open_model(config.model);  // a wrong name is said before any data are read
    DatasetInfo wanted;
    const DataKind kind = dataset_kind(config.data.name);
    if (any_size(kind) && config.input.empty()) wanted = wanted_by(source.make({.classes = config.classes, .mode = Mode::Evaluation}));
    if (kind == DataKind::Synthetic) {
        wanted = wanted_by(source.make({.input = config.input, .classes = config.classes, .mode = Mode::Evaluation}));
        config.input = wanted.input;
    }
    if (splits != Splits::TestOnly)
        task.train = open_dataset(config.data.name, Split::Train, dataset_options(config, wanted, Split::Train));
    if (splits != Splits::TrainOnly) task.test = open_dataset(config.data.name, Split::Test, dataset_options(config, wanted, Split::Test));
    for (const Dataset* dataset : {task.train.get(), task.test.get()}) {
        if (!dataset) continue;
        fill_in(config, source, dataset->info());
        require_fit(config, source, dataset->info());
    }
    return task;
}

int data_workers(const TrainConfig& config) {
    if (config.data.workers > 0) return config.data.workers;
    return any_size(dataset_kind(config.data.name)) ? config.threads : 1;
}

Graph training_graph_of(const TrainConfig& config, int64_t samples, bool gradients) {
    const int micro_batches = micro_batches_for(samples, config.micro_batches);
    const Model model = make_model(config, Mode::Training, samples / micro_batches);
    return training_graph(model, config.optimizer,
                          {.micro_batches = micro_batches, .frozen = parameters_like(model, config.freeze), .gradients = gradients});
}

SessionOptions session_options(const TrainConfig& config, Link* link, std::vector<Unfollowed>* unfollowed) {
    CONVOY_CHECK(config.ranks == (link ? link->size() : 1), "a configuration for {} ranks on {}", config.ranks, link ? link->size() : 1);
    UniformPlan uniform = plan_for(plan_choice(config.plan, config.ranks), training_graph_of(config, config.batch));
    if (unfollowed) *unfollowed = std::move(uniform.unfollowed);
    return {.backend = config.backend,
            .dtype = config.dtype,
            .threads = config.threads,
            .device = config.device,
            .seed = config.seed,
            .plan = std::move(uniform.plan),
            .link = link,
            .limits = config.limits};
}

Model make_model(const TrainConfig& config, Mode mode, int64_t batch) {
    Model model = open_model(config.model)
                      .make({.batch = batch, .input = config.input, .classes = config.classes, .mode = mode, .dropout = config.dropout});
    if (mode == Mode::Training)
        for (LossTerm& term : model.losses)
            if (term.kind == LossKind::CrossEntropy) term.label_smoothing = config.label_smoothing;
    return model;
}

}  // namespace convoy
