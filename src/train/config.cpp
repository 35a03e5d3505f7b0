#include "train/config.h"

#include <array>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/parse_json.h"
#include "base/suggest.h"
#include "data/transform.h"
#include "onnx/model_source.h"
#include "train/fields.h"

namespace convoy {

namespace {

constexpr std::array<Rule, 9> kRules{Rule::Sgd,  Rule::Momentum, Rule::Nesterov, Rule::AdaGrad, Rule::RmsProp,
                                     Rule::Adam, Rule::AdamW,    Rule::Lars,     Rule::Lamb};

// What a run calls its own copy of the model's file.
constexpr const char* kModelFile = "model.onnx";

// "" is no shape in the text form of Dims, but here it means that none was given.
std::string text_of(const Shape& shape) { return shape.empty() ? "" : to_string(shape); }
Shape shape_named(const std::string& text) { return text.empty() ? Shape{} : parse_dims(text); }

Json to_json(const DataConfig& data) {
    return {{"name", data.name},
            {"path", data.path},
            {"most_train", data.most_train},
            {"most_test", data.most_test},
            {"synthetic_train", data.synthetic_train},
            {"synthetic_test", data.synthetic_test},
            {"synthetic_signal", data.synthetic_signal},
            {"augment", data.augment},
            {"normalize", data.normalize},
            {"resize", data.resize},
            {"strict", data.strict},
            {"workers", data.workers}};
}

DataConfig data_from_json(const Json& json, const std::string& where) {
    DataConfig data;
    Fields fields(json, where);
    fields.read("name", data.name);
    fields.read("path", data.path);
    fields.read("most_train", data.most_train);
    fields.read("most_test", data.most_test);
    fields.read("synthetic_train", data.synthetic_train);
    fields.read("synthetic_test", data.synthetic_test);
    fields.read("synthetic_signal", data.synthetic_signal);
    fields.read("augment", data.augment);
    fields.read("normalize", data.normalize);
    fields.read("resize", data.resize);
    fields.read("strict", data.strict);
    fields.read("workers", data.workers);
    fields.finish();
    return data;
}

Json to_json(const Optimizer& optimizer) {
    const UpdateRule& rule = optimizer.rule;
    return {{"rule", name_of(rule.rule)},
            {"momentum", rule.momentum},
            {"beta1", rule.beta1},
            {"beta2", rule.beta2},
            {"rho", rule.rho},
            {"epsilon", rule.epsilon},
            {"trust", rule.trust},
            {"weight_decay", rule.weight_decay},
            {"clip_norm", optimizer.clip_norm}};
}

Optimizer optimizer_from_json(const Json& json, const std::string& where) {
    Optimizer optimizer;
    UpdateRule& rule = optimizer.rule;
    Fields fields(json, where);
    fields.read_named("rule", rule.rule, rule_named);
    fields.read("momentum", rule.momentum);
    fields.read("beta1", rule.beta1);
    fields.read("beta2", rule.beta2);
    fields.read("rho", rule.rho);
    fields.read("epsilon", rule.epsilon);
    fields.read("trust", rule.trust);
    fields.read("weight_decay", rule.weight_decay);
    fields.read("clip_norm", optimizer.clip_norm);
    fields.finish();
    return optimizer;
}

void require_valid(const DataConfig& data) {
    require(!data.name.empty(), "data: expected the name of a dataset, found none");
    require(data.most_train >= 0 && data.most_test >= 0, "data: expected at least 0 samples, found {} and {}", data.most_train,
            data.most_test);
    require(data.synthetic_train >= 1 && data.synthetic_test >= 1,
            "data: expected at least 1 synthetic sample in each split, found {} and {}", data.synthetic_train, data.synthetic_test);
    if (!data.augment.empty()) parse_augment(data.augment);
    if (!data.normalize.empty()) parse_normalize(data.normalize);
    require(data.resize >= 0 && data.workers >= 0, "data: expected resize and workers of at least 0, found {} and {}", data.resize,
            data.workers);
    require(std::isfinite(data.synthetic_signal), "data: expected a finite synthetic_signal, found {}", data.synthetic_signal);
}

void require_valid(const Optimizer& optimizer) {
    const UpdateRule& rule = optimizer.rule;
    const auto share = [](const char* name, double value) {
        require(value >= 0 && value < 1, "optimizer: expected {} from 0 to below 1, found {}", name, value);
    };
    const auto size = [](const char* name, double value) {
        require(std::isfinite(value) && value >= 0, "optimizer: expected {} of at least 0, found {}", name, value);
    };
    share("momentum", rule.momentum);
    share("beta1", rule.beta1);
    share("beta2", rule.beta2);
    share("rho", rule.rho);
    size("epsilon", rule.epsilon);
    size("trust", rule.trust);
    size("weight_decay", rule.weight_decay);
    size("clip_norm", optimizer.clip_norm);
}

// config.json holds these names, and JSON holds nothing else.
void require_utf8(const char* what, const std::string& name) {
    try {
        Json(name).dump();
    } catch (const Json::exception&) {
        fail("{} \"{}\": expected a name in UTF-8, found other bytes; name it differently", what, name);
    }
}

template <class T>
void require_same(const char* name, const T& old, const T& now) {
    require(old == now, "cannot resume: {} is {} in the run, but {} was asked for", name, old, now);
}

}  // namespace

Rule rule_named(std::string_view name) {
    std::vector<std::string> known;
    std::string list;
    for (const Rule rule : kRules) {
        if (name_of(rule) == name) return rule;
        known.emplace_back(name_of(rule));
        list += (list.empty() ? "" : ", ") + known.back();
    }
    fail("there is no optimizer \"{}\"; expected one of {}{}", name, list, did_you_mean(name, known));
}

void require_valid(const TrainConfig& c) {
    const auto positive = [](const char* name, int64_t value) { require(value >= 1, "{}: expected at least 1, found {}", name, value); };
    const auto natural = [](const char* name, int64_t value) { require(value >= 0, "{}: expected at least 0, found {}", name, value); };
    require(!c.model.empty(), "model: expected the name of a model, found none");
    require_utf8("model", c.model);
    require_utf8("data", c.data.name);
    require_utf8("data directory", c.data.path);
    require_utf8("init", c.init);
    require_utf8("run directory", c.run_dir);
    natural("classes", c.classes);
    require_valid(c.data);
    require(c.skip.empty() || !c.init.empty(), "skip: there is no init whose tensors could be left out");
    positive("epochs", c.epochs);
    positive("batch", c.batch);
    positive("micro_batches", c.micro_batches);
    require(c.batch % c.micro_batches == 0, "micro_batches: {} do not divide a batch of {} evenly", c.micro_batches, c.batch);
    require_valid(c.optimizer);
    require_valid(c.schedule);
    require(c.label_smoothing >= 0 && c.label_smoothing < 1, "label_smoothing: expected 0 to below 1, found {}", c.label_smoothing);
    require(is_floating(c.dtype), "dtype: expected a floating type, found {}", name_of(c.dtype));
    positive("threads", c.threads);
    natural("device", c.device);
    natural("workspace_limit", c.limits.workspace_bytes);
    positive("ranks", c.ranks);
    natural("checkpoint_every", c.checkpoint_every);
    positive("keep", c.keep);
    natural("log_every", c.log_every);
}

Json to_json(const TrainConfig& c) {
    return {{"model", c.model},
            {"input", text_of(c.input)},
            {"classes", c.classes},
            {"data", to_json(c.data)},
            {"init", c.init},
            {"skip", c.skip},
            {"freeze", c.freeze},
            {"epochs", c.epochs},
            {"batch", c.batch},
            {"micro_batches", c.micro_batches},
            {"optimizer", to_json(c.optimizer)},
            {"schedule", to_json(c.schedule)},
            {"label_smoothing", c.label_smoothing},
            {"dropout", c.dropout},
            {"validate", c.validate},
            {"seed", c.seed},
            {"dtype", name_of(c.dtype)},
            {"backend", c.backend},
            {"threads", c.threads},
            {"device", c.device},
            {"numerics", name_of(c.limits.numerics)},
            {"workspace_limit", c.limits.workspace_bytes},
            {"tune", c.tune},
            {"ranks", c.ranks},
            {"plan", c.plan},
            {"run_dir", c.run_dir},
            {"checkpoint_every", c.checkpoint_every},
            {"keep", c.keep},
            {"log_every", c.log_every}};
}

TrainConfig config_from_json(const Json& json, const std::string& where) {
    TrainConfig c;
    Fields fields(json, where);
    fields.read("model", c.model);
    fields.read_named("input", c.input, shape_named);
    fields.read("classes", c.classes);
    fields.read_object("data", c.data, data_from_json);
    fields.read("init", c.init);
    fields.read("skip", c.skip);
    fields.read("freeze", c.freeze);
    fields.read("epochs", c.epochs);
    fields.read("batch", c.batch);
    fields.read("micro_batches", c.micro_batches);
    fields.read_object("optimizer", c.optimizer, optimizer_from_json);
    fields.read_object("schedule", c.schedule, schedule_from_json);
    fields.read("label_smoothing", c.label_smoothing);
    fields.read("dropout", c.dropout);
    fields.read("validate", c.validate);
    fields.read("seed", c.seed);
    fields.read_named("dtype", c.dtype, dtype_named);
    fields.read("backend", c.backend);
    fields.read("threads", c.threads);
    fields.read("device", c.device);
    fields.read_named("numerics", c.limits.numerics, numerics_named);
    fields.read("workspace_limit", c.limits.workspace_bytes);
    fields.read("tune", c.tune);
    fields.read("ranks", c.ranks);
    fields.read("plan", c.plan);
    fields.read("run_dir", c.run_dir);
    fields.read("checkpoint_every", c.checkpoint_every);
    fields.read("keep", c.keep);
    fields.read("log_every", c.log_every);
    fields.finish();
    try {
        require_valid(c);
    } catch (const Error& error) {
        fail("{}: {}", where, error.what());
    }
    return c;
}

TrainConfig read_config(const std::filesystem::path& run_dir) {
    const auto path = run_dir / "config.json";
    std::error_code failed;
    require(std::filesystem::exists(run_dir, failed), "there is no run directory {}", run_dir.string());
    require(std::filesystem::exists(path, failed), "{} is no run directory: it holds no config.json, which `convoy train` writes",
            run_dir.string());
    return with_model_of_run(config_from_json(parse_json(read_file(path), path.string()), path.string()), run_dir);
}

void write_config(const std::filesystem::path& run_dir, const TrainConfig& config) {
    const auto copy = run_dir / kModelFile;
    if (is_model_file(config.model) && !same_model(config.model, copy.string())) write_file(copy, read_file(config.model));
    write_file(run_dir / "config.json", run_json(config).dump(2) + "\n");
}

Json run_json(const TrainConfig& config) {
    Json json = to_json(config);
    if (is_model_file(config.model)) json["model"] = kModelFile;
    return json;
}

TrainConfig with_model_of_run(TrainConfig config, const std::filesystem::path& run_dir) {
    if (config.model == kModelFile) config.model = (run_dir / kModelFile).string();
    return config;
}

void require_resumable(const TrainConfig& old, const TrainConfig& now) {
    if (!same_model(old.model, now.model)) require_same("model", old.model, now.model);
    require_same("input", to_string(old.input), to_string(now.input));
    require_same("classes", old.classes, now.classes);
    require_same("data", old.data.name, now.data.name);
    require_same("data.most_train", old.data.most_train, now.data.most_train);
    require_same("data.most_test", old.data.most_test, now.data.most_test);
    if (now.data.name == "synthetic") {
        require_same("data.synthetic_train", old.data.synthetic_train, now.data.synthetic_train);
        require_same("data.synthetic_test", old.data.synthetic_test, now.data.synthetic_test);
        require_same("data.synthetic_signal", old.data.synthetic_signal, now.data.synthetic_signal);
    }
    require_same("data.augment", old.data.augment, now.data.augment);
    require_same("data.normalize", old.data.normalize, now.data.normalize);
    require_same("data.resize", old.data.resize, now.data.resize);
    require_same("freeze", fmt::format("{}", fmt::join(old.freeze, " ")), fmt::format("{}", fmt::join(now.freeze, " ")));
    require_same("batch", old.batch, now.batch);
    require_same("micro_batches", old.micro_batches, now.micro_batches);
    require_same("optimizer", name_of(old.optimizer.rule.rule), name_of(now.optimizer.rule.rule));
    require_same("dtype", name_of(old.dtype), name_of(now.dtype));
    require_same("seed", old.seed, now.seed);
    require_same("dropout", old.dropout, now.dropout);
}

}  // namespace convoy
