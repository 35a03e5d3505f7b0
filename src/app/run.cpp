// A model's answer to inputs from a file.
#include <chrono>

#include "app/command.h"
#include "app/forward.h"
#include "app/options.h"
#include "app/output.h"
#include "app/parser.h"
#include "app/table.h"
#include "base/json.h"
#include "data/npy.h"
#include "train/weights.h"

namespace convoy {

namespace {

struct RunOptions {
    CommonOptions common;
    std::string model, input, output, weights;
};

int run(const RunOptions& options) {
    const Output output(options.common.json);
    const ModelSource entry = known_model(options.model);
    expect_files({{"--output", options.output}, {"--json", options.common.json}},
                 {{"--input-file", options.input}, {"--weights", options.weights}, {"MODEL", options.model}});
    const FileInput input = read_input(options.input, entry, options.common, Mode::Evaluation);
    Session session(session_options(options.common));
    const auto executor = session.load(entry.make(input.options).graph);
    if (!options.weights.empty()) load_weights(options.weights, session.state(), {.spare = entry.training_only});

    const Program& program = executor->program();
    const SlotId x = program.input("input");
    executor->set_input(x, input.tensor.to(program.slot(x).desc.dtype));
    const auto begin = std::chrono::steady_clock::now();
    executor->run({.seed = options.common.seed});
    Tensor y = executor->read(program.outputs.front().slot);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (y.dtype() == DType::bf16) y = y.to(DType::f32);  // NumPy has no bf16
    write_npy(options.output, y);

    output.line("{} -> {}: {} of {} in {}", options.input, options.output, to_string(y.shape()), name_of(y.dtype()), short_time(seconds));
    if (options.weights.empty() && !is_model_file(entry.name))
        output.line("(no --weights: the model as it begins with seed {})", options.common.seed);
    output.result({{"model", entry.name},
                   {"input", to_string(input.tensor.shape())},
                   {"output", to_string(y.shape())},
                   {"output_file", options.output},
                   {"dtype", name_of(session.options().dtype)},
                   {"backend", session.options().backend},
                   {"threads", session.options().threads},
                   {"seconds", seconds}});
    return 0;
}

}  // namespace

Command add_run(Parser& program) {
    Parser* const parser = program.add_subcommand("run", "");
    describe(*parser,
             "Run a model forwards on inputs from a file.\n"
             "In evaluation mode, on a NumPy file whose first dim is the batch and whose other dims are the shape of an input; the output "
             "goes to\n"
             "another such file. Without --weights the model is as it begins with the seed.",
             "  convoy run lenet5 --input-file x.npy --output y.npy --weights weights.safetensors\n"
             "  convoy run lenet5 --input-file x.npy --output y.npy --weights runs/demo\n"
             "  convoy run resnet18 --input-file x.npy --output y.npy --dtype f64 --seed 7");
    const auto options = std::make_shared<RunOptions>();
    add_model(*parser, options->model)->required();
    parser->add_option("--input-file", options->input, "The inputs, an .npy file [N, C, ...]")->option_text("X.NPY")->required();
    parser->add_option("--output", options->output, "Where the output goes")->option_text("Y.NPY")->required();
    add_weights(*parser, options->weights);
    add_common(*parser, options->common, "the file's");
    return {parser, [options] { return run(*options); }};
}

}  // namespace convoy
