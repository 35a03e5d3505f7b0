#include "exec/plan_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>

#include "base/error.h"
#include "exec/check.h"
#include "exec/share.h"

namespace convoy {

namespace {

constexpr double kExact = 1e-7;  // what float64 allows after some steps
constexpr double kFloor = 1e-3;  // of the norm of all tensors of a kind

// The slots that hold a whole value when the step is over: those that an instruction wrote.
std::map<ValueId, SlotId> written_values(const Program& program) {
    std::map<ValueId, SlotId> slots;
    for (const Instruction& in : program.instructions)
        for (const SlotId id : in.outputs) {
            const Slot& slot = program.slot(id);
            if (slot.value != kNone && slot.state == kNone && slot.desc.shape == slot.desc.global) slots[slot.value] = id;
        }
    return slots;
}

// "momentum" of "optimizer.conv1.weight.momentum"
std::string kind_of(const StateSpec& spec) {
    if (spec.kind != StateKind::Slot) return spec.kind == StateKind::Parameter ? "parameter" : "buffer";
    return spec.name.substr(spec.name.rfind('.') + 1);
}

// The whole step as one process does it, with every value of it at hand.
class OneProcess {
  public:
    OneProcess(const Graph& graph, const SessionOptions& like)
        : graph_(graph),
          session_({.dtype = DType::f64, .threads = like.threads, .seed = like.seed, .reuse_memory = false}),
          executor_(session_.load(graph)),
          slots_(written_values(executor_->program())) {}

    void run(const std::map<std::string, Tensor>& feeds, const StepContext& context) {
        for (const auto& [name, tensor] : feeds) executor_->set_whole_input(name, tensor);
        executor_->run(context);
        measure();
    }

    State& state() { return session_.state(); }
    // The value after the step; nothing when the program has it only inside an instruction.
    std::optional<Tensor> value(ValueId v) const {
        const auto slot = slots_.find(v);
        return slot == slots_.end() ? std::nullopt : std::optional<Tensor>(executor_->read(slot->second));
    }
    // The least that an error is taken relative to.
    double floor_of(ValueId v) const { return is_gradient(v) ? kFloor * gradient_ : 0; }
    double floor_of(const StateSpec& spec) const { return kFloor * kinds_.at(kind_of(spec)); }

  private:
    bool is_gradient(ValueId v) const {
        const ValueId of = graph_.value(v).gradient_of;
        return of != kNone && graph_.value(of).state != kNone;
    }

    void measure() {
        double squares = 0;
        for (const auto& [v, slot] : slots_)
            if (is_gradient(v)) squares += std::pow(norm_of(executor_->read(slot)), 2);
        gradient_ = std::sqrt(squares);
        kinds_.clear();
        for (const StateSpec& spec : session_.state().specs()) {
            double& sum = kinds_[kind_of(spec)];
            sum = std::hypot(sum, norm_of(session_.state().read(spec.name)));
        }
    }

    const Graph& graph_;
    Session session_;
    std::unique_ptr<Executor> executor_;
    std::map<ValueId, SlotId> slots_;
    double gradient_ = 0;
    std::map<std::string, double> kinds_;
};

// The worst deviation of each layer.
class Findings {
  public:
    void add(const Deviation& d) {
        ++compared_;
        keep(d);
    }

    // Those of all ranks, on all ranks.
    PlanCheck merged(Link* link) const {
        Findings all;
        int64_t compared = 0;
        for (Rank r = 0; r < (link ? link->size() : 1); ++r) {
            const Json json = Json::parse(share_text(link, r, to_json().dump()));
            compared += json.at("compared").get<int64_t>();
            for (const Json& d : json.at("layers")) all.keep(from_json(d));
        }
        PlanCheck result{.layers = {}, .compared = compared};
        for (const auto& [layer, d] : all.worst_) result.layers.push_back(d);
        std::stable_sort(result.layers.begin(), result.layers.end(),
                         [](const Deviation& a, const Deviation& b) { return a.severity() > b.severity(); });
        return result;
    }

  private:
    void keep(const Deviation& d) {
        const auto [at, added] = worst_.emplace(d.layer, d);
        if (!added && d.severity() > at->second.severity()) at->second = d;
    }

    // JSON has no infinity: an error that is none is written as the largest number.
    Json to_json() const {
        Json layers = Json::array();
        for (const auto& [layer, d] : worst_)
            layers.push_back({layer, d.what, std::min(d.error, std::numeric_limits<double>::max()), d.limit, d.rank, d.step});
        return {{"layers", layers}, {"compared", compared_}};
    }
    static Deviation from_json(const Json& json) { return {json[0], json[1], json[2], json[3], json[4], json[5]}; }

    std::map<std::string, Deviation> worst_;
    int64_t compared_ = 0;
};

class Checking {
  public:
    Checking(const Graph& graph, const PlanCheckOptions& options) : graph_(graph), options_(options), one_(graph, options.session) {
        for (const Node& node : graph.nodes()) {
            if (node.phase == Phase::Forward) layers_.insert(node.layer);
            for (const ValueId v : node.outputs) makers_.emplace(v, &node);
            for (const ValueId v : node.inputs)
                if (graph.value(v).state != kNone) owners_.emplace(graph.value(v).name, node.layer);
        }
        if (Link* link = options.session.link) rank_ = link->rank();
    }

    PlanCheck run() {
        if (options_.session.dtype == DType::f64)
            exact();
        else
            teacher_forced();
        return findings_.merged(options_.session.link);
    }

  private:
    StepContext context() const { return {options_.session.seed, static_cast<uint32_t>(step_)}; }

    // The real thing in float64.
    void exact() {
        SessionOptions session_options = options_.session;
        session_options.reuse_memory = false;
        Session session(session_options);
        const auto executor = session.load(graph_);
        const Program& program = executor->program();
        for (step_ = 0; step_ < options_.steps; ++step_) {
            const auto feeds = options_.feeds(step_);
            one_.run(feeds, context());
            for (const auto& [name, tensor] : feeds) executor->set_whole_input(name, tensor);
            executor->run(context());
            for (const Instruction& in : program.instructions)
                for (const SlotId id : in.outputs)
                    if (program.slot(id).state == kNone) compare_value(program.slot(id), executor->read(id));
            for (const StateBinding& state : program.states) compare_state(state, session.state().read_part(state.spec.name));
        }
    }

    // Every instruction of a narrower type on the inputs that one process had.
    void teacher_forced() {
        Session session(options_.session);
        const Program program = session.compile(graph_);
        for (step_ = 0; step_ < options_.steps; ++step_) {
            auto feeds = options_.feeds(step_);
            auto given = feeds;
            for (const StateSpec& spec : one_.state().specs()) given[spec.name] = one_.state().read(spec.name);
            one_.run(feeds, context());
            const auto see = [&](SlotId id, const Tensor& truth) {
                const Slot& slot = program.slot(id);
                if (slot.state == kNone) return compare_value(slot, truth);
                const StateBinding& state = program.states[static_cast<size_t>(slot.state)];
                if (truth.shape() == state.desc.shape) compare_state(state, truth);
            };
            const auto errors =
                check_instructions(program, session.backend(), given, context(), {.link = options_.session.link, .on_truth = see});
            for (const InstructionError& e : errors) {
                const Instruction& in = program.instructions[static_cast<size_t>(e.instruction)];
                add(in.layer, fmt::format("{}: {}, in {}", name_of(in.phase), text_of(in), name_of(options_.session.dtype)), e.error,
                    allowed_error(options_.session.dtype));
            }
        }
    }

    // A sum that is not yet complete is no value of one process; neither are messages.
    void compare_value(const Slot& slot, const Tensor& found) {
        if (slot.value == kNone || slot.partial || found.numel() == 0) return;
        const auto whole = one_.value(slot.value);
        if (!whole) return;
        const Node& node = *makers_.at(slot.value);
        std::string what = fmt::format("{}: {}", name_of(node.phase), text_of(node.op));
        add(node.layer, std::move(what), error_of(found, *whole, slot.desc, one_.floor_of(slot.value)), kExact);
    }

    void compare_state(const StateBinding& state, const Tensor& found) {
        if (found.numel() == 0) return;
        const auto owner = owners_.find(state.spec.name);
        const char* const kind = state.spec.kind == StateKind::Parameter ? "parameter"
                                 : state.spec.kind == StateKind::Buffer  ? "buffer"
                                                                         : "optimizer state";
        add(owner == owners_.end() ? state.spec.name : owner->second, fmt::format("{} {}", kind, state.spec.name),
            error_of(found, one_.state().read(state.spec.name), state.desc, one_.floor_of(state.spec)), kExact);
    }

    static double error_of(const Tensor& found, const Tensor& whole, const TensorDesc& desc, double floor) {
        const double off = distance_between(found, part_of(whole, {desc.origin, desc.shape}));
        return off == 0 ? 0 : off / std::max(norm_of(whole), floor);
    }

    // An update belongs to a parameter, "conv1.weight", and so to its layer.
    std::string layer_of(const std::string& name) const {
        const std::string before = name.substr(0, name.rfind('.'));
        return !layers_.count(name) && layers_.count(before) ? before : name;
    }

    void add(const std::string& layer, std::string what, double error, double limit) {
        if (!std::isfinite(error)) error = std::numeric_limits<double>::infinity();
        findings_.add({layer_of(layer), std::move(what), error, limit, rank_, step_ + 1});
    }

    const Graph& graph_;
    const PlanCheckOptions& options_;
    OneProcess one_;
    std::set<std::string> layers_;
    std::map<ValueId, const Node*> makers_;
    std::map<std::string, std::string> owners_;  // state -> the layer that first reads it
    Rank rank_ = 0;
    int step_ = 0;
    Findings findings_;
};

}  // namespace

double allowed_error(DType dtype) {
    switch (dtype) {
        case DType::f64: return kExact;
        case DType::tf32: return 2e-3;
        case DType::bf16:
        case DType::f16: return 2e-2;
        default: return 1e-4;
    }
}

PlanCheck check_plan(const Graph& graph, const PlanCheckOptions& options) { return Checking(graph, options).run(); }

}  // namespace convoy
