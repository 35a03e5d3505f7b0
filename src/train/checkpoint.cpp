// One checkpoint: what checkpoint.json says, and what must be true of the files.
#include "train/checkpoint.h"

#include "base/error.h"
#include "base/file.h"
#include "base/parse_json.h"
#include "data/bytes.h"
#include "train/checkpoint_files.h"
#include "train/checksum.h"
#include "train/fields.h"
#include "train/state_file.h"

namespace convoy {

namespace {

namespace fs = std::filesystem;

constexpr const char* kFormat = "convoy checkpoint";
constexpr int64_t kVersion = 1;

Json to_json(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json to_json(const MetricSums& sums) { return {{"loss", sums.loss}, {"correct", sums.correct}, {"samples", sums.samples}}; }

MetricSums sums_from_json(const Json& json, const std::string& where) {
    MetricSums sums;
    Fields fields(json, where);
    fields.read("loss", sums.loss);
    fields.read("correct", sums.correct);
    fields.read("samples", sums.samples);
    return sums;
}

Json to_json(const Scores& scores) {
    Json json = Json::object();
    for (const auto& [name, value] : scores) json[name] = value;
    return json;
}

Scores scores_from_json(const Json& json, const std::string& where) {
    Scores scores;
    Fields fields(json, where);
    for (const auto& item : json.items()) {
        double value = 0;
        fields.read(item.key().c_str(), value);
        scores.emplace_back(item.key(), value);
    }
    return scores;
}

Json to_json(const EpochOutcome& outcome) {
    return {{"train_loss", outcome.train_loss},
            {"train_accuracy", to_json(outcome.train_accuracy)},
            {"test_loss", to_json(outcome.test_loss)},
            {"test_accuracy", to_json(outcome.test_accuracy)},
            {"test_scores", to_json(outcome.test_scores)}};
}

std::optional<EpochOutcome> outcome_from_json(const Json& json, const std::string& where) {
    if (json.is_null()) return std::nullopt;
    EpochOutcome outcome;
    Fields fields(json, where);
    fields.read("train_loss", outcome.train_loss);
    fields.read("train_accuracy", outcome.train_accuracy);
    fields.read("test_loss", outcome.test_loss);
    fields.read("test_accuracy", outcome.test_accuracy);
    fields.read_object("test_scores", outcome.test_scores, scores_from_json);
    return outcome;
}

Json to_json(const Progress& progress) {
    return {{"step", progress.step},
            {"epoch", progress.epoch},
            {"batch", progress.batch},
            {"samples", progress.samples},
            {"in_epoch", to_json(progress.in_epoch)},
            {"in_window", to_json(progress.in_window)},
            {"last", progress.last ? to_json(*progress.last) : Json(nullptr)},
            {"best_accuracy", to_json(progress.best_accuracy)}};
}

Progress progress_from_json(const Json& json, const std::string& where) {
    Progress progress;
    Fields fields(json, where);
    for (const char* name : {"step", "epoch", "batch"}) fields.require_field(name);
    fields.read("step", progress.step);
    fields.read("epoch", progress.epoch);
    fields.read("batch", progress.batch);
    fields.read("samples", progress.samples);
    fields.read_object("in_epoch", progress.in_epoch, sums_from_json);
    fields.read_object("in_window", progress.in_window, sums_from_json);
    fields.read_object("last", progress.last, outcome_from_json);
    fields.read("best_accuracy", progress.best_accuracy);
    require(progress.step >= 0 && progress.epoch >= 0 && progress.batch >= 0, "{}: expected counts from 0", where);
    return progress;
}

}  // namespace

std::string checkpoint_name(int64_t step) { return fmt::format("step-{:08}", step); }

void write_checkpoint_json(const fs::path& directory, const Checkpoint& checkpoint) {
    const MappedFile state(directory / kStateFile);
    const Json json{{"format", kFormat},
                    {"version", kVersion},
                    {"state", {{"bytes", state.bytes().size()}, {"checksum", checksum_text(state.bytes())}}},
                    {"progress", to_json(checkpoint.progress)},
                    {"train_samples", checkpoint.train_samples},
                    {"config", run_json(checkpoint.config)}};
    write_file(directory / kCheckpointFile, json.dump(2) + "\n");
}

Checkpoint read_checkpoint(const fs::path& directory, bool verify) {
    const std::string where = (directory / kCheckpointFile).string();
    const Json json = parse_json(read_file(where), where + " is damaged");
    Fields fields(json, where);
    std::string format;
    int64_t version = 0;
    fields.read("format", format);
    fields.read("version", version);
    require(format == kFormat, "{}: expected the format \"{}\", found \"{}\"", where, kFormat, format);
    require(version == kVersion, "{}: expected version {}, found {}", where, kVersion, version);
    for (const char* name : {"state", "progress", "train_samples", "config"}) fields.require_field(name);

    int64_t bytes = 0;
    std::string sum;
    Fields state(json["state"], where + ": field \"state\"");
    for (const char* name : {"bytes", "checksum"}) state.require_field(name);
    state.read("bytes", bytes);
    state.read("checksum", sum);
    const fs::path file = directory / kStateFile;
    const MappedFile mapped(file);
    const auto found = static_cast<int64_t>(mapped.bytes().size());
    require(found >= bytes, "{} is truncated: expected {} bytes, found {}", file.string(), bytes, found);
    require(found == bytes, "{} is damaged: expected {} bytes, found {}", file.string(), bytes, found);
    if (verify) {
        const std::string real = checksum_text(mapped.bytes());
        require(real == sum, "{} is damaged: expected the checksum {}, found {}", file.string(), sum, real);
    }

    Checkpoint checkpoint;
    fields.read("train_samples", checkpoint.train_samples);
    fields.read_object("progress", checkpoint.progress, progress_from_json);
    fields.read_object("config", checkpoint.config, config_from_json);
    checkpoint.config = with_model_of_run(checkpoint.config, directory.parent_path().parent_path());
    return checkpoint;
}

void load_state(const fs::path& directory, State& state) {
    load_state_file(directory / kStateFile, fmt::format("the checkpoint {}", directory.string()), StateScope::All, state);
}

}  // namespace convoy
