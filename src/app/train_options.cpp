#include "app/train_options.h"

#include <tuple>

#include "app/auto_plan.h"
#include "app/parser.h"

namespace convoy {

namespace {

// Adds an option whose value is stored in `values` by the parser and put into a configuration by `change`.
class Adder {
  public:
    Adder(Parser& parser, const std::shared_ptr<TrainArguments>& arguments) : parser_(parser), arguments_(*arguments) {}

    template <class T>
    Option* add(const std::string& name, T TrainConfig::*field, const std::string& text, const std::string& help) {
        return add(name, arguments_.values.*field, text, help,
                   [this_ = &arguments_, field](TrainConfig& c) { c.*field = this_->values.*field; });
    }
    template <class T>
    Option* add(const std::string& name, T& value, const std::string& text, const std::string& help,
                std::function<void(TrainConfig&)> change) {
        Option* const option = parser_.add_option(name, value, help)->option_text(text);
        arguments_.changes.emplace_back(option, std::move(change));
        return option;
    }
    void flag(const std::string& name, bool& value, const std::string& help, std::function<void(TrainConfig&)> change) {
        arguments_.changes.emplace_back(parser_.add_flag(name, value, help), std::move(change));
    }
    void changes_by(const Option* option, std::function<void(TrainConfig&)> change) {
        arguments_.changes.emplace_back(option, std::move(change));
    }

    void idle_where(const Option* option, std::function<std::string(const TrainConfig&)> why) {
        arguments_.idle.emplace_back(option, std::move(why));
    }

  private:
    Parser& parser_;
    TrainArguments& arguments_;
};

void add_data(Adder& adder, TrainArguments& a) {
    DataConfig& data = a.values.data;
    adder.add("--data", data.name, "D",
              "mnist, synthetic, or a path: folders of pictures, IDX, CIFAR, npy, npz, HDF5 or tar (default: mnist)",
              [&](TrainConfig& c) { c.data.name = data.name; });
    adder.add("--data-dir", data.path, "DIR", "Where the files of mnist are (default: the usual places)",
              [&](TrainConfig& c) { c.data.path = data.path; });
    adder.add("--augment", data.augment, "LIST",
              "What training does at random: none, or some of random-resized-crop, random-crop[:PAD], flip, rot90, jitter[:X] (default: "
              "random-resized-crop,flip for pictures in files, random-crop:4,flip for CIFAR, else none)",
              [&](TrainConfig& c) { c.data.augment = data.augment; });
    adder.add(
        "--normalize", data.normalize, "WHAT",
        "none, imagenet, cifar, mnist, or MEANS/DEVIATIONS by channel (default: imagenet for pictures in files, cifar, mnist, else none)",
        [&](TrainConfig& c) { c.data.normalize = data.normalize; });
    allow_whole(adder.add("--resize", data.resize, "R", "Short side of pictures before a crop (default: 256 where the input is 224)",
                          [&](TrainConfig& c) { c.data.resize = data.resize; }),
                1);
    allow_whole(adder.add("--data-workers", data.workers, "N",
                          "Threads of each rank that read and decode ahead (default: as many as compute for pictures in files, else 1)",
                          [&](TrainConfig& c) { c.data.workers = data.workers; }),
                1, kMostThreads);
    adder.flag("--strict", a.strict, "A picture that cannot be read ends the run, instead of being skipped",
               [](TrainConfig& c) { c.data.strict = true; });
    const auto limit = [](TrainConfig& c, int64_t DataConfig::*most, int64_t DataConfig::*made, int64_t count) {
        c.data.*(c.data.name == "synthetic" ? made : most) = count;
    };
    allow_whole(adder.add("--train-samples", a.train_samples, "N", "Train on the first N samples (default: all; synthetic: 1024)",
                          [&, limit](TrainConfig& c) { limit(c, &DataConfig::most_train, &DataConfig::synthetic_train, a.train_samples); }),
                1);
    allow_whole(adder.add("--test-samples", a.test_samples, "N", "Test on the first N samples (default: all; synthetic: 256)",
                          [&, limit](TrainConfig& c) { limit(c, &DataConfig::most_test, &DataConfig::synthetic_test, a.test_samples); }),
                1);
}

void add_optimizer_options(Parser& parser, Adder& adder, TrainArguments& a) {
    adder.changes_by(add_optimizer(parser, a.optimizer), [&](TrainConfig& c) { c.optimizer.rule.rule = rule_named(a.optimizer); });
    UpdateRule& rule = a.values.optimizer.rule;
    allow_real(adder.add("--momentum", rule.momentum, "X", "Of momentum, nesterov, rmsprop and lars (default: 0.9; rmsprop: 0)",
                         [&](TrainConfig& c) { c.optimizer.rule.momentum = rule.momentum; }),
               {.low = 0, .high = 1});
    allow_real(adder.add("--weight-decay", rule.weight_decay, "X", "(default: 0)",
                         [&](TrainConfig& c) { c.optimizer.rule.weight_decay = rule.weight_decay; }),
               {.low = 0});
    allow_real(adder.add("--clip-norm", a.values.optimizer.clip_norm, "X", "Limit on the norm of the whole gradient (default: none)",
                         [&](TrainConfig& c) { c.optimizer.clip_norm = a.values.optimizer.clip_norm; }),
               {.low = 0});
}

void add_schedule(Adder& adder, TrainArguments& a) {
    Schedule& schedule = a.values.schedule;
    allow_real(adder.add("--lr", schedule.lr, "X", "Learning rate (default: one that usually suits the optimizer)",
                         [&](TrainConfig& c) { c.schedule.lr = schedule.lr; }),
               {.low = 0, .open = true});
    allow_only(adder.add("--schedule", a.schedule, "NAME", "How the rate falls: constant, step or cosine (default: constant)",
                         [&](TrainConfig& c) { c.schedule.decay = decay_named(a.schedule); }),
               {"constant", "step", "cosine"});
    allow_whole(adder.add("--step-epochs", schedule.every_epochs, "E", "With --schedule step: epochs between two steps (default: 30)",
                          [&](TrainConfig& c) { c.schedule.every_epochs = schedule.every_epochs; }),
                1);
    allow_real(adder.add("--gamma", schedule.gamma, "X", "With --schedule step: factor of each step (default: 0.1)",
                         [&](TrainConfig& c) { c.schedule.gamma = schedule.gamma; }),
               {.low = 0, .open = true});
    allow_real(adder.add("--warmup", schedule.warmup_epochs, "E", "Epochs over which the rate rises to --lr first (default: 0)",
                         [&](TrainConfig& c) { c.schedule.warmup_epochs = schedule.warmup_epochs; }),
               {.low = 0});
    allow_whole(
        adder.add("--reference-batch", schedule.reference_batch, "B", "The batch that --lr is for; the rate is scaled to the real one",
                  [&](TrainConfig& c) { c.schedule.reference_batch = schedule.reference_batch; }),
        1);
}

void add_run(Parser& parser, Adder& adder, TrainArguments& a) {
    parser.add_option("--run-dir", a.run_dir, "Where metrics, configuration and checkpoints go (default: runs/MODEL-TIME)")
        ->option_text("DIR");
    a.resume_option =
        parser.add_option("--resume", a.resume, "Go on in this run directory, or in --run-dir")->expected(0, 1)->option_text("[DIR]");
    allow_whole(adder.add("--checkpoint-every", &TrainConfig::checkpoint_every, "STEPS", "Also between the ends of epochs (default: no)"),
                0);
    allow_whole(adder.add("--keep", &TrainConfig::keep, "N", "Checkpoints to keep, the newest ones (default: 3)"), 1);
    allow_whole(adder.add("--log-every", &TrainConfig::log_every, "STEPS", "Between two lines of metrics; 0: epochs only (default: 50)"),
                0);
}

// Weights to begin with, and what of them is learned.
void add_transfer(Adder& adder) {
    adder.add("--init", &TrainConfig::init, "FILE", "Weights to begin with: a safetensors file, or the directory of a run or a checkpoint");
    for (const auto& [name, field, help] :
         {std::tuple{"--skip", &TrainConfig::skip,
                     "With --init: tensors to leave at their random values, e.g. \"fc.*\" for another number of classes"},
          std::tuple{"--freeze", &TrainConfig::freeze, "Parameters that are not learned, e.g. \"layer1.*\"; they cost no gradient"}})
        adder.add(name, field, "PATTERN", help)->take_all();
}

// What is written beside the run's own files.
void add_outputs(Parser& parser, TrainArguments& a) {
    parser.add_flag("--tensorboard", a.tensorboard,
                    "Also write an event file with scalars, examples, and histograms of parameters and gradients");
    parser.add_option("--trace", a.trace, "Write some steps of all ranks as a trace that Chrome's tracing page opens")->option_text("FILE");
    allow_whole(
        parser.add_option("--trace-steps", a.trace_steps, "With --trace: how many, from the third on (default: 3)")->option_text("N"), 1);
}

// Options that all commands have: as changes of a configuration.
void add_common_changes(Parser& parser, Adder& adder, TrainArguments& a) {
    add_common(parser, a.common, "64");
    const CommonOptions& common = a.common;
    adder.changes_by(parser.get_option("--threads"), [&](TrainConfig& c) { c.threads = common.threads; });
    adder.changes_by(parser.get_option("--backend"), [&](TrainConfig& c) { c.backend = common.backend; });
    adder.changes_by(parser.get_option("--dtype"), [&](TrainConfig& c) { c.dtype = dtype_named(common.dtype); });
    adder.changes_by(parser.get_option("--device"), [&](TrainConfig& c) { c.device = common.device; });
    adder.changes_by(parser.get_option("--seed"), [&](TrainConfig& c) { c.seed = common.seed; });
    adder.changes_by(parser.get_option("--input"), [&](TrainConfig& c) { c.input = parse_dims(common.input); });
    adder.changes_by(parser.get_option("--classes"), [&](TrainConfig& c) { c.classes = common.classes; });
    adder.changes_by(parser.get_option("--batch"), [&](TrainConfig& c) { c.batch = common.batch; });
}

void add_tuning_changes(Parser& parser, Adder& adder, TrainArguments& a) {
    add_tuning(parser, a.tuning);
    adder.changes_by(parser.get_option("--tune"), [&](TrainConfig& c) { c.tune = a.tuning.tune; });
    adder.changes_by(parser.get_option("--numerics"), [&](TrainConfig& c) { c.limits.numerics = limits_of(a.tuning).numerics; });
    adder.changes_by(parser.get_option("--workspace-limit"),
                     [&](TrainConfig& c) { c.limits.workspace_bytes = limits_of(a.tuning).workspace_bytes; });
}

double usual_rate(Rule rule) {
    switch (rule) {
        case Rule::Sgd: return 0.05;
        case Rule::Momentum:
        case Rule::Nesterov:
        case Rule::AdaGrad: return 0.01;
        case Rule::RmsProp:
        case Rule::Adam:
        case Rule::AdamW: return 0.001;
        case Rule::Lars: return 5;
        case Rule::Lamb: return 0.005;
    }
    return 0.01;
}

// What would be ignored in silence.
void add_idle(Parser& parser, Adder& adder, TrainArguments& a) {
    adder.idle_where(parser.get_option("--momentum"), [](const TrainConfig& c) {
        const Rule rule = c.optimizer.rule.rule;
        const bool used = rule == Rule::Momentum || rule == Rule::Nesterov || rule == Rule::RmsProp || rule == Rule::Lars;
        return used ? "" : fmt::format("--momentum is for momentum, nesterov, rmsprop and lars; the optimizer is {}", name_of(rule));
    });
    for (const char* name : {"--step-epochs", "--gamma"})
        adder.idle_where(parser.get_option(name), [name](const TrainConfig& c) {
            return c.schedule.decay == Decay::Step ? "" : fmt::format("{} is for --schedule step, which was not asked for", name);
        });
    adder.idle_where(parser.get_option("--data-dir"), [](const TrainConfig& c) {
        return c.data.name == "mnist" ? "" : fmt::format("--data-dir is for --data mnist; the data are {}", c.data.name);
    });
    adder.idle_where(parser.get_option("--trace-steps"), [&a](const TrainConfig&) {
        return std::string(a.trace.empty() ? "--trace-steps is for --trace, which was not asked for" : "");
    });
    for (const char* name : {"--machine", "--network", "--per-node"})
        adder.idle_where(parser.get_option(name), [name, &a](const TrainConfig&) {
            return is_auto(a.ranks.plan) ? "" : fmt::format("{} is for --plan auto, which was not asked for", name);
        });
}

}  // namespace

std::shared_ptr<TrainArguments> add_train_options(Parser& parser) {
    const auto arguments = std::make_shared<TrainArguments>();
    TrainArguments& a = *arguments;
    Adder adder(parser, arguments);
    adder.changes_by(add_model(parser, a.model), [&a](TrainConfig& c) { c.model = a.model; });
    add_data(adder, a);
    allow_whole(adder.add("--epochs", &TrainConfig::epochs, "E", "Times through the data (default: 1)"), 1);
    adder.changes_by(add_micro_batches(parser, a.values.micro_batches), [&a](TrainConfig& c) { c.micro_batches = a.values.micro_batches; });
    add_optimizer_options(parser, adder, a);
    add_schedule(adder, a);
    allow_real(adder.add("--label-smoothing", &TrainConfig::label_smoothing, "X", "(default: 0)"), {.low = 0, .high = 0.999});
    adder.flag("--no-dropout", a.no_dropout, "Leave the model's dropout layers out", [](TrainConfig& c) { c.dropout = false; });
    adder.flag("--no-validation", a.no_validation, "Do not test after each epoch", [](TrainConfig& c) { c.validate = false; });
    add_transfer(adder);
    add_run(parser, adder, a);
    add_outputs(parser, a);
    add_common_changes(parser, adder, a);
    add_rank_options(parser, a.ranks);
    parser.get_option("--plan")
        ->option_text("SPEC|FILE|auto")
        ->description(
            "How ranks share the work: sample:4, sample:2,height:2, channel:4@x, ... (any of sample, depth, height, width, channel, "
            "filter), "
            "data, spatial, hybrid-fc, zero, auto (found for --machine or this one), or a JSON file such as `convoy plan` writes (default: "
            "data)");
    add_tuning_changes(parser, adder, a);
    add_machine_options(parser, a.machine, false);
    add_idle(parser, adder, a);
    return arguments;
}

bool resumes(const TrainArguments& arguments) { return arguments.resume_option->count() > 0; }

std::string resumed_directory(const TrainArguments& arguments) {
    const std::string& named = arguments.resume.empty() ? arguments.run_dir : arguments.resume;
    if (named.empty()) throw UsageError("train: --resume needs the directory of the run to go on with: --resume DIR");
    if (!arguments.resume.empty() && !arguments.run_dir.empty() && arguments.resume != arguments.run_dir)
        throw UsageError(fmt::format("train: --resume says {}, --run-dir says {}; a run goes on in its own directory", arguments.resume,
                                     arguments.run_dir));
    return named;
}

void apply(const TrainArguments& arguments, const Ranks& ranks, TrainConfig& config) {
    for (const auto& [option, change] : arguments.changes)
        if (option->count() > 0) change(config);
    for (const auto& [option, why] : arguments.idle)
        if (const std::string fault = option->count() > 0 ? why(config) : ""; !fault.empty()) throw UsageError(fault);
    RankOptions wanted = arguments.ranks;
    const int asked = ranks.launched() > 0 ? ranks.launched() : wanted.ranks;
    if (wanted.plan.empty() && (asked == 0 || asked == config.ranks)) {
        wanted.plan = config.plan;
        wanted.ranks = config.ranks;
    }
    const PlanChoice choice = choose_plan(wanted, ranks);
    const bool same = choice.ranks == config.ranks;
    config.ranks = choice.ranks;
    config.plan = text_of(choice);
    if (!same) config.threads = threads_for(arguments.common, ranks, config.ranks);
}

TrainConfig new_config(const TrainArguments& arguments, const Ranks& ranks) {
    TrainConfig config;
    const SessionOptions session = session_options(arguments.common);
    config.backend = session.backend;
    if (ranks.launched() > 0) config.ranks = ranks.launched();
    config.threads = threads_for(arguments.common, ranks, config.ranks);
    config.schedule.lr = usual_rate(rule_named(arguments.optimizer));
    if (arguments.optimizer == "rmsprop") config.optimizer.rule.momentum = 0;
    apply(arguments, ranks, config);
    return config;
}

}  // namespace convoy
