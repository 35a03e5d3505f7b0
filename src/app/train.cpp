// Trains a network, shows how it goes, and ends by saying what came of it and what to try next.
#include <ctime>
#include <filesystem>
#include <fstream>

#include "app/auto_plan.h"
#include "app/command.h"
#include "app/curves.h"
#include "app/observers.h"
#include "app/output.h"
#include "app/own_processors.h"
#include "app/parser.h"
#include "app/progress.h"
#include "app/signals.h"
#include "app/table.h"
#include "app/tensorboard.h"
#include "app/train_options.h"
#include "app/tuning.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "exec/share.h"
#include "train/plan_choice.h"
#include "train/task.h"
#include "train/trainer.h"

namespace convoy {

namespace {

namespace fs = std::filesystem;

// runs/MODEL-YYYYMMDD-HHMMSS, with a number behind it when that exists.
std::string fresh_directory(const std::string& model) {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    std::array<char, 32> stamp{};
    std::strftime(stamp.data(), stamp.size(), "%Y%m%d-%H%M%S", &local);
    const std::string first = fmt::format("runs/{}-{}", is_model_file(model) ? fs::path(model).stem().string() : model, stamp.data());
    std::string name = first;
    std::error_code ignored;
    for (int n = 2; fs::exists(name, ignored); ++n) name = fmt::format("{}-{}", first, n);
    return name;
}

void require_fresh(const std::string& directory) {
    std::error_code failed;
    if (!fs::exists(directory, failed)) return;
    require(fs::is_directory(directory, failed), "run directory {}: it is a file", directory);
    const bool empty = fs::is_empty(directory, failed);
    require(!failed, "run directory {}: {}", directory, failed.message());
    require(empty, "run directory {} is not empty; choose another, or go on with the run that is in it by --resume {}", directory,
            directory);
}

// The plan that "auto" stands for here: on the machine that was named, or this one.
void find_plan(const TrainArguments& arguments, const Output& output, TrainConfig& config) {
    const PlanningMachine on = planning_machine(arguments.machine, config.threads);
    const TrainConfig whole = open_task(config, Splits::TrainOnly).config;  // with the shape of the data
    const AutoPlan found = auto_plan(training_graph_of(whole, whole.batch), whole.batch, on,
                                     {.ranks = config.ranks, .dtype = config.dtype, .threads = config.threads, .explain = false});
    config.plan = text_of(plan_choice(to_json(found.plan).dump(), config.ranks));
    output.write(found.words + "\n");
}

TrainConfig configuration(const TrainArguments& arguments, const Ranks& ranks, const Output& output) {
    if (!arguments.model.empty()) known_model(arguments.model);
    TrainConfig config;
    if (resumes(arguments)) {
        const std::string directory = resumed_directory(arguments);
        config = read_config(directory);
        apply(arguments, ranks, config);
        config.run_dir = directory;
    } else {
        if (arguments.model.empty()) throw UsageError("train: say which MODEL to train; `convoy show` lists them");
        config = new_config(arguments, ranks);
        config.run_dir = arguments.run_dir.empty() ? fresh_directory(config.model) : arguments.run_dir;
        require_fresh(config.run_dir);
    }
    require_valid(config);
    if (is_auto(config.plan)) find_plan(arguments, output, config);
    return config;
}

Json value_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json scores_json(const Scores& scores) {
    Json json = Json::object();
    for (const auto& [name, value] : scores) json[name] = value;
    return json;
}

Json document(const TrainStart& start, const TrainResult& result, const std::string& curves) {
    const TrainConfig& config = start.config;
    return {{"model", config.model},
            {"data", config.data.name},
            {"test_accuracy", value_or_null(result.test_accuracy)},
            {"loss", result.train_loss},
            {"test_loss", value_or_null(result.test_loss)},
            {"train_accuracy", value_or_null(result.train_accuracy)},
            {"test_scores", scores_json(result.test_scores)},
            {"best_accuracy", value_or_null(result.best_accuracy)},
            {"samples_per_s", result.samples_per_s},
            {"seconds", result.seconds},
            {"data_wait_s", result.data_wait_s},
            {"joules", value_or_null(result.joules)},
            {"watts", value_or_null(result.watts)},
            {"energy_source", result.energy_source},
            {"read_bytes", result.read_bytes},
            {"skipped", result.skipped},
            {"steps", result.steps},
            {"epochs", result.epochs},
            {"stopped_early", result.stopped_early},
            {"run_dir", config.run_dir},
            {"curves", curves.empty() ? Json(nullptr) : Json(curves)},
            {"parameters", start.parameters},
            {"arena_bytes", start.arena_bytes},
            {"state_bytes", start.state_bytes},
            {"batch", config.batch},
            {"backend", config.backend},
            {"dtype", name_of(config.dtype)},
            {"threads", config.threads},
            {"ranks", config.ranks},
            {"plan", config.plan},
            {"seed", config.seed}};
}

// The picture is a help, not a result: a run that cannot draw it has still trained.
std::string draw(const std::string& run_dir) {
    try {
        return draw_curves(run_dir).string();
    } catch (const Error& e) {
        warn("no picture of the curves: {}", e.what());
        return "";
    }
}

void summarise(const Output& output, const std::string& program, const TrainConfig& config, const TrainResult& result,
               const std::string& curves) {
    output.line("");
    if (result.stopped_early) output.line("Stopped after step {}; go on with: {} train --resume {}", result.steps, program, config.run_dir);
    if (result.test_accuracy) {
        const bool earlier = result.best_accuracy && *result.best_accuracy > *result.test_accuracy;
        output.line("Test accuracy  {}{}", percent(*result.test_accuracy),
                    earlier ? fmt::format(" (best {})", percent(*result.best_accuracy)) : "");
    } else if (result.test_loss) {
        output.line("Test loss      {:.6g}", *result.test_loss);
    }
    if (const std::string scores = scores_text(result.test_scores); !scores.empty()) output.line("Test scores    {}", scores);
    output.line("Training loss  {:.6g}", result.train_loss);
    output.line("Time           {}, {} samples/s while training", short_time(result.seconds),
                grouped(static_cast<int64_t>(result.samples_per_s)));
    if (result.joules) output.line("Energy         {} of the GPUs while training", energy_text(*result.joules, result.watts.value_or(0)));
    output.line("Data           {} read by all ranks, {} waited for{}", short_bytes(static_cast<double>(result.read_bytes)),
                short_time(result.data_wait_s),
                result.skipped > 0 ? fmt::format("; {} pictures could not be read and were skipped", grouped(result.skipped)) : "");
    output.line("Run            {}: metrics.jsonl and .csv, config.json, checkpoints/{}", config.run_dir,
                curves.empty() ? "" : ", curves.png");
    if (result.stopped_early) return;
    output.line("\nWhat to try next:");
    output.line("  {} report {}", program, config.run_dir);
    output.line("  {} eval {}", program, config.run_dir);
    output.line("  {} train --resume {} --epochs {}", program, config.run_dir, 2 * config.epochs);
    output.line("  {} show {} --batch {} --program", program, config.model, config.batch);
}

// Up to so many ranks a run keeps the timeline of a step by itself: gathering that of more takes too long to do it unasked.
constexpr int kTracedRanks = 64;

int64_t traced_steps(const TrainArguments& arguments, const TrainConfig& config) {
    if (!arguments.trace.empty()) return arguments.trace_steps;
    return config.ranks <= kTracedRanks ? 1 : 0;
}

// Writes the traced steps as soon as they are there: to the run directory, for reports, and where --trace says.
class TraceFile : public TrainObserver {
  public:
    TraceFile(fs::path run_dir, std::string path, TrainObserver& display)
        : run_dir_(std::move(run_dir)), path_(std::move(path)), display_(display) {}
    void on_trace(const Trace& trace) override {
        const std::string text = chrome_trace(trace).dump();
        write_file(run_dir_ / "trace.json", text);
        if (path_.empty()) return;
        write_file(path_, text);
        display_.on_message(
            fmt::format("{} holds the trace of {} events; chrome://tracing and ui.perfetto.dev show it", path_, trace.events.size()));
    }

  private:
    fs::path run_dir_;
    std::string path_;
    TrainObserver& display_;
};

// The first process decides on the configuration: run directories are named by the clock, and made.
TrainConfig shared_configuration(const TrainArguments& arguments, Ranks& ranks, const Output& output) {
    const std::string text = ranks.leads() ? to_json(configuration(arguments, ranks, output)).dump() : "";
    return config_from_json(Json::parse(ranks.share(text)));
}

// What programs are compiled with: measured costs, with --tune. A run that goes on takes those it began with, from its directory, so that it goes on bit for bit.
std::shared_ptr<const Costs> costs_for(const TrainConfig& given, bool resume, Link* link, const Output& output) {
    if (!given.tune) return nullptr;
    const bool leads = !link || link->rank() == 0;
    const TrainConfig config = open_task(given).config;
    const SessionOptions session = session_options(config, link);
    const fs::path kept = fs::path(config.run_dir) / "tuning.json";
    std::error_code none;
    const std::string text = share_text(link, 0, leads && resume && fs::exists(kept, none) ? read_file(kept) : "");
    if (!text.empty()) {
        const Json document = Json::parse(text, nullptr, false);
        try {
            require(document.is_object() && document.value("uses_tuned", Json()).is_boolean(),
                    "expected what tuning found, found something else");
            if (!document["uses_tuned"].get<bool>()) return nullptr;
            return std::make_shared<MeasuredCosts>(measured_costs_from_json(document));
        } catch (const Error& e) {
            fail("{}: {}; an older version may have written it, with which the run can go on", kept.string(), e.what());
        }
    }
    const Tuning tuning = tune_here(training_graph_of(config, config.batch), session);
    if (leads) {
        output.line("{}", summary_of(tuning));
        Json document{{"uses_tuned", tuning.costs != nullptr}};
        if (tuning.costs) document.update(to_json(*tuning.costs));
        fs::create_directories(config.run_dir, none);
        write_file(kept, document.dump(1) + "\n");
    }
    return tuning.costs;
}

int train_command(const TrainArguments& arguments, const std::string& program, Ranks& ranks) {
    const Output output(arguments.common.json, !ranks.leads());
    if (ranks.leads()) expect_files({{"--trace", arguments.trace}, {"--json", arguments.common.json}}, {{"--init", arguments.values.init}});
    const TrainConfig config = shared_configuration(arguments, ranks, output);
    const StopSignals signals(ranks.leads() ? "finishing this step, writing a checkpoint (again to quit at once)" : "");
    TrainStart start;
    TrainResult result;
    ranks.run(config.ranks, [&](Link* link) {
        const OwnProcessors own(link, config.threads);
        const TrainOptions options{.resume = resumes(arguments),
                                   .stop = &signals.stop(),
                                   .tensors = arguments.tensorboard,
                                   .trace_steps = traced_steps(arguments, config),
                                   .link = link,
                                   .costs = costs_for(config, resumes(arguments), link, output)};
        if (link && link->rank() > 0) {
            TrainObserver nobody;
            const TrainResult mine = train(config, options, nobody);
            if (!ranks.leads()) result = mine;
            return;
        }
        ProgressDisplay display(output);
        TraceFile trace(config.run_dir, arguments.trace, display);
        std::optional<TensorBoard> board;
        Observers observers;
        observers.add(display);
        observers.add(trace);
        if (arguments.tensorboard) {
            fs::create_directories(config.run_dir);
            observers.add(board.emplace(config.run_dir));
        }
        result = train(config, options, observers);
        start = display.start();
    });
    const int code = result.stopped_early ? signals.exit_code() : 0;
    if (!ranks.leads()) return code;
    const std::string curves = draw(config.run_dir);
    summarise(output, program, start.config, result, curves);
    output.result(document(start, result, curves));
    return code;
}

}  // namespace

Command add_train(Parser& program) {
    Parser* const parser = program.add_subcommand("train", "");
    describe(
        *parser,
        "Train a model on a dataset.\n"
        "The test split is tried after each epoch. Metrics, configuration, checkpoints and a picture of the curves go to a run directory;\n"
        "Ctrl-C ends the run cleanly with a checkpoint, and --resume goes on as if nothing had happened.",
        "  convoy train lenet5 --data mnist --epochs 3\n"
        "  convoy train lenet5 --data mnist --optimizer adam --schedule cosine --warmup 0.5 --run-dir runs/adam\n"
        "  convoy train resnet18_cifar --data synthetic --batch 32 --micro-batches 2\n"
        "  convoy train lenet5 --data mnist --plan sample:2,height:2\n"
        "  convoy train resnet18 --data photos --init resnet18.safetensors --skip \"fc.*\" --freeze \"layer1.*\" --freeze \"layer2.*\"\n"
        "  mpirun -n 4 convoy train resnet18_cifar --data synthetic --plan zero\n"
        "  convoy train --resume runs/adam --epochs 6");
    const auto arguments = add_train_options(*parser);
    return {parser, [arguments, &program] {
                return run_with_ranks(arguments->ranks, [&](Ranks& ranks) { return train_command(*arguments, program.get_name(), ranks); });
            }};
}

}  // namespace convoy
