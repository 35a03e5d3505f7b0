// The loss on inputs and targets from files, and the gradient of every parameter.
#include <algorithm>
#include <cmath>

#include "app/command.h"
#include "app/forward.h"
#include "app/options.h"
#include "app/output.h"
#include "app/parser.h"
#include "app/table.h"
#include "base/json.h"
#include "data/safetensors.h"
#include "model/autodiff.h"
#include "train/weights.h"

namespace convoy {

namespace {

struct GradOptions {
    CommonOptions common;
    std::string model, input, target, output, weights;
    bool training = false, no_dropout = false;
};

// One tensor per parameter, by its name; zero for one that the loss does not depend on.
std::vector<NamedTensor> read_gradients(const Executor& executor, const Graph& graph) {
    const auto& outputs = executor.program().outputs;
    std::vector<NamedTensor> gradients;
    for (const StateSpec& spec : graph.states()) {
        if (spec.kind != StateKind::Parameter) continue;
        const auto at = std::find_if(outputs.begin(), outputs.end(), [&](const Binding& b) { return b.name == "grad:" + spec.name; });
        gradients.push_back({spec.name, at != outputs.end()
                                            ? executor.read(at->slot)
                                            : Tensor(spec.shape, executor.program().dtype == DType::f64 ? DType::f64 : DType::f32)});
    }
    return gradients;
}

double norm_of(const std::vector<NamedTensor>& tensors) {
    double sum = 0;
    for (const auto& [name, tensor] : tensors)
        for (int64_t i = 0; i < tensor.numel(); ++i) sum += element(tensor, i) * element(tensor, i);
    return std::sqrt(sum);
}

// A loss can be finite where its gradient is not: a ReLU makes nothing of what is no number, but its input's factor in a product stays.
void require_finite(const std::string& name, const Tensor& tensor) {
    for (int64_t i = 0; i < tensor.numel(); ++i)
        require(std::isfinite(element(tensor, i)), "the loss is finite, but the gradient of \"{}\" is not: element {} is {}", name, i,
                element(tensor, i));
}

int grad(const GradOptions& options) {
    if (options.no_dropout && !options.training) throw UsageError("grad: --no-dropout is for --training; evaluation has no dropout");
    const Output output(options.common.json);
    const ModelSource entry = known_model(options.model);
    expect_files({{"--output", options.output}, {"--json", options.common.json}},
                 {{"--input-file", options.input}, {"--target", options.target}, {"--weights", options.weights}, {"MODEL", options.model}});
    FileInput input = read_input(options.input, entry, options.common, options.training ? Mode::Training : Mode::Evaluation);
    input.options.dropout = !options.no_dropout;
    const Model model = entry.make(input.options);
    const Graph graph = gradient_graph(model);
    Session session(session_options(options.common));
    const auto executor = session.load(graph);
    if (!options.weights.empty()) load_weights(options.weights, session.state(), {.spare = entry.training_only});

    const Program& program = executor->program();
    const SlotId x = program.input("input"), t = program.input("target"), loss_slot = program.output("loss");
    executor->set_input(x, input.tensor.to(program.slot(x).desc.dtype));
    executor->set_input(t, read_target(options.target, program.slot(t), model.graph.shape(model.graph.output(model.losses[0].output))[1]));
    executor->watch(loss_slot);
    const StepContext context{.seed = options.common.seed};
    if (!executor->run(context))
        fail("the loss is not finite; first not finite: {}", executor->find_non_finite(context).value_or("the loss itself"));

    const double loss = element(executor->read(loss_slot), 0);
    const auto gradients = read_gradients(*executor, graph);
    const double norm = norm_of(gradients);
    for (const auto& [name, tensor] : gradients) require_finite(name, tensor);
    const std::string mode = options.training ? "training" : "evaluation";
    write_safetensors(options.output, std::span<const NamedTensor>(gradients),
                      {{"model", entry.name}, {"mode", mode}, {"loss", fmt::format("{}", loss)}});

    output.line("loss {}; {} gradients with a norm of {:.6g} in {}", loss, gradients.size(), norm, options.output);
    if (options.weights.empty() && !is_model_file(entry.name))
        output.line("(no --weights: the model as it begins with seed {})", options.common.seed);
    output.result({{"model", entry.name},
                   {"mode", mode},
                   {"dropout", options.training && !options.no_dropout},
                   {"input", to_string(input.tensor.shape())},
                   {"loss", loss},
                   {"gradients", gradients.size()},
                   {"gradient_norm", norm},
                   {"output_file", options.output},
                   {"dtype", name_of(session.options().dtype)},
                   {"backend", session.options().backend},
                   {"threads", session.options().threads}});
    return 0;
}

}  // namespace

Command add_grad(Parser& program) {
    Parser* const parser = program.add_subcommand("grad", "");
    describe(
        *parser,
        "Compute the loss and the gradient of every parameter on inputs from files.\n"
        "Inputs and targets are NumPy files; the gradients go to a safetensors file, each under its parameter's name. In evaluation mode\n"
        "(running statistics, no dropout) unless --training is given.",
        "  convoy grad lenet5 --input-file x.npy --target t.npy --weights w.safetensors --output g.safetensors\n"
        "  convoy grad resnet18 --input-file x.npy --target t.npy --output g.safetensors --training --dtype f64 --json -");
    const auto options = std::make_shared<GradOptions>();
    add_model(*parser, options->model)->required();
    parser->add_option("--input-file", options->input, "The inputs, an .npy file [N, C, ...]")->option_text("X.NPY")->required();
    parser->add_option("--target", options->target, "Labels as integers, [N] or per voxel [N, ...]; numbers for a regression")
        ->option_text("T.NPY")
        ->required();
    parser->add_option("--output", options->output, "Where the gradients go")->option_text("G.SAFETENSORS")->required();
    add_weights(*parser, options->weights);
    parser->add_flag("--training", options->training, "In training mode: batch statistics, dropout");
    parser->add_flag("--no-dropout", options->no_dropout, "With --training: leave the dropout layers out");
    add_common(*parser, options->common, "the file's");
    return {parser, [options] { return grad(*options); }};
}

}  // namespace convoy
