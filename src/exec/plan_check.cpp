#include "exec/plan_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "exec/check.h"
#include "exec/initial.h"
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

// What running it takes: its own memory, and a copy of the largest result to compare.
CheckMemory memory_of_run(const Program& program) {
    int64_t largest = 0;
    for (const Slot& slot : program.slots) largest = std::max(largest, slot.bytes);
    return {.lasting = program.memory.arena_bytes + program.memory.state_bytes + largest};
}

using Hear = std::function<void(const double* piece, const Box& where)>;

// A tensor that only the first rank has (`whole`, null elsewhere) to all of them, some rows at a time: `hear` gets each piece and where it lies.
void tell(Link* link, const Shape& shape, const Doubles* whole, const Hear& hear) {
    constexpr int64_t kPieceElements = 1 << 20;
    const int64_t rows = shape.empty() ? 1 : shape[0];
    const int64_t row = rows == 0 ? 0 : numel(shape) / rows;
    const int64_t at_once = std::max<int64_t>(1, kPieceElements / std::max<int64_t>(1, row));
    std::vector<double> heard;
    for (int64_t begin = 0; begin < rows; begin += at_once) {
        Box box = Box::whole(shape);
        if (!shape.empty()) box = box.with(0, begin, std::min(rows, begin + at_once));
        const int64_t count = numel(box.shape);
        if (!whole) heard.resize(static_cast<size_t>(std::max<int64_t>(1, count)));
        // The root of a broadcast only reads.
        double* const piece = whole ? const_cast<double*>(whole->data()) + begin * row : heard.data();
        if (link && link->size() > 1) link->everyone().broadcast(reinterpret_cast<std::byte*>(piece), count, DType::f64, 0);
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
        bytes_ = memory_of_run(session_->compile(graph)).lasting;
    }

    // Memory that the run takes here.
    int64_t bytes() const { return bytes_; }

    // A step, after which all ranks know what there is and how large it is.
    void run(const std::map<std::string, Tensor>& feeds, const StepContext& context) {
        Json known;
        if (session_ && !executor_) {
            executor_ = session_->load(graph_);
            slots_ = written_values(executor_->program());
        }
        if (executor_) {
            for (const auto& [name, tensor] : feeds) executor_->set_whole_input(name, tensor);
            executor_->run(context);
            known = measured();
        }
        known = Json::parse(share_text(link_, 0, known.dump()));
        values_ = known.at("values").get<std::map<ValueId, double>>();
        states_ = known.at("states").get<std::map<std::string, double>>();
        gradient_ = known.at("gradient");
        kinds_ = known.at("kinds").get<std::map<std::string, double>>();
    }

    // What the step has made, except what it has only inside an instruction, and its norm; the same on every rank.
    const std::map<ValueId, double>& values() const { return values_; }
    const std::map<std::string, double>& states() const { return states_; }
    void tell_value(ValueId v, const Hear& hear) const {
        const auto whole = executor_ ? std::optional(value(slots_.at(v))) : std::nullopt;
        tell(link_, graph_.shape(v), whole ? &*whole : nullptr, hear);
    }
    void tell_state(const std::string& name, const Shape& shape, const Hear& hear) const {
        const auto whole = executor_ ? std::optional(state(name)) : std::nullopt;
        tell(link_, shape, whole ? &*whole : nullptr, hear);
    }
    // The least that an error is taken relative to.
    double floor_of(ValueId v) const { return is_gradient(v) ? kFloor * gradient_ : 0; }
    double floor_of(const StateSpec& spec) const { return kFloor * kinds_.at(kind_of(spec)); }

  private:
    bool is_gradient(ValueId v) const {
        const ValueId of = graph_.value(v).gradient_of;
        return of != kNone && graph_.value(of).state != kNone;
    }

    Doubles value(SlotId slot) const { return Doubles(executor_->read(slot)); }
    Doubles state(const std::string& name) const { return {session_->state().operand(name), session_->backend()}; }

    // A norm that is no number is left to what is compared: it is none either.
    Json measured() const {
        const auto number = [](double norm) { return std::isfinite(norm) ? norm : std::numeric_limits<double>::max(); };
        std::map<ValueId, double> values;
        std::map<std::string, double> states, kinds;
        double gradient = 0;
        for (const auto& [v, slot] : slots_) {
            const double norm = value(slot).norm();
            values[v] = number(norm);
            if (is_gradient(v)) gradient = std::hypot(gradient, norm);
        }
        for (const StateSpec& spec : session_->state().specs()) {
            const double norm = state(spec.name).norm();
            states[spec.name] = number(norm);
            double& sum = kinds[kind_of(spec)];
            sum = std::hypot(sum, norm);
        }
        require(std::isfinite(gradient), "one process computes gradients that are not finite; there is nothing to compare with");
        for (auto& [kind, sum] : kinds) sum = number(sum);
        return {{"values", values}, {"states", states}, {"gradient", gradient}, {"kinds", kinds}};
    }

    const Graph& graph_;
    Link* link_;
    std::unique_ptr<Session> session_;  // on the first rank alone, like all that belongs to it
    int64_t bytes_ = 0;
    std::unique_ptr<Executor> executor_;
    std::map<ValueId, SlotId> slots_;
    std::map<ValueId, double> values_;
    std::map<std::string, double> states_;
    double gradient_ = 0;
    std::map<std::string, double> kinds_;
};

// The worst deviation of each layer.
class Findings {
  public:
    void add(const Deviation& d) {
        ++compared_;
        largest_ = std::max(largest_, d.error);
        keep(d);
    }

    // Those of all ranks, on all ranks.
    PlanCheck merged(Link* link) const {
        Findings all;
        int64_t compared = 0;
        for (Rank r = 0; r < (link ? link->size() : 1); ++r) {
            const Json json = Json::parse(share_text(link, r, to_json().dump()));
            compared += json.at("compared").get<int64_t>();
            all.largest_ = std::max(all.largest_, json.at("largest").get<double>());
            for (const Json& d : json.at("layers")) all.keep(from_json(d));
        }
        PlanCheck result{.layers = {}, .compared = compared, .largest = all.largest_};
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
    static double finite(double error) { return std::min(error, std::numeric_limits<double>::max()); }
    Json to_json() const {
        Json layers = Json::array();
        for (const auto& [layer, d] : worst_) layers.push_back({layer, d.what, finite(d.error), d.limit, d.rank, d.step});
        return {{"layers", layers}, {"compared", compared_}, {"largest", finite(largest_)}};
    }
    static Deviation from_json(const Json& json) { return {json[0], json[1], json[2], json[3], json[4], json[5]}; }

    std::map<std::string, Deviation> worst_;
    int64_t compared_ = 0;
    double largest_ = 0;
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
        require_memory(memory_of_run(session.compile(graph_)));
        const auto executor = session.load(graph_);
        const Program& program = executor->program();
        std::vector<SlotId> written;
        for (const Instruction& in : program.instructions) written.insert(written.end(), in.outputs.begin(), in.outputs.end());
        // To look at a step ends it. Where updates are carried into the next, the last two follow each other as in training, and only the second of them is looked at. No more steps
        // for that: each amplifies what rounding has left of the one before (ResNet-50: 5e-9 after three, 7e-6 after five).
        const bool carries = any_rank(!carried_computations(program).empty());
        for (step_ = 0; step_ < options_.steps; ++step_) {
            const auto feeds = options_.feeds(step_);
            one_.run(feeds, context());
            for (const auto& [name, tensor] : feeds) executor->set_whole_input(name, tensor);
            executor->run(context());
            if (carries && step_ + 2 == options_.steps) continue;
            compare(
                program, written, [&](SlotId id) { return Doubles(executor->read(id)); },
                [&](const StateBinding& state) { return Doubles(session.state().operand(state.spec.name), session.backend()); });
        }
    }

    // Every instruction of a narrower type on the inputs that the plan had in float64, which are those of one process if the plan is right.
    void teacher_forced() {
        Session session(options_.session);
        const Program program = session.compile(graph_);
        require_memory(memory_of_check(program, is_compared));
        Turns turns(options_.session.link);
        std::map<std::string, std::shared_ptr<const Tensor>> states;  // this rank's parts
        for (const StateBinding& state : program.states)
            states[state.spec.name] =
                std::make_shared<const Tensor>(initial_value(state.spec, DType::f64, options_.session.seed, box_of(state.desc)));
        for (step_ = 0; step_ < options_.steps; ++step_) {
            const auto feeds = options_.feeds(step_);
            one_.run(feeds, context());
            const Feed feed = [&](const std::string& name, const TensorDesc& part) {
                const auto state = states.find(name);
                return state == states.end() ? parts_of(feeds)(name, part) : state->second;
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
            const auto errors = check_instructions(program, session.backend(), feed, context(),
                                                   {.link = options_.session.link, .turns = &turns, .on_truth = see});
            for (const InstructionError& e : errors) {
                const Instruction& in = program.instructions[static_cast<size_t>(e.instruction)];
                add(in.layer, fmt::format("{}: {}, in {}", name_of(in.phase), text_of(in), name_of(options_.session.dtype)), e.error,
                    allowed_error(options_.session.dtype));
            }
            std::vector<SlotId> written;
            for (const auto& [id, truth] : made) written.push_back(id);
            compare(
                program, written, [&](SlotId id) { return Doubles(made.at(id)); },
                [&](const StateBinding& state) { return Doubles(states.at(state.spec.name)); });
        }
    }

    bool any_rank(bool here) const {
        Link* const link = options_.session.link;
        bool any = here;
        for (Rank r = 0; link && r < link->size(); ++r) any = share_text(link, r, here ? "yes" : "") == "yes" || any;
        return any;
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
        for (const auto& [v, norm] : one_.values()) {
            std::vector<Comparison> mine;
            for (const SlotId id : slots[v]) mine.emplace_back(read_slot(id), box_of(program.slot(id).desc));
            one_.tell_value(v, to_all(mine));
            const Node& node = *makers_.at(v);
            for (const Comparison& c : mine)
                add(node.layer, fmt::format("{}: {}", name_of(node.phase), text_of(node.op)), c.error(norm, one_.floor_of(v)), kExact);
        }
        for (const auto& [name, norm] : one_.states()) {
            std::vector<Comparison> mine;
            const auto state = states.find(name);
            if (state != states.end()) mine.emplace_back(read_state(*state->second), box_of(state->second->desc));
            one_.tell_state(name, shape_of_state(name), to_all(mine));
            for (const Comparison& c : mine) compare_state(state->second->spec, c, norm);
        }
    }

    static Box box_of(const TensorDesc& desc) { return {desc.origin, desc.shape}; }

    const Shape& shape_of_state(const std::string& name) const {
        const auto& all = graph_.states();
        return std::find_if(all.begin(), all.end(), [&](const StateSpec& spec) { return spec.name == name; })->shape;
    }

    static Hear to_all(std::vector<Comparison>& all) {
        return [&all](const double* piece, const Box& where) {
            for (Comparison& c : all) c.hear(piece, where);
        };
    }

    // What all ranks of each machine need together, against what it has.
    void require_memory(const CheckMemory& mine) const {
        Link* const link = options_.session.link;
        struct Needs {
            int ranks = 0;
            int64_t lasting = 0, passing = 0, one = 0, available = 0;
        };
        std::map<std::string, Needs> machines;
        const Json own{machine_name(), mine.lasting, mine.passing, one_.bytes(), options_.available_bytes};
        for (Rank r = 0; r < (link ? link->size() : 1); ++r) {
            const Json its = Json::parse(share_text(link, r, own.dump()));
            Needs& needs = machines[its[0]];
            ++needs.ranks;
            needs.lasting += its[1].get<int64_t>();
            needs.passing = std::max(needs.passing, its[2].get<int64_t>());  // they take turns
            needs.one += its[3].get<int64_t>();
            needs.available = needs.ranks == 1 ? its[4].get<int64_t>() : std::min(needs.available, its[4].get<int64_t>());
        }
        constexpr double kGiga = 1e9;
        for (const auto& [name, needs] : machines) {
            const int64_t all = needs.lasting + needs.passing + needs.one;
            require(needs.available == 0 || all <= needs.available,
                    "the check needs about {:.1f} GB on {}, but {:.1f} GB are free: {:.1f} GB for {} rank{}, {:.1f} GB for the largest "
                    "instruction, {:.1f} GB for the "
                    "run of one process; a smaller batch or input, an optimizer with less state (--optimizer sgd) or ranks on more "
                    "machines need less",
                    static_cast<double>(all) / kGiga, name, static_cast<double>(needs.available) / kGiga,
                    static_cast<double>(needs.lasting) / kGiga, needs.ranks, needs.ranks == 1 ? "" : "s",
                    static_cast<double>(needs.passing) / kGiga, static_cast<double>(needs.one) / kGiga);
        }
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
