// ONNX's own tests of its ops, as Debian packages them (libonnx-testdata): each case is a model with inputs and outputs. Every case whose ops we have must
// give the outputs; every other one must be refused with its op. Prints how many of each, and why the others were refused.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "data/bytes.h"
#include "kernels/reference/reference.h"
#include "onnx/import.h"

namespace convoy::onnx {
namespace {

namespace fs = std::filesystem;

const fs::path kData = "/usr/share/libonnx-testdata/data";
constexpr int kLeast = 350;

// ONNX's own bounds.
constexpr double kRelative = 1e-3, kAbsolute = 1e-7;

// The ops that a trainer of convolutional networks must have whole: no case of them in floating point may be refused.
const std::set<std::string, std::less<>> kRequired{"Conv",
                                                   "ConvTranspose",
                                                   "BatchNormalization",
                                                   "MaxPool",
                                                   "AveragePool",
                                                   "GlobalAveragePool",
                                                   "GlobalMaxPool",
                                                   "Gemm",
                                                   "Relu",
                                                   "LeakyRelu",
                                                   "PRelu",
                                                   "Elu",
                                                   "Selu",
                                                   "Celu",
                                                   "Sigmoid",
                                                   "Tanh",
                                                   "HardSigmoid",
                                                   "HardSwish",
                                                   "Softplus",
                                                   "Softsign",
                                                   "ThresholdedRelu",
                                                   "Softmax",
                                                   "LogSoftmax",
                                                   "Concat",
                                                   "Resize",
                                                   "Upsample",
                                                   "Dropout",
                                                   "SoftmaxCrossEntropyLoss",
                                                   "Momentum",
                                                   "Adam",
                                                   "Adagrad"};

// Dropout in training: which elements are dropped is everybody's own choice (the files hold NumPy's), so these are held to the definition instead.
bool draws_at_random(const ModelProto& model, const std::map<std::string, Tensor>& inputs) {
    const bool dropout = model.nodes.size() == 1 && model.nodes[0].op == "Dropout" && model.nodes[0].inputs.size() > 2;
    if (!dropout) return false;
    const auto training = inputs.find(std::string(model.nodes[0].inputs[2]));
    return training != inputs.end() && element(training->second, 0) != 0;
}

struct Case {
    MappedFile file;
    ModelProto model;
    std::map<std::string, Tensor> inputs;
    std::vector<Tensor> outputs;
};

Tensor read_case_tensor(const fs::path& path) {
    const MappedFile file(path);
    return read_tensor(parse_tensor(file.bytes()));
}

Case read_case(const fs::path& folder) {
    Case c{MappedFile(folder / "model.onnx"), {}, {}, {}};
    c.model = parse_model(c.file.bytes());
    for (const auto* list : {&c.model.inputs, &c.model.outputs})
        for (const ValueInfo& info : *list) require(info.type != DataType::Undefined, "{} is no tensor", in_quotes(info.name));
    for (size_t i = 0;; ++i) {
        const fs::path path = folder / "test_data_set_0" / ("input_" + std::to_string(i) + ".pb");
        if (!fs::exists(path)) break;
        require(i < c.model.inputs.size(), "more inputs than the model takes");
        c.inputs[std::string(c.model.inputs[i].name)] = read_case_tensor(path);
    }
    for (size_t i = 0;; ++i) {
        const fs::path path = folder / "test_data_set_0" / ("output_" + std::to_string(i) + ".pb");
        if (!fs::exists(path)) break;
        c.outputs.push_back(read_case_tensor(path));
    }
    // The numbers of this case were made with an epsilon of 0.01, which its file forgot; what the standard says for none is 1e-6.
    if (folder.filename() == "test_adam_multiple") c.model.nodes[0].attributes.push_back({.name = "epsilon", .type = 1, .f = 0.01f});
    return c;
}

// An op may need the numbers of an input when the model is read; those it asks for it gets.
Imported import_case(const Case& c, ImportOptions& options) {
    for (const auto& [name, tensor] : c.inputs) options.shapes[name] = tensor.shape();
    while (true) {
        try {
            return import_graph(c.model, c.file.bytes(), options);
        } catch (const NeedsConstant& needed) {
            const auto at = c.inputs.find(needed.input);
            require(at != c.inputs.end() && !options.constants.count(needed.input), "{}", needed.what());
            options.constants[needed.input] = at->second;
        }
    }
}

Tensor initial(const StateSpec& spec) {
    const auto& values = spec.initializer.values;
    return Tensor::of(spec.shape, values);
}

std::vector<Tensor> run_case(const Case& c) {
    ImportOptions options;
    // Whole numbers are known, unless they are targets of a loss. Booleans and the like have no other place.
    for (const ValueInfo& info : c.model.inputs) {
        const auto at = c.inputs.find(std::string(info.name));
        const bool number = info.type == DataType::Int64 || info.type == DataType::Int32;
        if (at != c.inputs.end() && !is_real(info.type) && !number && is_integer(info.type)) options.constants[at->first] = at->second;
    }
    Imported imported = import_case(c, options);
    bool real64 = false;
    for (const ValueInfo& info : c.model.inputs) real64 = real64 || info.type == DataType::Double;
    std::map<std::string, Tensor> feeds;
    for (const StateSpec& spec : imported.graph.states()) feeds[spec.name] = initial(spec);
    for (const auto& [name, tensor] : c.inputs)
        if (!options.constants.count(name)) feeds[name] = tensor;
    for (const ImportedOutput& output : imported.outputs)
        if (output.value != kNone) imported.graph.add_output(output.name, output.value);
    const auto results = interpret(imported.graph, feeds, real64 ? DType::f64 : DType::f32, {.seed = 7});
    std::vector<Tensor> made;
    for (const ImportedOutput& output : imported.outputs) made.push_back(output.value == kNone ? output.known : results.at(output.name));
    return made;
}

void expect_outputs(const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
    ASSERT_LE(expected.size(), found.size());
    for (size_t o = 0; o < expected.size(); ++o) {
        ASSERT_EQ(found[o].shape(), expected[o].shape()) << "output " << o;
        for (int64_t i = 0; i < expected[o].numel(); ++i) {
            const double is = element(found[o], i), want = element(expected[o], i);
            if (std::isnan(is) && std::isnan(want)) continue;
            if (is == want) continue;  // infinite ones too
            ASSERT_LE(std::abs(is - want), kAbsolute + kRelative * std::abs(want))
                << "output " << o << ", element " << i << ": " << is << ", expected " << want;
        }
    }
}

// Every element is 0 or x / (1 - p), about as many are dropped as p says, and the mask says which.
void expect_dropout(const Case& c, const std::vector<Tensor>& found) {
    const auto input = [&](size_t i) -> const Tensor& { return c.inputs.at(std::string(c.model.nodes[0].inputs[i])); };
    const double p = c.model.nodes[0].inputs[1].empty() ? 0.5 : element(input(1), 0);
    const Tensor& x = input(0);
    ASSERT_EQ(found[0].shape(), x.shape());
    int64_t dropped = 0;
    for (int64_t i = 0; i < x.numel(); ++i) {
        const double y = element(found[0], i), kept = element(x, i) / (1 - p);
        const bool drops = y == 0 && kept != 0;
        dropped += drops;
        ASSERT_NEAR(y, drops ? 0 : kept, 1e-5 * std::abs(kept)) << i;
        ASSERT_NEAR(found.size() > 1 ? element(found[1], i) : drops ? 0 : 1, drops ? 0 : 1, 1e-6) << i;
    }
    const double share = static_cast<double>(dropped) / static_cast<double>(x.numel()), n = static_cast<double>(x.numel());
    ASSERT_LE(std::abs(share - p), 4 * std::sqrt(p * (1 - p) / n) + 1e-9);
}

bool all_real(const ModelProto& model) {
    for (const ValueInfo& info : model.outputs)
        if (!is_real(info.type) && info.type != DataType::Bool && info.type != DataType::Int64) return false;
    for (const ValueInfo& info : model.inputs)
        if (!is_real(info.type) && !is_integer(info.type)) return false;
    return !model.inputs.empty() && is_real(model.inputs[0].type);
}

TEST(Conformance, EveryCaseWhoseOpsWeHave) {
    if (!fs::exists(kData)) {
        // On Debian the package is one of those that `tools/install-deps` installs.
        ASSERT_FALSE(fs::exists("/etc/debian_version")) << kData << " is missing: install libonnx-testdata";
        GTEST_SKIP() << kData << " is missing: ONNX's test data are not packaged for this system";
    }
    std::map<std::string, int> refused;
    std::map<std::string, std::string> example;
    int passed = 0, by_definition = 0, all = 0;
    const bool verbose = std::getenv("CONVOY_ONNX_VERBOSE") != nullptr;
    for (const char* const group : {"node", "pytorch-converted", "pytorch-operator", "simple"}) {
        std::vector<fs::path> folders;
        for (const auto& entry : fs::directory_iterator(kData / group)) folders.push_back(entry.path());
        std::sort(folders.begin(), folders.end());
        for (const fs::path& folder : folders) {
            SCOPED_TRACE(std::string(group) + "/" + folder.filename().string());
            ++all;
            std::string op = "(no tensor)";
            bool required = false;
            try {
                const MappedFile file(folder / "model.onnx");
                const ModelProto model = parse_model(file.bytes());
                op = model.nodes.size() == 1 ? std::string(model.nodes[0].op) : "";
                required = kRequired.count(op) > 0 && all_real(model);
                const Case c = read_case(folder);
                const auto found = run_case(c);
                if (draws_at_random(c.model, c.inputs)) {
                    expect_dropout(c, found);
                    ++by_definition;
                } else {
                    expect_outputs(found, c.outputs);
                }
                ++passed;
            } catch (const Bug& e) {
                ADD_FAILURE() << e.what();
            } catch (const Error& e) {
                const std::string text = e.what();
                EXPECT_FALSE(required) << text;
                if (op.empty()) op = text[0] >= 'A' && text[0] <= 'Z' ? text.substr(0, text.find(' ')) : "(several ops)";
                ++refused[op];
                example[op] = text;
                if (verbose) std::printf("refused %s/%s: %s\n", group, folder.filename().c_str(), text.c_str());
            }
        }
    }
    std::printf("%d of %d cases pass (%d of them, random dropout, by its definition); refused, by op:\n", passed, all, by_definition);
    for (const auto& [op, count] : refused) std::printf("  %3d  %-28s %s\n", count, op.c_str(), example[op].substr(0, 150).c_str());
    EXPECT_GE(passed, kLeast);
}

}  // namespace
}  // namespace convoy::onnx
