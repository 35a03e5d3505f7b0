// Training by many ranks: the loss curve of one process under any plan, through changes of plan, and stopping together.
#include <cmath>

#include "base/test_count.h"
#include "comm/thread_world.h"
#include "kernels/backend.h"
#include "model/zoo.h"
#include "program/compile.h"
#include "train/evaluate.h"
#include "train/plan_choice.h"
#include "train/task.h"
#include "train/testing.h"
#include "train/weights.h"

namespace convoy {
namespace {

class ParallelTest : public TrainTest {};

TrainConfig exact_config(const std::filesystem::path& run_dir = {}) {
    TrainConfig config = small_config(run_dir);
    config.dtype = DType::f64;
    config.log_every = 1;
    return config;
}

TrainConfig under(TrainConfig config, const std::string& plan, int ranks = 0) {
    const PlanChoice choice = plan_choice(plan, ranks);
    config.ranks = choice.ranks;
    config.plan = text_of(choice);
    return config;
}

// Trains on thread ranks; what every rank saw.
std::vector<std::unique_ptr<Recorder>> train_ranks(const TrainConfig& config, bool resume = false, int64_t stop_after = -1,
                                                   Rank stopper = 0) {
    std::vector<std::unique_ptr<Recorder>> recorders;
    for (int r = 0; r < config.ranks; ++r) recorders.push_back(std::make_unique<Recorder>(r == stopper ? stop_after : -1));
    ThreadWorld world(config.ranks);
    run_ranks(world, [&](Transport& transport) {
        Link link(transport, std::chrono::seconds(60));
        Recorder& recorder = *recorders[static_cast<size_t>(transport.rank())];
        train(config, {.resume = resume, .stop = &recorder.stop, .link = config.ranks > 1 ? &link : nullptr}, recorder);
    });
    return recorders;
}

void expect_same_curve(const Recorder& one, const Recorder& many, const std::string& what, size_t from = 0) {
    ASSERT_GT(many.steps.size(), 0u);
    ASSERT_LE(from + many.steps.size(), one.steps.size());
    for (size_t i = 0; i < many.steps.size(); ++i)
        EXPECT_NEAR(many.steps[i].loss, one.steps[from + i].loss, 1e-9) << what << ", step " << from + i + 1;
    for (const EpochReport& epoch : many.epochs) {
        const EpochReport& same = one.epochs[static_cast<size_t>(epoch.epoch - 1)];
        EXPECT_NEAR(epoch.validation->loss, same.validation->loss, 1e-9) << what;
        EXPECT_EQ(epoch.validation->accuracy, same.validation->accuracy) << what;
    }
}

// 37 samples in batches of 8: the last batch has 5, which no number of ranks here divides; validation ends with 3.
TEST_F(ParallelTest, EveryPlanHasTheCurveOfOneProcess) {
    Recorder one;
    run(exact_config(), one);
    for (const std::string plan :
         {"sample:2", "sample:4", "sample:2,height:2", "channel:2@x", "channel:2@y", "channel:2,filter:2@w", "height:3"}) {
        const auto many = train_ranks(under(exact_config(), plan));
        for (const auto& rank : many) expect_same_curve(one, *rank, plan);
    }
    for (const char* preset : {"data", "zero", "hybrid-fc"})
        expect_same_curve(one, *train_ranks(under(exact_config(), preset, 2))[1], preset);
}

// Of 8 + 1 samples the last batch has a single one: all ranks but one have nothing to do.
TEST_F(ParallelTest, ALastBatchOfOneSample) {
    TrainConfig config{.model = "resnet20", .input = {3, 8, 8}, .classes = 3, .epochs = 1, .batch = 4, .seed = 3, .log_every = 1};
    config.dtype = DType::f64;
    config.data = {.name = "synthetic", .synthetic_train = 9, .synthetic_test = 5};
    config.schedule.lr = 0.01;
    Recorder one;
    run(config, one);
    for (const char* plan : {"sample:4", "sample:2,channel:2@x", "height:2"})
        expect_same_curve(one, *train_ranks(under(config, plan))[0], plan);
}

TEST_F(ParallelTest, MicroBatches) {
    TrainConfig config = exact_config();
    config.micro_batches = 2;
    Recorder one;
    run(config, one);
    for (const char* plan : {"sample:2", "sample:3,height:2"}) expect_same_curve(one, *train_ranks(under(config, plan))[0], plan);
}

TEST_F(ParallelTest, ACheckpointOfAnyPlanGoesOnUnderAnyOther) {
    Recorder one;
    run(exact_config(), one);
    const TrainConfig config = exact_config(dir_ / "run");
    const auto four = train_ranks(under(config, "sample:2,height:2"), false, 3);
    const auto two = train_ranks(under(config, "channel:2@x"), true, 7);
    Recorder last;
    const TrainResult end = run(config, last, true);
    expect_same_curve(one, *four[0], "sample:2,height:2");
    expect_same_curve(one, *two[0], "channel:2@x", 3);
    expect_same_curve(one, last, "one process", 7);
    EXPECT_EQ(end.steps, 10);
    // Only the first rank writes, each step once.
    const std::string metrics = read_file(dir_ / "run" / "metrics.jsonl");
    EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 10 + 2);
    // A checkpoint is that of one process, optimizer state included, whoever wrote it.
    run(exact_config(dir_ / "whole"));
    const SafetensorsFile whole(weights_file(dir_ / "whole")), parts(weights_file(dir_ / "run"));
    EXPECT_EQ(whole.names(), parts.names());
    for (const std::string& name : whole.names()) EXPECT_LE(relative_error(parts.read(name), whole.read(name), 1e-3), 1e-9) << name;
}

// Whoever is asked to stop, all stop after the same step.
TEST_F(ParallelTest, AllRanksStopTogether) {
    const TrainConfig config = under(exact_config(dir_), "sample:2,height:2");
    const auto ranks = train_ranks(config, false, 4, 2);
    for (const auto& rank : ranks) {
        EXPECT_EQ(rank->steps.size(), 4u);
        EXPECT_EQ(rank->checkpoints.back(), 4);
    }
    EXPECT_EQ(CheckpointStore(dir_).list()[0].filename(), "step-00000004");
}

// A number that is not finite ends all ranks, with one message that names the layer.
TEST_F(ParallelTest, NanEndsAllRanks) {
    TrainConfig config = under(small_config(dir_), "sample:2");
    config.schedule = {.lr = 1e30};
    for (const bool fill : {false, true}) {  // ranks that fill the machine carry nothing into the next step
        ThreadWorld world(2);
        const std::string message = error_of([&] {
            run_ranks(world, [&](Transport& transport) {
                Link link(transport, std::chrono::seconds(60));
                link.set_fills_machine(fill);
                TrainObserver quiet;
                train(config, {.link = &link}, quiet);
            });
        });
        expect_parts(message, {"rank", "the loss is", "layer", "was not done"});
        EXPECT_EQ(message.find("was not finite before the step began"), std::string::npos) << message;
    }
}

TEST_F(ParallelTest, AFailingRankEndsTheOthers) {
    const TrainConfig config = under(exact_config(), "sample:2");
    class Thrower : public TrainObserver {
        void on_step(const StepReport& report) override {
            if (report.step == 2) fail("the cable is loose");
        }
    };
    ThreadWorld world(2);
    const std::string message = error_of([&] {
        run_ranks(world, [&](Transport& transport) {
            Link link(transport, std::chrono::seconds(60));
            Thrower thrower;
            TrainObserver quiet;
            train(config, {.link = &link}, transport.rank() == 1 ? static_cast<TrainObserver&>(thrower) : quiet);
        });
    });
    expect_parts(message, {"rank 1", "the cable is loose"});
}

TEST_F(ParallelTest, Evaluation) {
    const TrainConfig config = exact_config(dir_);
    const TrainResult trained = run(config);
    for (const char* plan : {"sample:4", "height:2", "channel:2@y"}) {
        const TrainConfig parallel = under(config, plan);
        ThreadWorld world(parallel.ranks);
        run_ranks(world, [&](Transport& transport) {
            Link link(transport, std::chrono::seconds(60));
            const EvalResult result = evaluate(parallel, dir_, {.link = &link});
            EXPECT_NEAR(result.loss, *trained.test_loss, 1e-12) << plan;
            EXPECT_EQ(result.accuracy, trained.test_accuracy) << plan;
        });
    }
}

// The programs of a run share one state, so every tensor must lie alike for a whole batch, a last one and evaluation.
TEST(SharedState, LiesAlikeInAllProgramsOfARun) {
    struct Case {
        const char* model;
        Shape input;
    };
    std::vector<Case> cases{{"lenet5", {1, 28, 28}}, {"resnet20", {3, 32, 32}}, {"squeezenet1_1", {3, 48, 48}}};
    if (test_count(0, 1) > 0)
        cases.insert(cases.end(), {{"alexnet", {3, 64, 64}},
                                   {"vgg16_bn", {3, 64, 64}},
                                   {"googlenet", {3, 64, 64}},
                                   {"resnet50", {3, 64, 64}},
                                   {"densenet121", {3, 64, 64}},
                                   {"mobilenet_v2", {3, 64, 64}},
                                   {"unet3d", {1, 16, 16, 16}}});
    const auto backend = make_backend("reference", {});
    for (const Case& c : cases)
        for (const std::string plan :
             {"sample:4", "sample:2,height:2", "channel:4@x", "channel:4@y", "channel:2,filter:2@w", "hybrid-fc", "zero"}) {
            TrainConfig config{.model = c.model, .input = c.input, .classes = 10, .batch = 8};
            const PlanChoice choice = plan_choice(plan, 4);
            const Plan made = plan_for(choice, training_graph_of(config, config.batch)).plan;
            for (const Rank rank : {0, 3}) {
                const auto program = [&](const Graph& graph, const Program* first) {
                    return compile(graph, made, backend->target(), {.dtype = DType::f64, .rank = rank, .share_state_with = first});
                };
                const Program full = program(training_graph_of(config, 8), nullptr);
                std::map<std::string, TensorDesc> lies;
                for (const StateBinding& state : full.states) lies[state.spec.name] = state.desc;
                for (const Graph& graph : {training_graph_of(config, 1), evaluation_graph(make_model(config, Mode::Evaluation, 3))})
                    for (const StateBinding& state : program(graph, &full).states)
                        EXPECT_TRUE(lies.at(state.spec.name) == state.desc) << c.model << " under " << plan << ": " << state.spec.name;
            }
        }
}

}  // namespace
}  // namespace convoy
