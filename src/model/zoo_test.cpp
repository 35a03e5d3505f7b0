#include "model/zoo.h"

#include <set>

#include <gtest/gtest.h>

#include "base/error.h"

namespace convoy {
namespace {

struct Expected {
    const char* name;
    int64_t parameters;
    int states;   // parameters and buffers
    Shape small;  // a small input that the architecture allows
    Shape default_output, small_output;
};

// Parameters and states are those of the PyTorch modules (torchvision 0.14 where it has the model), without num_batches_tracked. Those of
// resnet20/56/110 follow from their definition with projection shortcuts.
const std::vector<Expected>& expected() {
    static const std::vector<Expected> list{
        {"lenet5", 61706, 10, {1, 12, 12}, {2, 10}, {2, 7}},
        {"alexnet", 61100840, 16, {3, 63, 63}, {2, 1000}, {2, 7}},
        {"vgg11", 132863336, 22, {3, 32, 32}, {2, 1000}, {2, 7}},
        {"vgg13", 133047848, 26, {3, 32, 32}, {2, 1000}, {2, 7}},
        {"vgg16", 138357544, 32, {3, 32, 32}, {2, 1000}, {2, 7}},
        {"vgg19", 143667240, 38, {3, 32, 32}, {2, 1000}, {2, 7}},
        {"vgg11_bn", 132868840, 54, {3, 32, 32}, {2, 1000}, {2, 7}},
        {"vgg13_bn", 133053736, 66, {3, 32, 32}, {2, 1000}, {2, 7}},
        {"vgg16_bn", 138365992, 84, {3, 32, 32}, {2, 1000}, {2, 7}},
        {"vgg19_bn", 143678248, 102, {3, 32, 32}, {2, 1000}, {2, 7}},
        {"googlenet", 13004888, 305, {3, 15, 15}, {2, 1000}, {2, 7}},
        {"resnet18", 11689512, 102, {3, 32, 32}, {2, 1000}, {2, 7}},
        {"resnet34", 21797672, 182, {3, 32, 32}, {2, 1000}, {2, 7}},
        {"resnet50", 25557032, 267, {3, 32, 32}, {2, 1000}, {2, 7}},
        {"resnet101", 44549160, 522, {3, 32, 32}, {2, 1000}, {2, 7}},
        {"resnet152", 60192808, 777, {3, 32, 32}, {2, 1000}, {2, 7}},
        {"wide_resnet50_2", 68883240, 267, {3, 32, 32}, {2, 1000}, {2, 7}},
        {"resnet18_cifar", 11173962, 102, {3, 8, 8}, {2, 10}, {2, 7}},
        {"resnet20", 272474, 107, {3, 8, 8}, {2, 10}, {2, 7}},
        {"resnet56", 855770, 287, {3, 8, 8}, {2, 10}, {2, 7}},
        {"resnet110", 1730714, 557, {3, 8, 8}, {2, 10}, {2, 7}},
        {"densenet121", 7978856, 606, {3, 32, 32}, {2, 1000}, {2, 7}},
        {"densenet169", 14149480, 846, {3, 32, 32}, {2, 1000}, {2, 7}},
        {"densenet201", 20013928, 1006, {3, 32, 32}, {2, 1000}, {2, 7}},
        {"squeezenet1_1", 1235496, 52, {3, 17, 17}, {2, 1000}, {2, 7}},
        {"mobilenet_v2", 3504872, 262, {3, 32, 32}, {2, 1000}, {2, 7}},
        {"cosmoflow64", 9437636, 13, {4, 16, 16, 16}, {2, 4}, {2, 7}},
        {"cosmoflow64_bn", 9439652, 41, {4, 16, 16, 16}, {2, 4}, {2, 7}},
        {"cosmoflow128", 9437636, 13, {4, 16, 16, 16}, {2, 4}, {2, 7}},
        {"cosmoflow256", 9437636, 13, {4, 16, 16, 16}, {2, 4}, {2, 7}},
        {"cosmoflow512", 9437636, 13, {4, 16, 16, 16}, {2, 4}, {2, 7}},
        {"unet3d", 19070560, 74, {1, 8, 8, 16}, {2, 3, 64, 64, 64}, {2, 7, 8, 8, 16}},
    };
    return list;
}

int64_t parameters_of(const Graph& graph) {
    int64_t sum = 0;
    for (const auto& spec : graph.states())
        if (spec.kind == StateKind::Parameter) sum += numel(spec.shape);
    return sum;
}

TEST(Zoo, TheListIsComplete) {
    ASSERT_EQ(zoo().size(), expected().size());
    for (size_t i = 0; i < zoo().size(); ++i) {
        EXPECT_EQ(zoo()[i].name, expected()[i].name);
        EXPECT_FALSE(zoo()[i].summary.empty());
    }
}

TEST(Zoo, ParameterCounts) {
    for (const auto& e : expected()) {
        const Model model = make_model(e.name, {.batch = 2});
        EXPECT_EQ(model.name, e.name);
        EXPECT_EQ(parameters_of(model.graph), e.parameters) << e.name;
        EXPECT_EQ(model.graph.states().size(), static_cast<size_t>(e.states)) << e.name;
    }
}

TEST(Zoo, EveryModelInBothModesAtDefaultAndSmallInput) {
    for (const auto& e : expected())
        for (const Mode mode : {Mode::Training, Mode::Evaluation}) {
            const Model normal = make_model(e.name, {.batch = 2, .mode = mode});
            const Model small = make_model(e.name, {.batch = 2, .input = e.small, .classes = 7, .mode = mode});
            EXPECT_EQ(normal.graph.shape(normal.graph.output("output")), e.default_output) << e.name;
            EXPECT_EQ(small.graph.shape(small.graph.output("output")), e.small_output) << e.name;
            EXPECT_EQ(small.classes, 7);
            for (const Model* model : {&normal, &small}) {
                EXPECT_EQ(model->graph.outputs()[0].name, "output");
                EXPECT_EQ(model->losses[0].output, "output");
                EXPECT_EQ(model->losses.size(), model->graph.outputs().size());
            }
        }
}

TEST(Zoo, InputChannelsFollowTheInput) {
    for (const auto& e : expected()) {
        Shape input = e.small;
        input[0] = 5;
        const Model model = make_model(e.name, {.batch = 2, .input = input});
        EXPECT_EQ(model.graph.states()[0].shape[1], 5) << e.name;
    }
}

// A reader of a profile must be able to tell layers apart: a name does not come back once another layer has begun.
TEST(Zoo, LayerNamesAreUnique) {
    for (const auto& e : expected()) {
        const Model model = make_model(e.name, {.batch = 2});
        std::set<std::string> seen;
        std::string current;
        for (const Node& node : model.graph.nodes()) {
            if (node.layer == current) continue;
            current = node.layer;
            EXPECT_TRUE(seen.insert(current).second) << e.name << " " << current;
        }
    }
}

// Evaluation programs bind to the state of training: no state of their own, and none that differs.
TEST(Zoo, EvaluationUsesTheStateOfTraining) {
    for (const auto& e : expected()) {
        const Model training = make_model(e.name, {.batch = 2}), evaluation = make_model(e.name, {.mode = Mode::Evaluation});
        for (const auto& spec : evaluation.graph.states()) {
            const auto value = training.graph.find_state(spec.name);
            ASSERT_TRUE(value.has_value()) << e.name << " " << spec.name;
            EXPECT_EQ(training.graph.states()[static_cast<size_t>(training.graph.value(*value).state)], spec);
        }
        EXPECT_TRUE(evaluation.graph.stores().empty());
        for (const Node& node : evaluation.graph.nodes()) EXPECT_FALSE(std::holds_alternative<DropoutOp>(node.op));
    }
}

TEST(Zoo, DropoutCanBeLeftOut) {
    const auto dropouts = [](bool dropout) {
        const Model model = make_model("alexnet", {.dropout = dropout});
        int count = 0;
        for (const Node& node : model.graph.nodes()) count += std::holds_alternative<DropoutOp>(node.op);
        return count;
    };
    EXPECT_EQ(dropouts(true), 2);
    EXPECT_EQ(dropouts(false), 0);
}

TEST(Zoo, GoogLeNetTrainsWithItsAuxiliaryHeads) {
    const Model training = make_model("googlenet", {.batch = 2});
    ASSERT_EQ(training.losses.size(), 3u);
    EXPECT_EQ(training.losses[0], (LossTerm{.output = "output"}));
    EXPECT_EQ(training.losses[1], (LossTerm{.output = "aux1", .weight = 0.3}));
    EXPECT_EQ(training.losses[2], (LossTerm{.output = "aux2", .weight = 0.3}));
    EXPECT_EQ(training.graph.shape(training.graph.output("aux2")), (Shape{2, 1000}));
    EXPECT_TRUE(training.graph.find_state("aux1.conv.conv.weight"));
    const Model evaluation = make_model("googlenet", {.mode = Mode::Evaluation});
    EXPECT_EQ(evaluation.losses.size(), 1u);
    EXPECT_EQ(parameters_of(evaluation.graph), 6624904);  // what torchvision publishes, without the heads
}

TEST(Zoo, Losses) {
    EXPECT_EQ(make_model("cosmoflow64", {}).losses[0].kind, LossKind::SquaredError);
    EXPECT_EQ(make_model("unet3d", {}).losses[0].kind, LossKind::CrossEntropy);
    EXPECT_EQ(make_model("lenet5", {}).losses[0].kind, LossKind::CrossEntropy);
}

TEST(Zoo, WeightDecaySparesBiasesAndNorms) {
    for (const auto& e : expected()) {
        const Model model = make_model(e.name, {.batch = 2});
        for (const auto& spec : model.graph.states()) EXPECT_EQ(spec.decays, spec.shape.size() > 1) << e.name << " " << spec.name;
    }
}

std::string error_of(const std::string& name, const ModelOptions& options) {
    try {
        make_model(name, options);
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

TEST(Zoo, ErrorsSayWhatDoesNotFit) {
    EXPECT_EQ(error_of("resnet81", {}), "there is no model \"resnet81\"; did you mean \"resnet18\"?");
    EXPECT_EQ(error_of("resnet18", {.input = {64, 64}}), "model \"resnet18\": the input is 64x64, expected 3 dims such as 3x224x224");
    EXPECT_EQ(error_of("unet3d", {.input = {1, 20, 16, 16}}),
              "model \"unet3d\" with a batch of 1 inputs of 1x20x16x16: three poolings halve each spatial dim, so expected multiples of 8, "
              "found 1x20x16x16");
    EXPECT_EQ(error_of("vgg16", {.input = {3, 16, 16}})
                  .rfind("model \"vgg16\" with a batch of 1 inputs of 3x16x16: max_pool \"features.30\": a window of 2", 0),
              0u)
        << error_of("vgg16", {.input = {3, 16, 16}});
    EXPECT_EQ(error_of("lenet5", {.input = {1, 8, 8}})
                  .rfind("model \"lenet5\" with a batch of 1 inputs of 1x8x8: conv \"conv2\": a window of 5", 0),
              0u)
        << error_of("lenet5", {.input = {1, 8, 8}});
    EXPECT_NE(
        error_of("resnet50", {.input = {3, 32, 32}}).find("batch_norm \"layer4.0.bn2\": training needs more than one element per channel"),
        std::string::npos);
    EXPECT_EQ(error_of("lenet5", {.batch = 0}), "model \"lenet5\": a batch of 0, expected at least 1");
    EXPECT_EQ(error_of("lenet5", {.classes = -1}), "model \"lenet5\": -1 classes, expected at least 1");
}

}  // namespace
}  // namespace convoy
