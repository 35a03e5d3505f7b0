// A model or the result of a run as an ONNX file.
#include <filesystem>

#include "app/command.h"
#include "app/options.h"
#include "app/output.h"
#include "app/parser.h"
#include "app/table.h"
#include "base/json.h"
#include "onnx/export.h"
#include "train/weights.h"

namespace convoy {

namespace {

struct ExportArguments {
    CommonOptions common;
    std::string what, output, weights;
};

int export_command(const ExportArguments& arguments) {
    const Output output(arguments.common.json);
    expect_files({{"--output", arguments.output}, {"--json", arguments.common.json}}, {{"--weights", arguments.weights}});
    std::error_code ignored;
    const bool directory = std::filesystem::is_directory(arguments.what, ignored);
    if (directory && !arguments.weights.empty()) throw UsageError("export: weights are named twice; give RUN_DIR or --weights");
    const std::string weights = directory ? arguments.what : arguments.weights;
    ModelOptions shape = model_options(arguments.common, Mode::Evaluation, 1);
    std::string name = arguments.what;
    if (directory) {
        const auto config = config_of_weights(arguments.what);
        require(config.has_value(), "{}: expected the directory of a run or a checkpoint; found no configuration in it", arguments.what);
        name = config->model;
        if (shape.input.empty()) shape.input = config->input;
        if (shape.classes == 0) shape.classes = config->classes;
    }
    const ModelSource source = known_model(name);
    const Model model = source.make(shape);

    // Where the weights come to lie is the reference's matter: every build has it, and it keeps tensors plain.
    const DType type = dtype_named(arguments.common.dtype);
    Session session({.backend = "reference", .dtype = type, .seed = arguments.common.seed});
    session.load(model.graph);
    if (!weights.empty()) load_weights(weights, session.state(), {.spare = source.training_only});
    const auto report =
        onnx::export_model(arguments.output, model, [&](const StateSpec& spec) { return session.state().read(spec.name); }, {.type = type});

    output.line("{}: {} nodes, {} tensors, {} in {}, operator set {}, {}", name, report.nodes, report.initializers,
                short_bytes(static_cast<double>(report.bytes)), arguments.output, report.opset,
                report.any_batch ? "for batches of every size" : fmt::format("for a batch of {}", shape.batch));
    if (weights.empty() && !is_model_file(name)) output.line("(no --weights: the model as it begins with seed {})", arguments.common.seed);
    output.result({{"model", name},
                   {"output_file", arguments.output},
                   {"weights", weights.empty() ? Json(nullptr) : Json(weights)},
                   {"nodes", report.nodes},
                   {"tensors", report.initializers},
                   {"bytes", report.bytes},
                   {"opset", report.opset},
                   {"any_batch", report.any_batch},
                   {"dtype", name_of(type)}});
    return 0;
}

}  // namespace

Command add_export(Parser& program) {
    Parser* const parser = program.add_subcommand("export", "");
    describe(
        *parser,
        "Write a model with its weights as an ONNX file.\n"
        "In evaluation mode, for other tools to run. A run directory brings its model and its newest checkpoint; a model by name takes\n"
        "its weights from --weights, or is as it begins with the seed.",
        "  convoy export runs/demo --output lenet5.onnx\n"
        "  convoy export resnet18 --weights weights.safetensors --output resnet18.onnx\n"
        "  convoy export unet3d --input 1x32x32x32 --classes 4 --output unet.onnx --dtype f64");
    const auto arguments = std::make_shared<ExportArguments>();
    parser->add_option("MODEL|RUN_DIR", arguments->what, "A model by name or an .onnx file, or the directory of a run or a checkpoint")
        ->option_text(" ")
        ->required();
    parser->add_option("--output", arguments->output, "Where the file goes")->option_text("M.ONNX")->required();
    add_weights(*parser, arguments->weights);
    add_common(*parser, arguments->common, "1");
    return {parser, [arguments] { return export_command(*arguments); }};
}

}  // namespace convoy
