// The reference against PyTorch in double precision: losses, gradients and running statistics of whole models, as make_fixtures.py stored them.
// Needs no PyTorch. Weights, inputs and targets come from a formula that both sides have.
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "base/test_count.h"
#include "exec/session.h"
#include "model/autodiff.h"
#include "model/zoo.h"

namespace convoy {
namespace {

constexpr double kTolerance = 1e-8;
constexpr double kLossTolerance = 1e-10;
constexpr double kFloor = 1e-3;  // of the norm of the whole gradient: below it a gradient may be nothing but rounding

// --- The formula of make_fixtures.py ----------------------------------------------------------------------------------------------

uint64_t fnv1a(std::string_view name) {
    uint64_t value = 0xcbf29ce484222325;
    for (const char c : name) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return value;
}

// A 64-bit word for an element of the tensor whose name has this hash: splitmix64.
uint64_t word(uint64_t hash, int64_t index) {
    uint64_t z = hash + static_cast<uint64_t>(index + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

// scale * u + shift with u in [-1, 1).
Tensor filled(const std::string& name, const Shape& shape, double scale, double shift = 0) {
    Tensor tensor(shape, DType::f64);
    const auto values = tensor.as<double>();
    const uint64_t hash = fnv1a(name);
    for (int64_t i = 0; i < tensor.numel(); ++i)
        values[static_cast<size_t>(i)] = shift + scale * (static_cast<double>(word(hash, i) >> 11) * 0x1p-52 - 1);
    return tensor;
}

bool ends_with(const std::string& text, std::string_view end) {
    return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

Tensor state_value(const StateSpec& spec) {
    if (spec.shape.size() > 1) return filled(spec.name, spec.shape, std::sqrt(6 / static_cast<double>(numel(spec.shape.slice(1)))));
    if (ends_with(spec.name, ".weight") || ends_with(spec.name, ".running_var")) return filled(spec.name, spec.shape, 0.2, 1);
    return filled(spec.name, spec.shape, 0.1);
}

Tensor labels(const Shape& shape, int64_t classes) {
    Tensor tensor(shape, DType::i32);
    const uint64_t hash = fnv1a("target");
    for (int64_t i = 0; i < tensor.numel(); ++i)
        tensor.as<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(word(hash, i) % static_cast<uint64_t>(classes));
    return tensor;
}

// --- What is compared -------------------------------------------------------------------------------------------------------------

// A tensor in three numbers.
struct Fingerprint {
    double norm = 0, with_sin = 0, with_cos = 0;
};

Fingerprint fingerprint(const Tensor& tensor) {
    Fingerprint f;
    for (int64_t i = 0; i < tensor.numel(); ++i) {
        const double value = element(tensor, i), at = static_cast<double>(i);
        f.norm += value * value;
        f.with_sin += value * std::sin(at + 1);
        f.with_cos += value * std::cos(0.7 * at);
    }
    f.norm = std::sqrt(f.norm);
    return f;
}

void expect_same(const Tensor& tensor, const Json& stored, double floor, const std::string& what) {
    const Fingerprint ours = fingerprint(tensor), theirs{stored[0], stored[1], stored[2]};
    const double bound = kTolerance * std::max(theirs.norm, floor);
    EXPECT_NEAR(ours.norm, theirs.norm, bound) << what << ": norm";
    EXPECT_NEAR(ours.with_sin, theirs.with_sin, bound) << what << ": product with sin(i + 1)";
    EXPECT_NEAR(ours.with_cos, theirs.with_cos, bound) << what << ": product with cos(0.7 i)";
}

Json read_fixtures() { return Json::parse(read_file(CONVOY_PARITY_FIXTURES)); }

Shape input_of(const Json& fixture) {
    Shape shape;
    for (const Json& size : fixture["input"]) shape.push_back(size.get<int64_t>());
    return shape;
}

void check(const Json& fixture) {
    const std::string name = fixture["model"];
    const Model model =
        make_model(name, {.batch = fixture["batch"], .input = input_of(fixture), .classes = fixture["classes"], .dropout = false});
    Session session({.backend = "reference", .dtype = DType::f64, .threads = 2});
    const auto executor = session.load(gradient_graph(model));
    for (const StateSpec& spec : session.state().specs()) session.state().write(spec.name, state_value(spec));

    const Program& program = executor->program();
    const SlotId input = program.input("input"), target = program.input("target");
    executor->set_input(input, filled("input", program.slot(input).desc.shape, std::sqrt(3.0)));
    const Shape& target_shape = program.slot(target).desc.shape;
    executor->set_input(
        target, is_floating(program.slot(target).desc.dtype) ? filled("target", target_shape, 1) : labels(target_shape, model.classes));
    ASSERT_TRUE(executor->run({}));

    const double loss = fixture["loss"], norm = fixture["norm"];
    EXPECT_NEAR(element(executor->read(program.output("loss")), 0), loss, kLossTolerance * std::abs(loss)) << name;
    size_t parameters = 0, buffers = 0;
    for (const StateSpec& spec : session.state().specs()) {
        const std::string what = name + " " + spec.name;
        const bool learned = spec.kind == StateKind::Parameter;
        const Json& stored = fixture[learned ? "gradients" : "buffers"];
        ASSERT_TRUE(stored.contains(spec.name)) << what << " is unknown to PyTorch";
        if (learned)
            expect_same(executor->read(program.output("grad:" + spec.name)), stored[spec.name], kFloor * norm, what);
        else
            expect_same(session.state().read(spec.name), stored[spec.name], 0, what);
        ++(learned ? parameters : buffers);
    }
    EXPECT_EQ(parameters, fixture["gradients"].size()) << name;
    EXPECT_EQ(buffers, fixture["buffers"].size()) << name;
}

class Parity : public testing::TestWithParam<std::string> {};

TEST_P(Parity, GradientsAreThoseOfPyTorch) {
    for (const Json& fixture : read_fixtures()) {
        if (fixture["model"] != GetParam()) continue;
        if (!fixture["always"].get<bool>() && test_count(0, 1) == 0) GTEST_SKIP() << "CONVOY_TEST_FULL=1 runs it";
        return check(fixture);
    }
    FAIL() << "no fixture for " << GetParam();
}

INSTANTIATE_TEST_SUITE_P(Models, Parity,
                         testing::Values("resnet18", "squeezenet1_1", "mobilenet_v2", "googlenet", "unet3d", "alexnet", "vgg11", "resnet50",
                                         "densenet121", "cosmoflow64"),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace convoy
