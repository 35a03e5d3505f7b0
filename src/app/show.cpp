// A model on paper: its layers, what they cost, the memory that a step of it needs, and the program that would run.
#include <map>
#include <set>

#include "app/command.h"
#include "app/options.h"
#include "app/output.h"
#include "app/parser.h"
#include "app/table.h"
#include "base/json.h"
#include "model/autodiff.h"
#include "model/cost.h"
#include "model/zoo.h"
#include "train/config.h"

namespace convoy {

namespace {

struct ShowOptions {
    CommonOptions common;
    std::string model, optimizer = "momentum";
    int micro_batches = 1;
    bool program = false, evaluation = false;
};

struct LayerRow {
    std::string name, kind;
    Shape output;
    int64_t parameters = 0;
    double flops = 0, bytes = 0;
};

// One row per layer, in the order of their first nodes. A parameter that several layers share is counted where it is first read.
std::vector<LayerRow> layers_of(const Graph& graph, DType dtype) {
    std::vector<LayerRow> rows;
    std::map<std::string, size_t> index;
    std::set<ValueId> counted;
    for (const Node& node : graph.nodes()) {
        const auto [at, added] = index.emplace(node.layer, rows.size());
        if (added) rows.push_back({.name = node.layer});
        LayerRow& row = rows[at->second];
        row.kind += (row.kind.empty() ? "" : " + ") + text_of(node.op);
        row.output = graph.shape(node.outputs[0]);
        const Cost cost = cost_of(graph, node);
        row.flops += cost.work;
        row.bytes += cost.moved * static_cast<double>(size_of(dtype));
        for (const ValueId v : node.inputs) {
            const int state = graph.value(v).state;
            if (state == kNone || graph.states()[static_cast<size_t>(state)].kind != StateKind::Parameter || !counted.insert(v).second)
                continue;
            row.parameters += numel(graph.shape(v));
        }
    }
    return rows;
}

int list_models(const Output& output) {
    Table table({{"model"}, {"input"}, {"classes", Table::Align::Right}, {"what it is"}});
    Json models = Json::array();
    for (const ZooEntry& entry : zoo()) {
        table.add({entry.name, to_string(entry.input), std::to_string(entry.classes), entry.summary});
        models.push_back({{"name", entry.name}, {"input", to_string(entry.input)}, {"classes", entry.classes}, {"summary", entry.summary}});
    }
    output.write(table.text());
    output.line("\nInput and classes are defaults; --input and --classes change them. `convoy show MODEL` shows a model's layers.");
    output.result({{"models", models}});
    return 0;
}

Json to_json(const MemoryPlan& plan) {
    return {{"arena_bytes", plan.arena_bytes}, {"state_bytes", plan.state_bytes}, {"unshared_bytes", plan.unshared_bytes}};
}

std::string memory_text(const MemoryPlan& plan) {
    const auto bytes = [](int64_t count) { return short_bytes(static_cast<double>(count)); };
    if (plan.arena_bytes > plan.unshared_bytes)
        return fmt::format("{} for a step (scratch memory of kernels for the most part) and {} of state", bytes(plan.arena_bytes),
                           bytes(plan.state_bytes));
    const double ratio = plan.unshared_bytes > 0 ? static_cast<double>(plan.arena_bytes) / static_cast<double>(plan.unshared_bytes) : 1;
    return fmt::format("{} for a step ({:.2f} of the {} that it would be without reuse) and {} of state", bytes(plan.arena_bytes), ratio,
                       bytes(plan.unshared_bytes), bytes(plan.state_bytes));
}

Json to_json(const LayerRow& row) {
    return {{"name", row.name},   {"kind", row.kind},  {"output", to_string(row.output)}, {"parameters", row.parameters},
            {"flops", row.flops}, {"bytes", row.bytes}};
}

Table table_of(const std::vector<LayerRow>& rows) {
    Table table({{"layer"},
                 {"kind"},
                 {"output"},
                 {"parameters", Table::Align::Right},
                 {"FLOP", Table::Align::Right},
                 {"moved", Table::Align::Right}});
    for (const LayerRow& row : rows)
        table.add({row.name, row.kind, to_string(row.output), row.parameters > 0 ? grouped(row.parameters) : "", short_number(row.flops),
                   short_bytes(row.bytes)});
    return table;
}

LayerRow sum_of(const std::vector<LayerRow>& rows) {
    LayerRow sum;
    for (const LayerRow& row : rows) {
        sum.parameters += row.parameters;
        sum.flops += row.flops;
        sum.bytes += row.bytes;
    }
    return sum;
}

// Both programs of a model, whichever is looked at: their memory is compared.
struct Programs {
    Program training, evaluation;
};
Programs compile_both(const ModelSource& entry, const ShowOptions& options, const ModelOptions& shape, const Session& session) {
    require(shape.batch % options.micro_batches == 0, "{} micro-batches do not divide a batch of {}", options.micro_batches, shape.batch);
    ModelOptions part = shape, whole = shape;
    part.mode = Mode::Training;
    part.batch /= options.micro_batches;
    whole.mode = Mode::Evaluation;
    const Optimizer optimizer{.rule = {.rule = rule_named(options.optimizer)}};
    return {session.compile(training_graph(entry.make(part), optimizer, {.micro_batches = options.micro_batches})),
            session.compile(evaluation_graph(entry.make(whole)))};
}

int show(const ShowOptions& options) {
    const Output output(options.common.json);
    if (options.model.empty()) return list_models(output);
    const ModelSource entry = known_model(options.model);
    const Session session(session_options(options.common));
    const DType dtype = session.options().dtype;
    const std::string mode = options.evaluation ? "evaluation" : "training";
    const ModelOptions shape = model_options(options.common, options.evaluation ? Mode::Evaluation : Mode::Training, 1);
    const Model model = entry.make(shape);
    const auto [training, evaluation] = compile_both(entry, options, shape, session);
    const Program& chosen = options.evaluation ? evaluation : training;

    const auto rows = layers_of(model.graph, dtype);
    const LayerRow sum = sum_of(rows);
    const WorkDepth cost = work_depth(model.graph);
    const double parallelism = cost.depth > 0 ? cost.work / cost.depth : 0;
    const Shape& input = model.graph.shape(model.graph.input("input"));

    output.line("{}: {}; input {}, in {} mode, {} on backend {}\n", entry.name, entry.summary, to_string(input), mode, name_of(dtype),
                session.options().backend);
    output.write(table_of(rows).text());
    output.line("\nparameters           {}", grouped(sum.parameters));
    output.line("forward pass         {}FLOP, moves {}", short_number(sum.flops) + (sum.flops < 999.5 ? " " : ""), short_bytes(sum.bytes));
    output.line("work and depth       {} multiply-adds and combining operations, the longest chain {} (activations not counted)",
                grouped(static_cast<int64_t>(cost.work)), grouped(static_cast<int64_t>(cost.depth)));
    output.line("average parallelism  {}", short_number(parallelism));
    output.line("memory, training     {} (optimizer {})", memory_text(training.memory), options.optimizer);
    output.line("memory, evaluation   {}", memory_text(evaluation.memory));
    if (options.program) output.write("\n" + listing(chosen));

    Json layers = Json::array();
    for (const LayerRow& row : rows) layers.push_back(to_json(row));
    Json document{{"model", entry.name},
                  {"input", to_string(input.slice(1))},
                  {"classes", model.classes},
                  {"batch", input[0]},
                  {"mode", mode},
                  {"dtype", name_of(dtype)},
                  {"backend", session.options().backend},
                  {"layers", layers},
                  {"parameters", sum.parameters},
                  {"flops", sum.flops},
                  {"bytes", sum.bytes},
                  {"work", cost.work},
                  {"depth", cost.depth},
                  {"average_parallelism", parallelism},
                  {"optimizer", options.optimizer},
                  {"micro_batches", options.micro_batches},
                  {"memory", {{"training", to_json(training.memory)}, {"evaluation", to_json(evaluation.memory)}}}};
    if (options.program) document["program"] = convoy::to_json(chosen);
    output.result(document);
    return 0;
}

}  // namespace

Command add_show(Parser& program) {
    Parser* const parser = program.add_subcommand("show", "");
    describe(*parser,
             "Show a model: its layers, what they cost, and the memory a step needs.\n"
             "For each layer the shape of its output, parameters, work and bytes; for the whole its depth, its parallelism and the memory "
             "planned.\n"
             "With --program, the instructions that a step runs and the bytes that each must move. Without a model, those that there are.",
             "  convoy show\n"
             "  convoy show resnet18 --batch 8\n"
             "  convoy show lenet5 --batch 64 --program\n"
             "  convoy show unet3d --input 1x32x32x32 --evaluation --json unet.json");
    const auto options = std::make_shared<ShowOptions>();
    add_model(*parser, options->model);
    parser->add_flag("--program", options->program, "Print the program of a training step, instruction by instruction");
    parser->add_flag("--evaluation", options->evaluation, "The model, and its program, in evaluation mode");
    add_optimizer(*parser, options->optimizer);
    add_micro_batches(*parser, options->micro_batches);
    add_common(*parser, options->common, "1");
    return {parser, [options] { return show(*options); }};
}

}  // namespace convoy
