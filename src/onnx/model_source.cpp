#include "onnx/model_source.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "data/bytes.h"
#include "model/zoo.h"
#include "onnx/import.h"

namespace convoy {

namespace {

using onnx::ModelProto;
using onnx::ValueInfo;

// The one input that is no initialiser.
const ValueInfo& data_input(const ModelProto& file) {
    const ValueInfo* found = nullptr;
    for (const ValueInfo& info : file.inputs) {
        const bool stored =
            std::any_of(file.initializers.begin(), file.initializers.end(), [&](const auto& t) { return t.name == info.name; });
        if (stored) continue;
        require(!found, "it has the inputs {} and {}, expected one", in_quotes(found ? found->name : ""), in_quotes(info.name));
        found = &info;
    }
    require(found, "it has no input");
    require(onnx::is_real(found->type), "its input {} holds {}, expected float or double", in_quotes(found->name),
            onnx::name_of(found->type));
    require(found->has_shape && found->shape.size() >= 2 && found->shape.size() <= static_cast<size_t>(Dims::kMost),
            "its input {} has {} dims, expected N x C ...", in_quotes(found->name), found->shape.size());
    return *found;
}

Shape input_of(const ModelProto& file) {
    Shape shape;
    const ValueInfo& info = data_input(file);
    for (size_t d = 1; d < info.shape.size(); ++d) shape.push_back(std::clamp<int64_t>(info.shape[d].size, 0, int64_t{1} << 31));
    return shape;
}

LossKind loss_of(const ModelProto& file, int64_t outputs) {
    const auto said = file.metadata.find("convoy.loss");
    if (said != file.metadata.end()) {
        if (said->second == "cross_entropy") return LossKind::CrossEntropy;
        if (said->second == "squared_error") return LossKind::SquaredError;
        if (said->second == "absolute_error") return LossKind::AbsoluteError;
        fail("its convoy.loss is {}, expected cross_entropy, squared_error or absolute_error", in_quotes(said->second));
    }
    return outputs > 1 ? LossKind::CrossEntropy : LossKind::SquaredError;  // one class is none
}

// The outputs, and the loss on the first one. A network that ends with softmax is trained on what goes into it, which the loss then takes softmax of.
void add_outputs(const ModelProto& file, const std::vector<onnx::ImportedOutput>& outputs, Model& model) {
    const onnx::ImportedOutput& first = outputs.at(0);
    require(first.value != kNone, "its output {} does not depend on the input", in_quotes(first.name));
    const Shape shape = model.graph.shape(first.value);
    require(shape.size() >= 2, "its output {} is {}, expected N x K ...", in_quotes(first.name), to_string(shape));
    model.classes = shape[1];
    model.graph.add_output("output", first.value);
    LossTerm loss{.output = "output", .kind = loss_of(file, shape[1])};
    const NodeId last = model.graph.value(first.value).producer;
    if (const auto* softmax = last == kNone ? nullptr : std::get_if<SoftmaxOp>(&model.graph.node(last).op);
        softmax && softmax->axis == 1 && loss.kind == LossKind::CrossEntropy) {
        model.graph.add_output("logits", model.graph.node(last).inputs[0]);
        loss.output = "logits";
    }
    model.losses.push_back(std::move(loss));
    for (size_t i = 1; i < outputs.size(); ++i)
        if (outputs[i].value != kNone) model.graph.add_output(fmt::format("output{}", i + 1), outputs[i].value);
}

Model make_from_file(const std::string& path, const ModelOptions& options) {
    try {
        const MappedFile mapped(path);
        const ModelProto file = onnx::parse_model(mapped.bytes());
        Shape input = options.input.empty() ? input_of(file) : options.input;
        const ValueInfo& info = data_input(file);
        require(input.size() + 1 == static_cast<int>(info.shape.size()),
                "the input is to be {}, but the file's has {} dims besides the batch", to_string(input), info.shape.size() - 1);
        require(options.batch > 0, "a batch of {}, expected at least 1", options.batch);
        for (int d = 0; d < input.size(); ++d)
            require(input[d] > 0, "the file leaves dim {} of its input open; say how large it is with --input, such as --input 3x224x224",
                    d + 1);
        const bool training = options.mode == Mode::Training;
        onnx::ImportOptions import{
            .mode = training ? onnx::NodeMode::Training : onnx::NodeMode::Evaluation, .dropout = options.dropout, .path = path};
        import.shapes[std::string(info.name)] = join({options.batch}, input);
        import.names[std::string(info.name)] = "input";
        onnx::Imported imported = onnx::import_graph(file, mapped.bytes(), import);
        Model model{.name = path, .graph = std::move(imported.graph), .losses = {}};
        for (const Node& node : model.graph.nodes())
            require(node.phase == Phase::Forward, "it holds gradients; give the network alone, which gets its own");
        add_outputs(file, imported.outputs, model);
        require(options.classes == 0 || options.classes == model.classes, "the network has {} outputs, but {} are wanted", model.classes,
                options.classes);
        return model;
    } catch (const Error& e) {
        fail("model {}: {}", path, e.what());
    }
}

ModelSource open_file(const std::string& path) {
    ModelSource source{.name = path, .summary = "", .fixed_classes = true};
    try {
        const MappedFile mapped(path);
        const ModelProto file = onnx::parse_model(mapped.bytes());
        source.input = input_of(file);
        source.summary = fmt::format("ONNX, operator set {}, {} nodes", file.opset(), file.nodes.size());
        const bool open = std::any_of(source.input.begin(), source.input.end(), [](int64_t size) { return size == 0; });
        if (!file.outputs.empty() && file.outputs[0].shape.size() >= 2)
            source.classes = std::max<int64_t>(0, file.outputs[0].shape[1].size);
        if (source.classes == 0 && !open) source.classes = make_from_file(path, {.mode = Mode::Evaluation}).classes;
    } catch (const Error& e) {
        const std::string text = e.what();
        if (text.rfind("model ", 0) == 0) throw;
        fail("model {}: {}", path, text);
    }
    source.make = [path](const ModelOptions& options) { return make_from_file(path, options); };
    return source;
}

}  // namespace

bool is_model_file(std::string_view name) {
    constexpr std::string_view kEnding = ".onnx";
    return name.size() > kEnding.size() && name.substr(name.size() - kEnding.size()) == kEnding;
}

ModelSource open_model(const std::string& name) {
    if (is_model_file(name)) return open_file(name);
    const ZooEntry& entry = zoo_entry(name);
    return {.name = entry.name,
            .summary = entry.summary,
            .input = entry.input,
            .classes = entry.classes,
            .training_only = entry.training_only,
            .make = [name](const ModelOptions& options) { return make_model(name, options); }};
}

bool same_model(const std::string& a, const std::string& b) {
    if (a == b) return true;
    if (!is_model_file(a) || !is_model_file(b)) return false;
    std::error_code failed;
    if (std::filesystem::equivalent(a, b, failed)) return true;
    if (!std::filesystem::exists(a, failed) || !std::filesystem::exists(b, failed)) return false;
    return MappedFile(a).bytes() == MappedFile(b).bytes();
}

}  // namespace convoy
