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

// A tensor that only the first rank has (`whole`, null elsewhere) to all of them, some rows at a time: `hear` gets each piece in f64 and where it lies.
void tell(Link* link, const Shape& shape, const Tensor* whole, const std::function<void(const Tensor&, const Box&)>& hear) {
    constexpr int64_t kPieceBytes = 8 << 20;
    const int64_t rows = shape.empty() ? 1 : shape[0];
    const int64_t row_bytes = rows == 0 ? 0 : numel(shape) / rows * size_of(DType::f64);
    const int64_t at_once = std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(1, row_bytes));
    for (int64_t row = 0; row < rows; row += at_once) {
        Box box = Box::whole(shape);
        if (!shape.empty()) box = box.with(0, row, std::min(rows, row + at_once));
        Tensor piece = whole ? part_of(*whole, box).to(DType::f64) : Tensor(box.shape, DType::f64);
        if (link && link->size() > 1) link->everyone().broadcast(piece.data(), piece.numel(), DType::f64, 0);
        hear(piece, box);
    }
}

// The whole step as one process does it, with every value of it at hand. The first rank runs it and tells the others.
class OneProcess {
  public:
    OneProcess(const Graph& graph, const PlanCheckOptions& options) : graph_(graph), link_(options.session.link) {
        if (link_ && link_->rank() > 0) return;
        session_ = std::make_unique<Session>(SessionOptions{
            .dtype = DType::f64, .threads = options.one_process_threads, .seed = options.session.seed, .reuse_memory = false});
        executor_ = session_->load(graph);
        slots_ = written_values(executor_->program());
    }

    // A step, after which all ranks know what there is and how large it is.
    void run(const std::map<std::string, Tensor>& feeds, const StepContext& context) {
        Json known;
        if (executor_) {
            for (const auto& [name, tensor] : feeds) executor_->set_whole_input(name, tensor);
            executor_->run(context);
            known = measured();
        }
        known = Json::parse(share_text(link_, 0, known.dump()));
        values_ = known.at("values").get<std::vector<ValueId>>();
        states_ = known.at("states").get<std::vector<std::string>>();
        gradient_ = known.at("gradient");
        kinds_ = known.at("kinds").get<std::map<std::string, double>>();
    }

    // What the step has made, except what it has only inside an instruction; the same on every rank.
    const std::vector<ValueId>& values() const { return values_; }
    const std::vector<std::string>& states() const { return states_; }
    void tell_value(ValueId v, const std::function<void(const Tensor&, const Box&)>& hear) const {
        const Tensor whole = executor_ ? executor_->read(slots_.at(v)) : Tensor();
        tell(link_, graph_.shape(v), executor_ ? &whole : nullptr, hear);
    }
    void tell_state(const std::string& name, const Shape& shape, const std::function<void(const Tensor&, const Box&)>& hear) const {
        const Tensor whole = executor_ ? session_->state().read(name) : Tensor();
        tell(link_, shape, executor_ ? &whole : nullptr, hear);
    }
    // The least that an error is taken relative to.
    double floor_of(ValueId v) const { return is_gradient(v) ? kFloor * gradient_ : 0; }
    double floor_of(const StateSpec& spec) const { return kFloor * kinds_.at(kind_of(spec)); }

  private:
    bool is_gradient(ValueId v) const {
        const ValueId of = graph_.value(v).gradient_of;
        return of != kNone && graph_.value(of).state != kNone;
    }

    Json measured() const {
        std::vector<ValueId> values;
        std::vector<std::string> states;
        double gradient = 0;
        std::map<std::string, double> kinds;
        for (const auto& [v, slot] : slots_) {
            values.push_back(v);
            if (is_gradient(v)) gradient = std::hypot(gradient, norm_of(executor_->read(slot)));
        }
        for (const StateSpec& spec : session_->state().specs()) {
            states.push_back(spec.name);
            double& sum = kinds[kind_of(spec)];
            sum = std::hypot(sum, norm_of(session_->state().read(spec.name)));
        }
        require(std::isfinite(gradient), "one process computes gradients that are not finite; there is nothing to compare with");
        return {{"values", values}, {"states", states}, {"gradient", gradient}, {"kinds", kinds}};
    }

    const Graph& graph_;
    Link* link_;
    std::unique_ptr<Session> session_;  // on the first rank alone, like all that belongs to it
    std::unique_ptr<Executor> executor_;
    std::map<ValueId, SlotId> slots_;
    std::vector<ValueId> values_;
    std::vector<std::string> states_;
    double gradient_ = 0;
    std::map<std::string, double> kinds_;
};

// How far a rank's part of a tensor is from what it hears.
class Comparison {
  public:
    Comparison(Tensor found, const Box& box) : found_(std::move(found)), box_(box) {}

    void hear(const Tensor& piece, const Box& where) {
        const Box common = intersection(box_, where);
        if (common.empty()) return;
        off_ = std::hypot(off_, distance_between(part_of(found_, common.within(box_)), part_of(piece, common.within(where))));
    }
    // Relative to the norm of the whole, or to the floor where that is more.
    double error(double norm, double floor) const { return off_ == 0 ? 0 : off_ / std::max(norm, floor); }

  private:
    Tensor found_;
    Box box_;
    double off_ = 0;
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
    Checking(const Graph& graph, const PlanCheckOptions& options) : graph_(graph), options_(options), one_(graph, options) {
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
        std::vector<SlotId> written;
        for (const Instruction& in : program.instructions) written.insert(written.end(), in.outputs.begin(), in.outputs.end());
        for (step_ = 0; step_ < options_.steps; ++step_) {
            const auto feeds = options_.feeds(step_);
            one_.run(feeds, context());
            for (const auto& [name, tensor] : feeds) executor->set_whole_input(name, tensor);
            executor->run(context());
            compare(
                program, written, [&](SlotId id) { return executor->read(id); },
                [&](const StateBinding& state) { return session.state().read_part(state.spec.name); });
        }
    }

    // Every instruction of a narrower type on the inputs that the plan had in float64, which are those of one process if the plan is right.
    void teacher_forced() {
        Session session(options_.session);
        const Program program = session.compile(graph_);
        std::map<std::string, std::shared_ptr<const Tensor>> states;  // this rank's parts
        for (const StateBinding& state : program.states)
            states[state.spec.name] = std::make_shared<const Tensor>(
                part_of(initial_value(state.spec, DType::f64, options_.session.seed), {state.desc.origin, state.desc.shape}));
        for (step_ = 0; step_ < options_.steps; ++step_) {
            const auto feeds = options_.feeds(step_);
            one_.run(feeds, context());
            const Feed feed = [&](const std::string& name, const TensorDesc& part) {
                const auto state = states.find(name);
                return state == states.end() ? parts_of(feeds)(name, part) : *state->second;
            };
            std::map<SlotId, std::shared_ptr<const Tensor>> made;
            const auto see = [&](SlotId id, const std::shared_ptr<const Tensor>& truth) {
                const Slot& slot = program.slot(id);
                if (slot.state == kNone) {
                    if (is_compared(slot)) made[id] = truth;
                    return;
                }
                const StateBinding& state = program.states[static_cast<size_t>(slot.state)];
                if (truth->shape() == state.desc.shape) states[state.spec.name] = truth;
            };
            const auto errors =
                check_instructions(program, session.backend(), feed, context(), {.link = options_.session.link, .on_truth = see});
            for (const InstructionError& e : errors) {
                const Instruction& in = program.instructions[static_cast<size_t>(e.instruction)];
                add(in.layer, fmt::format("{}: {}, in {}", name_of(in.phase), text_of(in), name_of(options_.session.dtype)), e.error,
                    allowed_error(options_.session.dtype));
            }
            std::vector<SlotId> written;
            for (const auto& [id, truth] : made) written.push_back(id);
            compare(
                program, written, [&](SlotId id) { return *made.at(id); },
                [&](const StateBinding& state) { return *states.at(state.spec.name); });
        }
    }

    // A sum that is not yet complete is no value of one process; neither are messages.
    static bool is_compared(const Slot& slot) {
        return slot.value != kNone && slot.state == kNone && !slot.partial && numel(slot.desc.shape) > 0;
    }

    // What this rank has made against what one process has.
    template <class ReadSlot, class ReadState>
    void compare(const Program& program, const std::vector<SlotId>& written, const ReadSlot& read_slot, const ReadState& read_state) {
        std::map<ValueId, std::vector<SlotId>> slots;
        std::map<std::string, const StateBinding*> states;
        for (const SlotId id : written)
            if (is_compared(program.slot(id))) slots[program.slot(id).value].push_back(id);
        for (const StateBinding& state : program.states)
            if (numel(state.desc.shape) > 0) states[state.spec.name] = &state;
        for (const ValueId v : one_.values()) {
            std::vector<Comparison> mine;
            for (const SlotId id : slots[v]) mine.emplace_back(read_slot(id), box_of(program.slot(id).desc));
            const double norm = listen(mine, [&](const auto& hear) { one_.tell_value(v, hear); });
            const Node& node = *makers_.at(v);
            for (const Comparison& c : mine)
                add(node.layer, fmt::format("{}: {}", name_of(node.phase), text_of(node.op)), c.error(norm, one_.floor_of(v)), kExact);
        }
        for (const std::string& name : one_.states()) {
            std::vector<Comparison> mine;
            const auto state = states.find(name);
            if (state != states.end()) mine.emplace_back(read_state(*state->second), box_of(state->second->desc));
            const double norm = listen(mine, [&](const auto& hear) { one_.tell_state(name, shape_of_state(name), hear); });
            for (const Comparison& c : mine) compare_state(state->second->spec, c, norm);
        }
    }

    static Box box_of(const TensorDesc& desc) { return {desc.origin, desc.shape}; }

    const Shape& shape_of_state(const std::string& name) const {
        const auto& all = graph_.states();
        return std::find_if(all.begin(), all.end(), [&](const StateSpec& spec) { return spec.name == name; })->shape;
    }

    // All comparisons hear what is told; returns its norm.
    template <class Tell>
    static double listen(std::vector<Comparison>& all, const Tell& tell_it) {
        double norm = 0;
        tell_it([&](const Tensor& piece, const Box& where) {
            norm = std::hypot(norm, norm_of(piece));
            for (Comparison& c : all) c.hear(piece, where);
        });
        return norm;
    }

    void compare_state(const StateSpec& spec, const Comparison& comparison, double norm) {
        const auto owner = owners_.find(spec.name);
        const char* const kind = spec.kind == StateKind::Parameter ? "parameter"
                                 : spec.kind == StateKind::Buffer  ? "buffer"
                                                                   : "optimizer state";
        add(owner == owners_.end() ? spec.name : owner->second, fmt::format("{} {}", kind, spec.name),
            comparison.error(norm, one_.floor_of(spec)), kExact);
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
