// Loss and accuracy of a trained network on a dataset.
#include <filesystem>

#include "app/command.h"
#include "app/options.h"
#include "app/output.h"
#include "app/parser.h"
#include "app/progress.h"
#include "app/ranks.h"
#include "app/signals.h"
#include "app/table.h"
#include "base/json.h"
#include "train/evaluate.h"
#include "train/weights.h"

namespace convoy {

namespace {

struct EvalArguments {
    CommonOptions common;
    RankOptions ranks;
    std::string what, data, data_dir, weights, checkpoint, split = "test", normalize;
    int64_t samples = 0, resize = 0;
    int data_workers = 0;
    bool strict = false;
    const Parser* parser = nullptr;

    bool given(const char* option) const { return parser->count(option) > 0; }
};

// The weights to use: a directory given in the model's place, or what an option names; empty for none.
std::string weights_of(const EvalArguments& arguments, bool directory) {
    const int named = (directory ? 1 : 0) + (arguments.weights.empty() ? 0 : 1) + (arguments.checkpoint.empty() ? 0 : 1);
    if (named > 1) throw UsageError("eval: weights are named more than once; give one of RUN_DIR, --weights and --checkpoint");
    if (directory) return arguments.what;
    return arguments.weights.empty() ? arguments.checkpoint : arguments.weights;
}

TrainConfig config_for(const EvalArguments& arguments, bool directory, const std::string& weights, const Ranks& ranks) {
    const auto trained = weights.empty() ? std::nullopt : config_of_weights(weights);
    TrainConfig config;
    if (trained) config = *trained;
    if (directory) {
        require(trained.has_value(), "{}: expected the directory of a run or a checkpoint; found no configuration in it", arguments.what);
    } else {
        const std::string name = known_model(arguments.what).name;
        require(!trained || same_model(trained->model, name), "{}: it holds a {}, not a {}", weights, trained ? trained->model : "", name);
        config.model = name;
    }
    if (!trained && arguments.data.empty()) throw UsageError("eval: say with --data what to test on: mnist, synthetic or a directory");

    const CommonOptions& common = arguments.common;
    if (!arguments.data.empty()) {
        // Another dataset: its shape and classes count unless the command line says otherwise, and the model's weights will tell whether they fit.
        if (trained && arguments.data != config.data.name && arguments.data != "synthetic") {
            config.input = {};
            config.classes = 0;
        }
        config.data.name = arguments.data;
        config.data.path = "";
    }
    if (arguments.given("--normalize")) config.data.normalize = arguments.normalize;
    if (arguments.given("--resize")) config.data.resize = arguments.resize;
    if (arguments.given("--data-workers")) config.data.workers = arguments.data_workers;
    if (arguments.strict) config.data.strict = true;
    config.data.augment = "none";
    if (arguments.given("--data-dir")) config.data.path = arguments.data_dir;
    if (arguments.samples > 0) {
        (arguments.split == "train" ? config.data.most_train : config.data.most_test) = arguments.samples;
        if (config.data.name == "synthetic" && !trained)
            (arguments.split == "train" ? config.data.synthetic_train : config.data.synthetic_test) = arguments.samples;
    }
    if (!common.input.empty()) config.input = parse_dims(common.input);
    if (common.classes > 0) config.classes = common.classes;
    if (common.batch > 0) config.batch = common.batch;
    if (arguments.given("--seed")) config.seed = common.seed;
    if (arguments.given("--device")) config.device = common.device;
    if (arguments.given("--dtype") || !trained) config.dtype = dtype_named(common.dtype);
    CommonOptions computing = common;
    computing.dtype = name_of(config.dtype);
    const SessionOptions session = session_options(computing);
    config.backend = session.backend;
    const PlanChoice choice = choose_plan(arguments.ranks, ranks);
    config.ranks = choice.ranks;
    config.plan = text_of(choice);
    config.threads = threads_for(common, ranks, config.ranks);
    config.run_dir = "";  // nothing is written
    config.micro_batches = 1;
    return config;
}

// What to evaluate: decided by the first process for all.
struct Evaluation {
    TrainConfig config;
    std::string weights;  // a file, whatever the user named; empty: none
};
Evaluation shared_evaluation(const EvalArguments& arguments, const std::string& weights, bool directory, Ranks& ranks) {
    Json decided = Json::object();
    if (ranks.leads()) {
        decided["config"] = to_json(config_for(arguments, directory, weights, ranks));
        decided["weights"] = weights.empty() ? "" : weights_file(weights).string();
    }
    decided = Json::parse(ranks.share(decided.dump()));
    return {config_from_json(decided["config"]), decided["weights"]};
}

int eval(const EvalArguments& arguments, Ranks& ranks) {
    const Output output(arguments.common.json, !ranks.leads());
    std::error_code ignored;
    const bool directory = std::filesystem::is_directory(arguments.what, ignored);
    const std::string weights = weights_of(arguments, directory);
    const Evaluation evaluation = shared_evaluation(arguments, weights, directory, ranks);
    const TrainConfig& config = evaluation.config;

    const StopSignals signals(ranks.leads() ? "stopping (again to quit at once)" : "");
    const Split split = arguments.split == "train" ? Split::Train : Split::Test;
    EvalResult result;
    ranks.run(config.ranks, [&](Link* link) {
        const EvalResult mine = evaluate(config, evaluation.weights, {.split = split, .stop = &signals.stop(), .link = link});
        if (!link || link->rank() == 0 || !ranks.leads()) result = mine;
    });
    if (result.samples == 0) return signals.exit_code();

    output.line("{} on {} ({} split, {} samples): loss {:.4f}{}", config.model, config.data.name, arguments.split, grouped(result.samples),
                result.loss, result.accuracy ? fmt::format(", accuracy {}", percent(*result.accuracy)) : "");
    output.line("{}, {} samples/s, backend {}, {}, {} threads{}", short_time(result.seconds),
                grouped(static_cast<int64_t>(result.samples_per_s)), config.backend, name_of(config.dtype), config.threads,
                config.ranks > 1 ? fmt::format(" on each of {} ranks", config.ranks) : "");
    if (const std::string text = scores_text(result.scores); !text.empty()) output.line("{}", text);
    if (weights.empty() && !is_model_file(config.model))
        output.line("(no weights were given: this is the model as it begins with seed {})", config.seed);
    Json scores = Json::object();
    for (const auto& [name, value] : result.scores) scores[name] = value;
    output.result({{"model", config.model},
                   {"data", config.data.name},
                   {"split", arguments.split},
                   {"weights", weights.empty() ? Json(nullptr) : Json(weights)},
                   {"samples", result.samples},
                   {"loss", result.loss},
                   {"scores", scores},
                   {"accuracy", result.accuracy ? Json(*result.accuracy) : Json(nullptr)},
                   {"seconds", result.seconds},
                   {"samples_per_s", result.samples_per_s},
                   {"backend", config.backend},
                   {"dtype", name_of(config.dtype)},
                   {"threads", config.threads},
                   {"ranks", config.ranks},
                   {"plan", config.plan}});
    return 0;
}

}  // namespace

Command add_eval(Parser& program) {
    Parser* const parser = program.add_subcommand("eval", "");
    describe(*parser,
             "Evaluate a trained network: its loss and accuracy on a dataset.\n"
             "A run directory brings its model, its data and its newest checkpoint; a model by name takes its weights from --weights or\n"
             "--checkpoint. The test split is used unless --split says otherwise.",
             "  convoy eval runs/demo\n"
             "  convoy eval lenet5 --data mnist --weights weights.safetensors\n"
             "  convoy eval lenet5 --data mnist --checkpoint runs/demo --split train --samples 10000 --json -\n"
             "  convoy eval runs/demo --plan sample:2");
    const auto arguments = std::make_shared<EvalArguments>();
    arguments->parser = parser;
    parser->add_option("MODEL|RUN_DIR", arguments->what, "A model by name or an .onnx file, or the directory of a run or a checkpoint")
        ->option_text(" ")
        ->required();
    parser->add_option("--data", arguments->data, "mnist, synthetic, or a path (default: what the run was trained on)")->option_text("D");
    parser->add_option("--data-dir", arguments->data_dir, "Where the files of mnist are (default: the usual places)")->option_text("DIR");
    parser
        ->add_option("--normalize", arguments->normalize, "As for `train` (default: as the run was trained, or what is usual for the data)")
        ->option_text("WHAT");
    allow_whole(parser->add_option("--resize", arguments->resize, "Short side of pictures before the centre crop")->option_text("R"), 1);
    allow_whole(
        parser->add_option("--data-workers", arguments->data_workers, "Threads of each rank that read and decode ahead")->option_text("N"),
        1, kMostThreads);
    parser->add_flag("--strict", arguments->strict, "A picture that cannot be read is an error, instead of being skipped");
    add_weights(*parser, arguments->weights);
    parser->add_option("--checkpoint", arguments->checkpoint, "The directory of a run (its newest checkpoint) or of a checkpoint")
        ->option_text("DIR");
    allow_only(parser->add_option("--split", arguments->split, "train or test (default: test)")->option_text("SPLIT"), {"train", "test"});
    allow_whole(parser->add_option("--samples", arguments->samples, "At most so many samples, the first ones")->option_text("N"), 1);
    add_common(*parser, arguments->common, "the run's, or 64");
    add_rank_options(*parser, arguments->ranks);
    return {parser, [arguments] { return run_with_ranks(arguments->ranks, [&](Ranks& ranks) { return eval(*arguments, ranks); }); }};
}

}  // namespace convoy
