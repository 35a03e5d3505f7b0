// What each convolution algorithm does here: `bench conv` times all of them on one convolution, a file of them or the layers of a model, and measures
// their errors against double precision.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "app/command.h"
#include "app/conv_spec.h"
#include "app/machine.h"
#include "app/options.h"
#include "app/output.h"
#include "app/parser.h"
#include "app/table.h"
#include "base/json.h"
#include "base/random.h"
#include "base/suggest.h"
#include "tune/measure.h"

namespace convoy {

namespace {

const std::vector<std::string> kDirections{"forward", "input", "weight"};

struct ConvOptions {
    CommonOptions common;
    std::string problem, model, direction = "all", algorithms;
    bool warm = false, no_errors = false;
};

// "im2col:plain" of the candidate "conv:im2col:plain".
std::string short_name(const std::string& algorithm) { return algorithm.rfind("conv:", 0) == 0 ? algorithm.substr(5) : algorithm; }
std::string family(const std::string& algorithm) { return short_name(algorithm).substr(0, short_name(algorithm).find(':')); }

Tensor random_tensor(const Shape& shape, int number) {
    Tensor tensor(shape, DType::f32);
    const RandomStream random{1, 0, stream_of(fmt::format("operand {}", number))};
    constexpr uint64_t kDistinct = 1'000'003;  // again and again: more would only take time
    const auto values = tensor.as<float>();
    for (size_t i = 0; i < values.size(); ++i) values[i] = i < kDistinct ? static_cast<float>(random.normal(i)) : values[i - kDistinct];
    return tensor;
}

// The first output of a problem by one candidate.
Tensor computed(Backend& backend, const Problem& problem, const Candidate& candidate, const std::vector<Tensor>& inputs) {
    const auto workspace = backend.allocate(candidate.workspace_bytes);
    KernelRequest request{problem, candidate.algorithm, {}, {}, workspace->data(), candidate.workspace_bytes};
    std::vector<std::unique_ptr<Memory>> memory;
    for (int t = 0; t < problem.inputs + problem.outputs; ++t) {
        const bool input = t < problem.inputs;
        const TensorDesc& desc = problem.tensors[static_cast<size_t>(t)];
        const Layout& layout =
            input ? candidate.inputs[static_cast<size_t>(t)] : candidate.outputs[static_cast<size_t>(t - problem.inputs)];
        memory.push_back(backend.allocate(bytes_of(desc.shape, desc.dtype, layout)));
        (input ? request.inputs : request.outputs).push_back({memory.back()->data(), desc, layout});
        if (input) backend.upload(inputs[static_cast<size_t>(t)].to(desc.dtype), request.inputs.back());
    }
    backend.prepare(request)->run({});
    backend.synchronize();
    Tensor result(request.outputs[0].desc.shape, request.outputs[0].desc.dtype);
    backend.download(request.outputs[0], result);
    return result;
}

class Bench {
  public:
    Bench(const ConvOptions& options, const Output& output)
        : options_(options),
          output_(output),
          threads_(options.common.threads > 0 ? options.common.threads : usable_cores()),
          backend_(make_backend(options.common.backend.empty() ? "cpu" : options.common.backend,
                                {.threads = threads_, .device = options.common.device})),
          reference_(make_backend("reference", {.threads = threads_})) {
        for (size_t at = 0; at < options.algorithms.size();) {
            const size_t end = std::min(options.algorithms.find(',', at), options.algorithms.size());
            wanted_.insert(options.algorithms.substr(at, end - at));
            at = end + 1;
        }
    }

    void run(const std::vector<ConvSpec>& specs) {
        peak_ = measure_peak();
        output_.line("{} threads; a matrix product of 2048 x 2048 x 2048 reaches {:.0f} GFLOP/s, which is called the peak here", threads_,
                     peak_ / 1e9);
        Json problems = Json::array();
        for (const ConvSpec& spec : specs)
            for (const std::string& direction : kDirections)
                if (options_.direction == "all" || options_.direction == direction) problems.push_back(bench(spec, direction));
        output_.result({{"threads", threads_}, {"peak_gflops", peak_ / 1e9}, {"problems", problems}});
    }

  private:
    double measure_peak() {
        constexpr int64_t kSize = 2048;
        const TensorDesc square = TensorDesc::whole({kSize, kSize}, DType::f32);
        const Problem product = Problem::single(LinearOp{}, {square, square}, {square}, DType::f32);
        double best = INFINITY;
        for (const Candidate& candidate : backend_->target().candidates(product))
            if (candidate.algorithm != "reference")
                best = std::min(best, measure(*backend_, product, candidate, {.cold = false, .threads = threads_}));
        return 2.0 * kSize * kSize * kSize / best;
    }

    static std::vector<Tensor> inputs_of(const Problem& problem) {
        std::vector<Tensor> inputs;
        for (int t = 0; t < problem.inputs; ++t) inputs.push_back(random_tensor(problem.tensors[static_cast<size_t>(t)].shape, t));
        return inputs;
    }

    bool chosen(const std::string& algorithm) const {
        if (wanted_.empty()) return algorithm.rfind("conv:", 0) == 0;  // the reference only when it is asked for
        return wanted_.contains(family(algorithm)) || wanted_.contains(short_name(algorithm));
    }

    void check_names(const std::vector<Candidate>& offered, const std::vector<Refusal>& refused) const {
        std::vector<std::string> known;
        for (const Candidate& c : offered) known.insert(known.end(), {family(c.algorithm), short_name(c.algorithm)});
        for (const Refusal& r : refused) known.push_back(family(r.algorithm));
        std::sort(known.begin(), known.end());
        known.erase(std::unique(known.begin(), known.end()), known.end());
        for (const std::string& name : wanted_) {
            const bool is_known = std::find(known.begin(), known.end(), name.substr(0, name.find(':'))) != known.end();
            if (!is_known)
                throw UsageError(fmt::format("--algorithm: expected some of {}; found \"{}\"{}", fmt::join(known, ", "), name,
                                             did_you_mean(name, known)));
        }
    }

    Json bench(const ConvSpec& spec, const std::string& direction) {
        const Problem problem = spec.problem(direction, DType::f32);
        const auto offered = backend_->target().candidates(problem);
        const auto refused = backend_->target().refusals(problem);
        check_names(offered, refused);
        std::vector<Candidate> candidates;
        std::copy_if(offered.begin(), offered.end(), std::back_inserter(candidates),
                     [&](const Candidate& c) { return chosen(c.algorithm); });
        const auto seconds = Contest(*backend_, problem, {.cold = !options_.warm, .threads = threads_}).run(candidates);
        const auto errors = options_.no_errors ? std::vector<double>(candidates.size(), NAN) : errors_of(spec, direction, candidates);
        std::vector<size_t> order(candidates.size());
        for (size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return seconds[a] < seconds[b]; });

        const double flops = spec.operations();
        output_.line("\n{} {}: {:.3f} GFLOP{}", spec.text(), direction, flops / 1e9,
                     spec.layers.empty() ? "" : fmt::format(" ({} of them: {})", spec.layers.size(), fmt::join(spec.layers, ", ")));
        Table table({{"algorithm"},
                     {"ms", Table::Align::Right},
                     {"GFLOP/s", Table::Align::Right},
                     {"of peak", Table::Align::Right},
                     {"GFLOP done", Table::Align::Right},
                     {"workspace", Table::Align::Right},
                     {"error", Table::Align::Right},
                     {"why not"}});
        Json results = Json::array();
        for (const size_t i : order) {
            const Candidate& c = candidates[i];
            const double rate = flops / seconds[i];
            table.add({short_name(c.algorithm), fmt::format("{:.3f}", seconds[i] * 1e3), fmt::format("{:.1f}", rate / 1e9),
                       fmt::format("{:.0f} %", 100 * rate / peak_), fmt::format("{:.3f}", c.operations / 1e9),
                       short_bytes(static_cast<double>(c.workspace_bytes)), std::isnan(errors[i]) ? "" : fmt::format("{:.1e}", errors[i]),
                       ""});
            results.push_back({{"algorithm", short_name(c.algorithm)},
                               {"ms", seconds[i] * 1e3},
                               {"gflops", rate / 1e9},
                               {"share_of_peak", rate / peak_},
                               {"operations", c.operations},
                               {"workspace_bytes", c.workspace_bytes},
                               {"numerics", c.numerics == Numerics::Exact ? "exact" : "fast"}});
            if (!std::isnan(errors[i])) results.back()["error"] = errors[i];
        }
        for (const Refusal& r : refused) {
            if (!chosen(r.algorithm)) continue;
            table.add({short_name(r.algorithm), "", "", "", "", "", "", r.reason});
            results.push_back({{"algorithm", short_name(r.algorithm)}, {"refused", r.reason}});
        }
        output_.write(table.text());
        return {
            {"problem", spec.text()}, {"layers", spec.layers}, {"direction", direction}, {"gflop", flops / 1e9}, {"algorithms", results}};
    }

    // Relative to the norm of the result in double precision, on as many of the samples as are soon computed.
    std::vector<double> errors_of(ConvSpec spec, const std::string& direction, const std::vector<Candidate>& candidates) {
        constexpr double kEnough = 4e9;
        const double each = spec.operations() / static_cast<double>(spec.x[0]);
        const int64_t samples = std::clamp<int64_t>(static_cast<int64_t>(kEnough / each), 1, spec.x[0]);
        spec.x[0] = spec.y[0] = samples;
        const Problem problem = spec.problem(direction, DType::f32), precise = spec.problem(direction, DType::f64);
        const auto inputs = inputs_of(problem);
        const Tensor expected = computed(*reference_, precise, reference_->target().candidates(precise).at(0), inputs);
        std::vector<double> errors;
        const auto offered = backend_->target().candidates(problem);
        for (const Candidate& c : candidates) {
            const auto same = std::find_if(offered.begin(), offered.end(), [&](const Candidate& o) { return o.algorithm == c.algorithm; });
            errors.push_back(same == offered.end() ? NAN : distance(computed(*backend_, problem, *same, inputs), expected));
        }
        return errors;
    }

    static double distance(const Tensor& found, const Tensor& expected) {
        double difference = 0, norm = 0;
        const auto a = found.as<float>();
        const auto b = expected.as<double>();
        for (size_t i = 0; i < a.size(); ++i) {
            difference += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
            norm += b[i] * b[i];
        }
        return std::sqrt(difference / std::max(norm, 1e-300));
    }

    const ConvOptions& options_;
    const Output& output_;
    int threads_;
    std::unique_ptr<Backend> backend_, reference_;
    std::set<std::string> wanted_;
    double peak_ = 1;
};

std::vector<ConvSpec> specs_of(const ConvOptions& options) {
    if (options.problem.empty() == options.model.empty())
        throw UsageError("bench conv needs either a convolution (or a file of them) or --model");
    if (!options.model.empty()) {
        const Model model = known_model(options.model).make(model_options(options.common, Mode::Training, 8));
        auto specs = convs_of(model.graph);
        require(!specs.empty(), "{} has no convolutions", options.model);
        return specs;
    }
    if (std::filesystem::is_regular_file(options.problem)) return read_convs(options.problem);
    try {
        return {parse_conv(options.problem)};
    } catch (const Error& e) {
        throw UsageError(fmt::format("{} (nor is there a file of that name)", e.what()));
    }
}

}  // namespace

Command add_bench_conv(Parser& group) {
    Parser* parser = group.add_subcommand("conv", "Time every convolution algorithm");
    auto options = std::make_shared<ConvOptions>();
    parser->add_option("CONVOLUTION", options->problem, "A word such as n16c64h56w56f64k3s1p1, or a file with one on each line")
        ->option_text(" ");
    parser->add_option("--model", options->model, "All distinct convolutions of this model")->option_text("MODEL");
    add_common(*parser, options->common, "8, with --model");
    std::vector<std::string> directions = kDirections;
    directions.emplace_back("all");
    auto* direction = parser->add_option("--direction", options->direction, "forward, input, weight or all (default: all)");
    allow_only(direction->option_text("WHICH"), directions);
    parser->add_option("--algorithm", options->algorithms, "Only these, such as im2col,onednn-direct:last (default: all but the reference)")
        ->option_text("A,..");
    parser->add_flag("--warm", options->warm, "Leave in the caches what the run before left there (default: empty them)");
    parser->add_flag("--no-errors", options->no_errors, "Do not compare with double precision, which takes longer than measuring");
    describe(*parser,
             "Time every convolution algorithm of the cpu backend.\n"
             "Forwards and backwards: time, operations of the definition per second and their share of what a large matrix product "
             "reaches,\n"
             "operations that the algorithm itself takes, its extra memory, its error against double precision relative to the result's "
             "norm,\n"
             "and why an algorithm refuses.",
             "  convoy bench conv n16c64h56w56f64k3s1p1\n"
             "  convoy bench conv n2c16d32h32w32f32k3s1p1 --direction weight --threads 1\n"
             "  convoy bench conv --model vgg16 --batch 4 --algorithm im2col,kn2row-gemm --json vgg.json");
    return {parser, [options] {
                const auto specs = specs_of(*options);
                const Output output(options->common.json);
                Bench(*options, output).run(specs);
                return 0;
            }};
}

}  // namespace convoy
