#include "exec/check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <set>

#include "base/error.h"
#include "exec/traffic.h"
#include "kernels/reference/reference.h"

namespace convoy {

namespace {

using Shared = std::shared_ptr<const Tensor>;

Shared in_f64(Shared t) {
    return is_floating(t->dtype()) && t->dtype() != DType::f64 ? std::make_shared<const Tensor>(t->to(DType::f64)) : t;
}
Shared in_shape(Shared t, const Shape& shape) { return t->shape() == shape ? t : std::make_shared<const Tensor>(t->reshaped(shape)); }

DType wide(DType type) { return is_floating(type) ? DType::f64 : type; }

// Such a part of a tensor may lie where something else does, and nobody writes it.
bool is_empty(const Slot& slot) { return numel(slot.desc.shape) == 0; }

// Where a slot that is not empty lies: two at one place are views of each other, or one is written over the other.
using Place = std::pair<int, int64_t>;
Place place(const Slot& slot) { return {slot.state, slot.state == kNone ? slot.offset : 0}; }

// Of each instruction: the slots that none after it reads, itself or by a view.
std::vector<std::vector<SlotId>> last_reads(const Program& program) {
    std::map<Place, SlotId> written;
    std::vector<SlotId> root(program.slots.size(), kNone);  // of each slot: the one that was written where it is read
    std::vector<int> last(program.slots.size(), kNone);
    for (size_t s = 0; s < program.slots.size(); ++s)
        if (program.slots[s].state != kNone) written.emplace(place(program.slots[s]), static_cast<SlotId>(s));
    for (const auto& [name, slot] : program.inputs)
        if (!is_empty(program.slot(slot))) written[place(program.slot(slot))] = slot;
    for (size_t i = 0; i < program.instructions.size(); ++i) {
        const Instruction& in = program.instructions[i];
        for (const SlotId id : in.inputs) {
            if (is_empty(program.slot(id))) continue;
            SlotId& of = root[static_cast<size_t>(id)];
            if (const auto at = written.find(place(program.slot(id))); of == kNone && at != written.end()) of = at->second;
            for (const SlotId read : {id, of})
                if (read != kNone) last[static_cast<size_t>(read)] = static_cast<int>(i);
        }
        for (const SlotId id : in.outputs) {
            if (!is_empty(program.slot(id))) written[place(program.slot(id))] = id;
            root[static_cast<size_t>(id)] = id;
            last[static_cast<size_t>(id)] = static_cast<int>(i);
        }
    }
    std::vector<std::vector<SlotId>> result(program.instructions.size());
    for (size_t s = 0; s < last.size(); ++s)
        if (last[s] != kNone) result[static_cast<size_t>(last[s])].push_back(static_cast<SlotId>(s));
    return result;
}

int64_t wide_bytes(const Slot& slot) { return numel(slot.desc.shape) * size_of(wide(slot.desc.dtype)); }

// What checking a computation takes while it lasts: its results in float64, its operands in memory of the backend, and copies of the largest on the way there and back.
int64_t passing_bytes(const Program& program, const Instruction& in) {
    int64_t bytes = 0, largest = 0;
    for (const SlotId id : in.outputs) bytes += wide_bytes(program.slot(id));
    std::map<Place, int64_t> places;
    for (const auto* list : {&in.inputs, &in.outputs})
        for (const SlotId id : *list) {
            int64_t& most = places[place(program.slot(id))];
            most = std::max(most, program.slot(id).bytes);
            largest = std::max(largest, program.slot(id).bytes);
        }
    for (const auto& [where, most] : places) bytes += most;
    return bytes + 2 * largest;
}

constexpr int64_t kMuchMemory = 256 << 20;

class Check {
  public:
    Check(const Program& program, Backend& backend, const StepContext& context, const CheckOptions& options)
        : program_(program),
          backend_(backend),
          context_(context),
          options_(options),
          truth_(program.slots.size()),
          last_read_(last_reads(program)) {
        if (options.link) open_groups(program, *options.link, nullptr);
        for (const Instruction& in : program.instructions)
            for (const SlotId slot : gradients_read_by(in)) {
                updates_.insert(slot);
                if (program.slot(slot).value != kNone) gradients_.insert(program.slot(slot).value);
            }
    }

    void take(const Feed& feed) {
        for (const auto& [name, slot] : program_.inputs) set_truth(slot, in_f64(feed(name, program_.slot(slot).desc)));
        for (size_t s = 0; s < program_.slots.size(); ++s) {
            const Slot& slot = program_.slots[s];
            if (slot.state == kNone || written_.count(place(slot))) continue;
            const StateBinding& state = program_.states[static_cast<size_t>(slot.state)];
            set_truth(static_cast<SlotId>(s), in_shape(in_f64(feed(state.spec.name, state.desc)), slot.desc.shape));
        }
    }

    std::vector<InstructionError> run() {
        std::vector<InstructionError> errors;
        double squared_gradient = 0;
        for (size_t i = 0; i < program_.instructions.size(); ++i) {
            const Instruction& in = program_.instructions[i];
            errors.push_back({static_cast<int>(i), fmt::format("{}: {}", in.layer, text_of(in)), 0});
            const bool travels = is_traffic(in.action);
            std::optional<Turns::Turn> turn;
            if (options_.turns && !travels && passing_bytes(program_, in) >= kMuchMemory) turn.emplace(*options_.turns);
            std::vector<Tensor> expected = travels ? communicate(in, wide(in.dtype)) : compute_truth(in, false);
            const std::vector<Tensor> found = travels ? communicate(in, in.dtype) : compute(in);
            const std::vector<Tensor> rounded =
                !travels && (reads_narrow(in) || decides(in)) ? compute_truth(in, true) : std::vector<Tensor>();
            for (size_t o = 0; o < expected.size(); ++o) {
                const Tensor& right = rounded.empty() ? expected[o] : rounded[o];
                judged_.push_back({i, is_gradient(in.outputs[o]), norm_of(right), distance_between(found[o], right)});
                if (feeds_update(in.outputs[o])) squared_gradient += judged_.back().norm * judged_.back().norm;
                set_truth(in.outputs[o], std::make_shared<const Tensor>(std::move(expected[o])));
                if (options_.on_truth) options_.on_truth(in.outputs[o], truth_[static_cast<size_t>(in.outputs[o])]);
            }
            for (const SlotId dead : last_read_[i]) truth_[static_cast<size_t>(dead)].reset();
        }
        for (const Judged& j : judged_) {
            const double scale = j.parameter_gradient ? std::max(j.norm, 1e-3 * std::sqrt(squared_gradient)) : j.norm;
            const double error = j.distance == 0 ? 0 : j.distance / scale;
            double& worst = errors[j.instruction].error;
            if (!(error <= worst)) worst = std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
        }
        return errors;
    }

  private:
    struct Judged {
        size_t instruction;
        bool parameter_gradient;
        double norm, distance;
    };

    // What an update reads as its gradient: the second input of each of its steps.
    static std::vector<SlotId> gradients_read_by(const Instruction& in) {
        const auto* compute = std::get_if<Compute>(&in.action);
        std::vector<SlotId> slots;
        if (in.phase != Phase::Update || !compute) return slots;
        for (const ProblemStep& step : compute->problem.steps)
            if (step.inputs.size() > 1 && step.inputs[1] < compute->problem.inputs)
                slots.push_back(in.inputs[static_cast<size_t>(step.inputs[1])]);
        return slots;
    }
    bool feeds_update(SlotId slot) const { return updates_.count(slot) > 0; }

    // Whether it is the gradient of a parameter, or a rank's part of the sum that will be.
    bool is_gradient(SlotId slot) const { return gradients_.count(program_.slot(slot).value) > 0; }

    void set_truth(SlotId slot, Shared value) {
        if (!is_empty(program_.slot(slot))) written_[place(program_.slot(slot))] = slot;
        truth_[static_cast<size_t>(slot)] = std::move(value);
    }

    const Tensor& truth(SlotId id) {
        const Slot& slot = program_.slot(id);
        Shared& known = truth_[static_cast<size_t>(id)];
        if (!known && is_empty(slot)) {
            known = std::make_shared<const Tensor>(slot.desc.shape, wide(slot.desc.dtype));
        } else if (!known) {  // a view of what was last written there
            const auto at = written_.find(place(slot));
            CONVOY_CHECK(at != written_.end(), "\"{}\" is read before it is written", slot.name);
            known = in_shape(truth_[static_cast<size_t>(at->second)], slot.desc.shape);
        }
        return *known;
    }

    // Whether it asks which of two numbers is larger, or on which side of zero one is: rounding the inputs may turn the answer over, and what is right
    // then is what follows from the rounded ones. (A sum of many elements forgives one such turn; a gradient of a few rows does not.)
    static bool decides(const Instruction& in) {
        const auto* compute = std::get_if<Compute>(&in.action);
        return compute && std::any_of(compute->problem.steps.begin(), compute->problem.steps.end(), [](const ProblemStep& step) {
                   return std::holds_alternative<MaxPoolOp>(step.op) || std::holds_alternative<UnaryGradOp>(step.op) ||
                          std::holds_alternative<PReluGradInputOp>(step.op) || std::holds_alternative<PReluGradSlopeOp>(step.op) ||
                          std::holds_alternative<PointwiseGradOp>(step.op) || std::holds_alternative<ErrorLossGradOp>(step.op);
               });
    }

    // Whether an input is stored in a type so narrow that rounding it changes what is right: signs and ties turn over.
    bool reads_narrow(const Instruction& in) const {
        return std::any_of(in.inputs.begin(), in.inputs.end(), [&](SlotId id) {
            const DType type = program_.slot(id).desc.dtype;
            return is_floating(type) && size_of(type) < size_of(DType::f32);
        });
    }

    // What the instruction computes in float64, from the true inputs or from those rounded to the types they are stored in.
    std::vector<Tensor> compute_truth(const Instruction& in, bool from_rounded) {
        const auto given = [&](SlotId id) {
            const DType stored = program_.slot(id).desc.dtype;
            return from_rounded && is_floating(stored) ? truth(id).to(stored).to(DType::f64) : truth(id);
        };
        if (std::holds_alternative<Copy>(in.action)) {
            std::vector<Tensor> results;
            results.push_back(given(in.inputs[0]));
            return results;
        }
        const Problem& problem = std::get<Compute>(in.action).problem;
        std::vector<Tensor> tensors(problem.tensors.size());  // but true inputs are read where they are
        std::vector<Operand> operands;
        for (size_t t = 0; t < problem.tensors.size(); ++t) {
            TensorDesc desc = problem.tensors[t];
            desc.dtype = wide(desc.dtype);
            const bool input = t < in.inputs.size();
            if (!input || from_rounded) tensors[t] = input ? given(in.inputs[t]) : Tensor(desc.shape, desc.dtype);
            const std::byte* const data = input && !from_rounded ? truth(in.inputs[t]).data() : tensors[t].data();
            operands.push_back({const_cast<std::byte*>(data), desc, Layout::plain()});
        }
        for (const auto& step : problem.steps) {
            std::vector<Operand> inputs, outputs;
            std::vector<TensorDesc> input_descs, output_descs;
            for (const int t : step.inputs) {
                inputs.push_back(operands[static_cast<size_t>(t)]);
                input_descs.push_back(inputs.back().desc);
            }
            for (const int t : step.outputs) {
                outputs.push_back(operands[static_cast<size_t>(t)]);
                output_descs.push_back(outputs.back().desc);
            }
            const Buffer workspace(reference_workspace_bytes(step.op, input_descs, output_descs, 1));
            run_reference(step.op, inputs, outputs, workspace.data(), 1, context_);
        }
        std::vector<Tensor> results;
        for (int o = 0; o < problem.outputs; ++o) results.push_back(std::move(tensors[static_cast<size_t>(problem.inputs + o)]));
        return results;
    }

    // The traffic of the instruction, with the true numbers in this type. Elements travel in whatever layout, so that a plain one will do.
    std::vector<Tensor> communicate(const Instruction& in, DType dtype) {
        CONVOY_CHECK(options_.link, "{} of \"{}\" needs a link to other ranks", text_of(in), in.layer);
        std::vector<Tensor> sent, results;
        std::vector<Bytes> inputs, outputs;
        for (const SlotId id : in.inputs) sent.push_back(truth(id).to(dtype));
        // Several results are received in one piece.
        int64_t count = 0;
        for (const SlotId id : in.outputs) {
            results.emplace_back(program_.slot(id).desc.shape, dtype);
            count += results.back().numel();
        }
        const bool one = results.size() == 1;
        Tensor received({one ? 0 : count}, dtype);
        std::byte* at = one ? results[0].data() : received.data();
        for (Tensor& t : sent) inputs.emplace_back(t.data(), static_cast<size_t>(t.bytes()));
        for (const Tensor& result : results) {
            outputs.emplace_back(at, static_cast<size_t>(result.bytes()));
            at += result.bytes();
        }
        Instruction typed = in;
        typed.dtype = dtype;
        bind_traffic(typed, *options_.link, inputs, outputs)();
        for (size_t o = 0; o < results.size() && !one; ++o)
            if (!outputs[o].empty()) std::memcpy(results[o].data(), outputs[o].data(), outputs[o].size());
        return results;
    }

    // The instruction on the backend, in memory of its own that overlaps as the plan's does.
    std::vector<Tensor> compute(const Instruction& in) {
        std::map<Place, int64_t> bytes;  // what lies in one place may be larger in one layout than in another
        for (const auto* list : {&in.outputs, &in.inputs})
            for (const SlotId id : *list) {
                int64_t& most = bytes[place(program_.slot(id))];
                most = std::max(most, program_.slot(id).bytes);
            }
        std::map<Place, std::unique_ptr<Memory>> memory;
        for (const auto& [where, most] : bytes) memory[where] = backend_.allocate(most);
        const auto operand = [&](SlotId id) {
            const Slot& slot = program_.slot(id);
            return Operand{memory.at(place(slot))->data(), slot.desc, slot.layout};
        };
        KernelRequest request;
        for (const SlotId id : in.outputs) request.outputs.push_back(operand(id));
        for (const SlotId id : in.inputs) request.inputs.push_back(operand(id));
        std::unique_ptr<Memory> workspace;
        std::unique_ptr<Kernel> kernel;
        if (const auto* compute = std::get_if<Compute>(&in.action)) {
            request.problem = compute->problem;
            request.algorithm = compute->algorithm;
            workspace = backend_.allocate(compute->workspace_bytes);
            request.workspace = workspace->data();
            request.workspace_bytes = compute->workspace_bytes;
            kernel = backend_.prepare(request);
        } else {
            kernel = backend_.prepare_copy(request.inputs[0], request.outputs[0]);
        }
        // Only now, because preparing a kernel may try it out.
        for (auto& [where, block] : memory) block->fill(0xFF);  // NaN in every floating type
        if (workspace) workspace->fill(0xFF);
        for (size_t i = 0; i < in.inputs.size(); ++i)
            backend_.upload(truth(in.inputs[i]).to(program_.slot(in.inputs[i]).desc.dtype), request.inputs[i]);
        kernel->run(context_);
        backend_.synchronize();
        std::vector<Tensor> results;
        for (size_t o = 0; o < in.outputs.size(); ++o) {
            const Slot& slot = program_.slot(in.outputs[o]);
            results.emplace_back(slot.desc.shape, slot.desc.dtype);
            backend_.download(request.outputs[o], results.back());
        }
        return results;
    }

    const Program& program_;
    Backend& backend_;
    StepContext context_;
    const CheckOptions& options_;
    std::set<SlotId> updates_;     // slots that an update reads as its gradient
    std::set<ValueId> gradients_;  // values of the graph that an update reads as its gradient
    std::vector<Shared> truth_;    // by slot
    std::map<Place, SlotId> written_;
    std::vector<std::vector<SlotId>> last_read_;  // of each instruction: the slots whose truth nobody reads after it
    std::vector<Judged> judged_;
};

}  // namespace

Feed parts_of(const std::map<std::string, Tensor>& wholes) {
    return [&wholes](const std::string& name, const TensorDesc& part) {
        const Tensor& whole = wholes.at(name);
        CONVOY_CHECK(whole.shape() == part.global, "a feed of {} for {}", to_string(whole.shape()), to_string(part.global));
        return std::make_shared<const Tensor>(part_of(whole, {part.origin, part.shape}));
    };
}

std::vector<InstructionError> check_instructions(const Program& program, Backend& backend, const Feed& feed, const StepContext& context,
                                                 const CheckOptions& options) {
    Check check(program, backend, context, options);
    check.take(feed);
    return check.run();
}

CheckMemory memory_of_check(const Program& program, const std::function<bool(const Slot&)>& kept) {
    CheckMemory memory;
    int64_t held = 0;
    std::vector<bool> there(program.slots.size(), false);
    const auto add = [&](SlotId id) {
        if (!there[static_cast<size_t>(id)]) held += wide_bytes(program.slot(id));
        there[static_cast<size_t>(id)] = true;
    };
    for (const StateBinding& state : program.states) held += numel(state.desc.shape) * size_of(wide(state.desc.dtype));
    for (const auto& [name, slot] : program.inputs) add(slot);
    const auto last = last_reads(program);
    for (size_t i = 0; i < program.instructions.size(); ++i) {
        const Instruction& in = program.instructions[i];
        if (!is_traffic(in.action)) memory.passing = std::max(memory.passing, passing_bytes(program, in));
        for (const SlotId id : in.outputs)
            if (program.slot(id).state == kNone) add(id);
        memory.lasting = std::max(memory.lasting, held);
        for (const SlotId id : last[i])
            if (there[static_cast<size_t>(id)] && !kept(program.slot(id))) {
                held -= wide_bytes(program.slot(id));
                there[static_cast<size_t>(id)] = false;
            }
    }
    return memory;
}

InstructionError worst_of(const std::vector<InstructionError>& errors) {
    CONVOY_CHECK(!errors.empty(), "no instructions were checked");
    return *std::max_element(errors.begin(), errors.end(), [](const auto& a, const auto& b) { return a.error < b.error; });
}

}  // namespace convoy
