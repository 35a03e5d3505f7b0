#include "app/options.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "app/machine.h"
#include "app/parser.h"
#include "base/log.h"
#include "base/suggest.h"

namespace convoy {

namespace {

std::string shape_fault(const std::string& text) {
    try {
        parse_dims(text);
        return "";
    } catch (const Error& e) {
        return e.what();
    }
}

}  // namespace

// CLI11 reads "0x10" or "1e3" for numbers in ways of its own, and lets a negative one wrap around; these take what they say and nothing else.
void allow_whole(Option* option, int64_t low, int64_t high) {
    option->check([low, high](const std::string& text) {
        const bool digits = !text.empty() && text.size() <= 18 && text.find_first_not_of("0123456789") == std::string::npos;
        if (digits && std::stoll(text) >= low && std::stoll(text) <= high) return std::string();
        const bool too_large = text.size() > 9 && text.find_first_not_of("0123456789") == std::string::npos;
        const std::string most = high < kMany || too_large ? fmt::format(" and at most {}", high) : "";
        return fmt::format("expected a whole number of at least {}{}, found \"{}\"", low, most, text);
    });
}

void allow_real(Option* option, const RealRange& range) {
    option->check([range](const std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        const bool number = !text.empty() && *end == '\0' && std::isfinite(value);
        if (number && value >= range.low && value <= range.high && !(range.open && value == range.low)) return std::string();
        const std::string low = fmt::format("{} {}", range.open ? "above" : "of at least", range.low);
        const std::string high = range.high < 1e300 ? fmt::format(" and at most {}", range.high) : "";
        return fmt::format("expected a number {}{}, found \"{}\"", low, high, text);
    });
}

void allow_only(Option* option, const std::vector<std::string>& known) {
    option->check([known](const std::string& text) {
        if (std::find(known.begin(), known.end(), text) != known.end()) return std::string();
        return fmt::format("expected one of {}; found \"{}\"{}", fmt::join(known, ", "), text, did_you_mean(text, known));
    });
}

void add_json(Parser& parser, CommonOptions& options) {
    parser.add_option("--json", options.json, "Write the result as JSON to this file; - for standard output")->option_text("FILE|-");
}

void add_common(Parser& parser, CommonOptions& options, const std::string& batch) {
    add_json(parser, options);
    auto* threads =
        parser.add_option("--threads", options.threads, "Threads to compute with (default: all cores that the process may use)");
    allow_whole(threads->option_text("T"), 1, kMostThreads);
    auto* backend = parser.add_option("--backend", options.backend, "reference, cpu or cuda (default: the best that is ready)");
    allow_only(backend->option_text("NAME"), backend_names());
    auto* dtype = parser.add_option("--dtype", options.dtype, "What to compute in: f64, f32, tf32 or bf16 (default: f32)");
    allow_only(dtype->option_text("TYPE"), {"f64", "f32", "tf32", "bf16"});
    allow_whole(parser
                    .add_option("--device", options.device,
                                "Which GPU to use, of those that are seen; of several ranks on a machine the first one's, the others take "
                                "the next (default: 0)")
                    ->option_text("N"),
                0);
    allow_whole(parser.add_option("--seed", options.seed, "Seed of all random numbers (default: 1)")->option_text("S"), 0, kMostWhole);
    parser.add_option("--input", options.input, "Shape of one input, such as 3x64x64 (default: the model's own)")
        ->option_text("SHAPE")
        ->check(shape_fault);
    auto* classes = parser.add_option("--classes", options.classes, "Classes, or outputs of a regression (default: the model's own)");
    allow_whole(classes->option_text("K"), 1);
    allow_whole(parser.add_option("--batch", options.batch, fmt::format("Samples in a batch (default: {})", batch))->option_text("B"), 1);
}

void add_weights(Parser& parser, std::string& weights) {
    parser.add_option("--weights", weights, "A safetensors file, or the directory of a run or checkpoint")->option_text("FILE|DIR");
}

Option* add_optimizer(Parser& parser, std::string& optimizer) {
    const std::vector<std::string> known{"sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam", "adamw", "lars", "lamb"};
    auto* option = parser.add_option("--optimizer", optimizer, fmt::format("{} (default: momentum)", fmt::join(known, ", ")));
    allow_only(option->option_text("NAME"), known);
    return option;
}

Option* add_micro_batches(Parser& parser, int& micro_batches) {
    auto* option =
        parser.add_option("--micro-batches", micro_batches, "Compute a step in so many parts, which needs less memory (default: 1)");
    allow_whole(option->option_text("M"), 1);
    return option;
}

Option* add_model(Parser& parser, std::string& model) {
    return parser.add_option("MODEL", model, "A model by name (`convoy show` lists them), or an .onnx file")->option_text(" ");
}

void describe(Parser& parser, const std::string& purpose, const std::string& examples) {
    parser.description(purpose + "\n");
    parser.footer("Examples:\n" + examples);
}

BackendChoice best_backend(DType dtype, int device) {
    std::string passed_over, reasons;
    const auto statuses = backend_statuses();
    for (const char* const name : {"cuda", "cpu", "reference"}) {
        const auto status = std::find_if(statuses.begin(), statuses.end(), [&](const BackendStatus& s) { return s.name == name; });
        const bool has_device = device < static_cast<int>(status->devices.size());
        const std::string device_fault = has_device ? status->devices[static_cast<size_t>(device)].fault : "";
        const bool computes = std::find(status->types.begin(), status->types.end(), dtype) != status->types.end();
        const std::string fault = !status->ready          ? status->detail
                                  : !device_fault.empty() ? device_fault
                                  : computes              ? ""
                                                          : fmt::format("it does not compute in {}", name_of(dtype));
        if (fault.empty()) return {name, passed_over};
        if (status->faulty || !device_fault.empty()) passed_over = fmt::format("the {} backend is passed over: {}", name, fault);
        reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", name, fault);
    }
    fail("no backend that is ready here computes in {} ({})", name_of(dtype), reasons);
}

SessionOptions session_options(const CommonOptions& options) {
    const DType dtype = dtype_named(options.dtype);
    BackendChoice choice{options.backend};
    if (options.backend.empty()) choice = best_backend(dtype, options.device);
    if (!choice.passed_over.empty()) warn_once("backend", "{}; {} is used", choice.passed_over, choice.name);
    if (options.device > 0 && choice.name != "cuda")
        throw UsageError(fmt::format("--device says {}, which of the GPUs to use; the {} backend uses none", options.device, choice.name));
    return {.backend = choice.name,
            .dtype = dtype,
            .threads = options.threads > 0 ? options.threads : usable_cores(),
            .device = options.device,
            .seed = options.seed};
}

ModelOptions model_options(const CommonOptions& options, Mode mode, int64_t batch) {
    return {.batch = options.batch > 0 ? options.batch : batch,
            .input = options.input.empty() ? Shape{} : parse_dims(options.input),
            .classes = options.classes,
            .mode = mode};
}

ModelSource known_model(const std::string& name) {
    if (is_model_file(name)) return open_model(name);  // what is wrong with a file is no matter of usage
    try {
        return open_model(name);
    } catch (const Error& e) {
        std::error_code failed;
        const char* const is = std::filesystem::is_directory(name, failed) ? " (it is a directory)"
                               : std::filesystem::exists(name, failed)     ? " (it is a file, but not an .onnx file)"
                                                                           : "";
        throw UsageError(fmt::format("{}{}; `convoy show` lists the models", e.what(), is));
    }
}

}  // namespace convoy
