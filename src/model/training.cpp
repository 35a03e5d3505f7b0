// Whole graphs made from a model: forward with its losses, the backward pass, micro-batches and the update.
#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "model/autodiff.h"

namespace convoy {

namespace {

// A copy of the model's forward pass inside a larger graph.
struct Forward {
    std::vector<ValueId> values;  // by the model's value ids
    ValueId operator[](ValueId id) const { return values[static_cast<size_t>(id)]; }
};

// The newest version of each state that the forward pass itself stores (running statistics).
using Versions = std::map<std::string, ValueId>;

Forward copy_forward(const Model& model, Graph& graph, int micro_batch, Versions& versions) {
    const Graph& source = model.graph;
    Forward forward{std::vector<ValueId>(source.values().size(), kNone)};
    graph.set_phase(Phase::Forward);
    graph.set_micro_batch(micro_batch);
    for (size_t v = 0; v < source.values().size(); ++v) {
        const Value& value = source.values()[v];
        if (value.state == kNone) continue;
        const auto newer = versions.find(value.name);
        forward.values[v] = newer != versions.end() ? newer->second : graph.add_state(source.states()[static_cast<size_t>(value.state)]);
    }
    for (const auto& [name, v] : source.inputs())
        forward.values[static_cast<size_t>(v)] = graph.add_input(micro_name(name, micro_batch), source.value(v).type);
    for (const Node& node : source.nodes()) {
        Op op = node.op;
        std::vector<ValueId> inputs;
        for (const ValueId v : node.inputs) inputs.push_back(forward[v]);
        if (auto* dropout = std::get_if<DropoutOp>(&op)) dropout->first_sample = micro_batch * source.shape(node.inputs[0])[0];
        const auto outputs = graph.add(op, inputs, node.layer);
        for (size_t i = 0; i < outputs.size(); ++i) forward.values[static_cast<size_t>(node.outputs[i])] = outputs[i];
    }
    for (const Store& store : source.stores()) versions[source.value(store.state).name] = forward[store.value];
    return forward;
}

ValueId sum(Graph& graph, const std::vector<ValueId>& parts, const std::string& layer) {
    return parts.size() == 1 ? parts[0] : graph.add1(AddOp{}, parts, layer);
}

// The losses of a model over all micro-batches: targets, normalisers, and for each micro-batch the terms and their gradients.
class Losses {
  public:
    Losses(const Model& model, Graph& graph, int micro_batches) : model_(model), graph_(graph), micro_batches_(micro_batches) {
        for (int m = 0; m < micro_batches; ++m) {
            graph_.set_micro_batch(m);
            for (const LossTerm& term : model.losses) add_target(term, m);
        }
        graph_.set_micro_batch(0);
        for (const LossTerm& term : model.losses) normalisers_.push_back(add_normaliser(term));
    }

    // Adds the losses of one micro-batch and, with `gradients`, returns the pairs of outputs and their gradients.
    std::vector<std::pair<ValueId, ValueId>> add(const Forward& forward, int micro_batch, bool gradients) {
        std::vector<std::pair<ValueId, ValueId>> seeds;
        for (size_t i = 0; i < model_.losses.size(); ++i) {
            const LossTerm& term = model_.losses[i];
            const ValueId output = forward[model_.graph.output(term.output)];
            const ValueId target = graph_.input(micro_name(term.target, micro_batch));
            const std::string layer = "loss." + term.output;
            std::vector<ValueId> inputs{output, target};
            Op loss, gradient;
            if (term.kind == LossKind::CrossEntropy) {
                const bool weighted = !term.class_weights.empty();
                const double scale = weighted ? term.weight : term.weight / count(target);
                if (weighted) inputs.insert(inputs.end(), {class_weights(term), normalisers_[i]});
                loss = CrossEntropyOp{term.label_smoothing, scale};
                gradient = CrossEntropyGradOp{term.label_smoothing, scale};
            } else {
                const ErrorKind kind = term.kind == LossKind::SquaredError ? ErrorKind::Squared : ErrorKind::Absolute;
                loss = ErrorLossOp{kind, term.weight / count(target)};
                gradient = ErrorLossGradOp{kind, term.weight / count(target)};
            }
            graph_.set_phase(Phase::Forward);
            terms_.push_back(graph_.add1(loss, inputs, layer));
            if (i == 0 && term.kind == LossKind::CrossEntropy) correct_.push_back(graph_.add1(CorrectOp{}, {output, target}, layer));
            if (gradients) {
                graph_.set_phase(Phase::Backward);
                seeds.emplace_back(output, graph_.add1(gradient, inputs, layer));
            }
        }
        return seeds;
    }

    void add_outputs() {
        graph_.set_phase(Phase::Forward);
        graph_.add_output("loss", sum(graph_, terms_, "loss"));
        if (!correct_.empty()) graph_.add_output("correct", sum(graph_, correct_, "correct"));
    }

  private:
    double count(ValueId target) const { return static_cast<double>(numel(graph_.shape(target))) * micro_batches_; }

    void add_target(const LossTerm& term, int m) {
        const std::string name = micro_name(term.target, m);
        if (std::any_of(graph_.inputs().begin(), graph_.inputs().end(), [&](const NamedValue& v) { return v.name == name; })) return;
        const Shape& output = model_.graph.shape(model_.graph.output(term.output));
        if (term.kind == LossKind::CrossEntropy)
            graph_.add_input(name, {join({output[0]}, output.slice(2)), Element::Index});
        else
            graph_.add_input(name, {output, Element::Real});
    }

    ValueId class_weights(const LossTerm& term) {
        const auto classes = static_cast<int64_t>(term.class_weights.size());
        return graph_.add_state({.name = "loss." + term.output + ".class_weights",
                                 .shape = {classes},
                                 .initializer = {.kind = Initializer::Kind::Values, .values = term.class_weights},
                                 .kind = StateKind::Buffer});
    }

    // The sum of the class weights of all targets of the step, known before any forward pass since it depends on the targets alone.
    ValueId add_normaliser(const LossTerm& term) {
        if (term.class_weights.empty()) return kNone;
        graph_.set_phase(Phase::Forward);
        std::vector<ValueId> parts;
        for (int m = 0; m < micro_batches_; ++m)
            parts.push_back(
                graph_.add1(TargetWeightOp{}, {graph_.input(micro_name(term.target, m)), class_weights(term)}, "loss." + term.output));
        return sum(graph_, parts, "loss." + term.output);
    }

    const Model& model_;
    Graph& graph_;
    int micro_batches_;
    std::vector<ValueId> normalisers_, terms_, correct_;
};

std::vector<std::string> slot_names(Rule rule) {
    switch (rule) {
        case Rule::Sgd: return {};
        case Rule::Momentum:
        case Rule::Nesterov:
        case Rule::Lars: return {"momentum"};
        case Rule::AdaGrad: return {"square"};
        case Rule::RmsProp: return {"square", "momentum"};
        case Rule::Adam:
        case Rule::AdamW:
        case Rule::Lamb: return {"mean", "square"};
    }
    return {};
}

struct Learned {
    ValueId parameter, gradient;
};

void add_update(Graph& graph, const Optimizer& optimizer, const std::vector<Learned>& learned) {
    graph.set_phase(Phase::Update);
    graph.set_micro_batch(0);
    const ValueId hyper = graph.add_input("hyper", {{2}, Element::Precise});
    ValueId clip = kNone;
    if (optimizer.clip_norm > 0) {
        std::vector<ValueId> squares;
        for (const auto& [parameter, gradient] : learned)
            squares.push_back(graph.add1(SquaredNormOp{}, {gradient}, graph.value(parameter).name));
        clip = graph.add1(ClipScaleOp{optimizer.clip_norm}, {sum(graph, squares, "clip")}, "clip");
    }
    for (const auto& [parameter, gradient] : learned) {
        const std::string name = graph.value(parameter).name;
        const StateSpec spec = graph.states()[static_cast<size_t>(graph.value(parameter).state)];
        UpdateRule rule = optimizer.rule;
        const bool by_layer = rule.rule == Rule::Lars || rule.rule == Rule::Lamb;
        if (by_layer && !spec.decays) {
            rule.weight_decay = 0;
            if (rule.rule == Rule::Lars) rule.rule = Rule::Momentum;
        }
        std::vector<ValueId> inputs{parameter, gradient, hyper}, slots;
        for (const auto& slot : slot_names(rule.rule))
            slots.push_back(graph.add_state({.name = "optimizer." + name + "." + slot, .shape = spec.shape, .kind = StateKind::Slot}));
        inputs.insert(inputs.end(), slots.begin(), slots.end());
        const bool clipped = clip != kNone;
        std::vector<ValueId> results;
        if (rule.rule == Rule::Lamb) {
            if (clipped) inputs.push_back(clip);
            results = graph.add(LambDirectionOp{rule, clipped}, inputs, name);
            const ValueId w2 = graph.add1(SquaredNormOp{}, {parameter}, name), r2 = graph.add1(SquaredNormOp{}, {results[0]}, name);
            results[0] = graph.add1(LambApplyOp{}, {parameter, results[0], hyper, w2, r2}, name);
        } else {
            if (rule.rule == Rule::Lars)
                for (const ValueId v : {parameter, gradient}) inputs.push_back(graph.add1(SquaredNormOp{}, {v}, name));
            if (clipped) inputs.push_back(clip);
            results = graph.add(UpdateOp{rule, clipped}, inputs, name);
        }
        graph.add_store(parameter, results[0]);
        for (size_t i = 0; i < slots.size(); ++i) graph.add_store(slots[i], results[i + 1]);
    }
}

std::vector<ValueId> parameters_of(const Graph& graph, const std::vector<std::string>& frozen) {
    std::vector<ValueId> parameters;
    for (size_t v = 0; v < graph.values().size(); ++v) {
        const Value& value = graph.values()[v];
        if (value.state == kNone || graph.states()[static_cast<size_t>(value.state)].kind != StateKind::Parameter) continue;
        if (std::find(frozen.begin(), frozen.end(), value.name) == frozen.end()) parameters.push_back(static_cast<ValueId>(v));
    }
    return parameters;
}

}  // namespace

std::string micro_name(const std::string& name, int micro_batch) {
    return micro_batch == 0 ? name : fmt::format("{}@{}", name, micro_batch);
}

Graph training_graph(const Model& model, const Optimizer& optimizer, const TrainingOptions& options) {
    CONVOY_CHECK(options.micro_batches > 0, "{} micro-batches", options.micro_batches);
    Graph graph;
    Versions versions;
    Losses losses(model, graph, options.micro_batches);
    std::vector<ValueId> parameters, gradients;
    for (int m = 0; m < options.micro_batches; ++m) {
        const Forward forward = copy_forward(model, graph, m, versions);
        const auto seeds = losses.add(forward, m, true);
        if (m + 1 == options.micro_batches) losses.add_outputs();
        graph.set_phase(Phase::Backward);
        if (m == 0) parameters = parameters_of(graph, options.frozen);
        const auto parts = backward(graph, seeds, parameters);
        if (m == 0) gradients.assign(parts.size(), kNone);
        for (size_t i = 0; i < parts.size(); ++i) {
            if (parts[i] == kNone) continue;
            gradients[i] =
                gradients[i] == kNone ? parts[i] : graph.add1(AddOp{}, {gradients[i], parts[i]}, graph.value(parameters[i]).name);
            graph.mark_gradient(gradients[i], parameters[i]);
        }
    }
    std::vector<Learned> learned;
    for (size_t i = 0; i < parameters.size(); ++i)
        if (gradients[i] != kNone) learned.push_back({parameters[i], gradients[i]});
    require(!learned.empty(), "model \"{}\" has no parameter to learn{}", model.name,
            options.frozen.empty() ? "" : ": all of them are frozen");
    if (options.gradients)
        for (const auto& [parameter, gradient] : learned) graph.add_output("grad:" + graph.value(parameter).name, gradient);
    for (const auto& [name, value] : versions) graph.add_store(*graph.find_state(name), value);
    add_update(graph, optimizer, learned);
    return graph;
}

Graph evaluation_graph(const Model& model) {
    Graph graph;
    Versions versions;
    Losses losses(model, graph, 1);
    const Forward forward = copy_forward(model, graph, 0, versions);
    losses.add(forward, 0, false);
    losses.add_outputs();
    for (const auto& [name, value] : model.graph.outputs()) graph.add_output(name, forward[value]);
    return graph;
}

Graph gradient_graph(const Model& model, bool input_gradient) {
    Graph graph;
    Versions versions;
    Losses losses(model, graph, 1);
    const Forward forward = copy_forward(model, graph, 0, versions);
    const auto seeds = losses.add(forward, 0, true);
    losses.add_outputs();
    graph.set_phase(Phase::Backward);
    auto wrt = parameters_of(graph, {});
    if (input_gradient) wrt.push_back(graph.input("input"));
    const auto gradients = backward(graph, seeds, wrt);
    for (size_t i = 0; i < wrt.size(); ++i)
        if (gradients[i] != kNone) graph.add_output("grad:" + graph.value(wrt[i]).name, gradients[i]);
    for (const auto& [name, value] : versions) graph.add_store(*graph.find_state(name), value);
    return graph;
}

}  // namespace convoy
