#include "train/config.h"
#include "base/json.h"

#include "train/testing.h"

namespace convoy {
namespace {

TrainConfig unusual() {
    TrainConfig config{.model = "resnet18", .input = {3, 64, 64}, .classes = 17, .epochs = 9, .batch = 24, .micro_batches = 3};
    config.init = "weights.safetensors";
    config.skip = {"fc.*"};
    config.freeze = {"layer1.*", "layer2.*"};
    config.data = {.name = "synthetic",
                   .path = "somewhere",
                   .most_train = 5,
                   .most_test = 6,
                   .synthetic_train = 100,
                   .synthetic_test = 50,
                   .synthetic_signal = 0.1,
                   .augment = "flip",
                   .normalize = "cifar",
                   .resize = 72,
                   .strict = true,
                   .workers = 5};
    config.optimizer = {.rule = {.rule = Rule::Lamb,
                                 .momentum = 0.1,
                                 .beta1 = 0.2,
                                 .beta2 = 0.3,
                                 .rho = 0.4,
                                 .epsilon = 1e-7,
                                 .trust = 0.02,
                                 .weight_decay = 1.0 / 3},
                        .clip_norm = 2.5};
    config.schedule = {.lr = 0.7, .decay = Decay::Cosine};
    config.label_smoothing = 0.1;
    config.dropout = config.validate = false;
    config.seed = 0xFFFFFFFFFFFFFFFFu;
    config.dtype = DType::f64;
    config.backend = "cpu";
    config.threads = 3;
    config.device = 1;
    config.limits.numerics = Numerics::Exact;
    config.limits.workspace_bytes = 1 << 20;
    config.tune = true;
    config.ranks = 4;
    config.plan = "sample:2,height:2";
    config.run_dir = "runs/1";
    config.checkpoint_every = 11;
    config.keep = 2;
    config.log_every = 13;
    return config;
}

TEST(Config, JsonRoundTrip) {
    EXPECT_EQ(config_from_json(Json::parse(to_json(unusual()).dump())), unusual());
    EXPECT_EQ(config_from_json(Json::parse(to_json(TrainConfig{}).dump())), TrainConfig{});
    EXPECT_EQ(config_from_json({{"epochs", 3}}).epochs, 3);
}

// A field that to_json or config_from_json forgets would come back with its default.
TEST(Config, EveryFieldOfTheUnusualOneDiffersFromTheDefault) {
    const Json usual = to_json(TrainConfig{}).flatten(), other = to_json(unusual()).flatten();
    for (const auto& [key, value] : usual.items()) {
        if (key.find("/schedule/") == 0) continue;                           // has a test of its own
        EXPECT_FALSE(other.contains(key) && other.at(key) == value) << key;  // an empty list has no entries
    }
}

TEST(Config, ErrorsNameTheFieldAndWhatWasFound) {
    const auto message = [](const Json& json) { return error_of([&] { config_from_json(json, "run/config.json"); }); };
    expect_parts(message({{"epochs", "many"}}), {"run/config.json", "\"epochs\"", "an integer", "\"many\""});
    expect_parts(message({{"epoch", 2}}), {"unknown field \"epoch\"", "did you mean \"epochs\""});
    expect_parts(message({{"epochs", 0}}), {"epochs", "at least 1", "0"});
    expect_parts(message({{"dtype", "f31"}}), {"\"dtype\"", "f31"});
    expect_parts(message({{"seed", -1}}), {"\"seed\"", "-1"});
    expect_parts(message({{"keep", 1LL << 40}}), {"\"keep\"", "below 2^31"});
    expect_parts(message({{"batch", 8}, {"micro_batches", 3}}), {"micro_batches", "3", "8"});
    expect_parts(message({{"optimizer", {{"rule", "adma"}}}}), {"\"optimizer\"", "\"rule\"", "adma", "did you mean \"adam\""});
    expect_parts(message({{"optimizer", {{"rule", "sgd"}, {"beta1", 1}}}}), {"beta1", "1"});
    expect_parts(message({{"input", "3x"}}), {"\"input\"", "3x"});
    expect_parts(message(Json::array()), {"a JSON object", "array"});
}

TEST(Config, ResumeRefusesWhatWouldChangeTheNumbers) {
    const TrainConfig old = small_config();
    const auto refused = [&](const std::function<void(TrainConfig&)>& change, const std::vector<std::string>& parts) {
        TrainConfig now = old;
        change(now);
        expect_parts(error_of([&] { require_resumable(old, now); }), parts);
    };
    refused([](TrainConfig& c) { c.model = "resnet20"; }, {"model", "lenet5", "resnet20"});
    refused([](TrainConfig& c) { c.input = {1, 28, 28}; }, {"input", "1x16x16", "1x28x28"});
    refused([](TrainConfig& c) { c.classes = 10; }, {"classes", "4", "10"});
    refused([](TrainConfig& c) { c.batch = 16; }, {"batch", "8", "16"});
    refused([](TrainConfig& c) { c.micro_batches = 2; }, {"micro_batches", "1", "2"});
    refused([](TrainConfig& c) { c.optimizer.rule.rule = Rule::Adam; }, {"optimizer", "momentum", "adam"});
    refused([](TrainConfig& c) { c.dtype = DType::f64; }, {"dtype", "f32", "f64"});
    refused([](TrainConfig& c) { c.seed = 8; }, {"seed", "7", "8"});
    refused([](TrainConfig& c) { c.data.name = "mnist"; }, {"data", "synthetic", "mnist"});
    refused([](TrainConfig& c) { c.data.synthetic_train = 38; }, {"synthetic_train", "37", "38"});
    TrainConfig now = old;
    now.epochs = 100;
    now.threads = 2;
    now.schedule.lr = 1;
    now.keep = 9;
    EXPECT_NO_THROW(require_resumable(old, now));
}

using ConfigFile = TrainTest;

TEST_F(ConfigFile, IsWrittenAndRead) {
    write_config(dir_, unusual());
    EXPECT_EQ(read_config(dir_), unusual());
    write_file(dir_ / "config.json", "{\"epochs\": ");
    expect_parts(error_of([&] { read_config(dir_); }), {"config.json", "expected JSON"});
    EXPECT_THROW(read_config(dir_ / "none"), Error);
}

}  // namespace
}  // namespace convoy
