#include "exec/executor.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "kernels/device_clock.h"
#include "kernels/function_kernel.h"

namespace convoy {

Executor::Executor(Program program, const Site& site)
    : program_(std::move(program)),
      backend_(site.backend),
      state_(site.state),
      link_(site.link),
      arena_(site.memory ? site.memory : backend_.allocate(program_.memory.arena_bytes)),
      place_(program_.instructions.size()),
      traffic_(program_.instructions.size()),
      does_collectives_(link_ && link_->fills_machine() && backend_.on_host()),
      spans_(program_.instructions.size()) {
    CONVOY_CHECK(arena_->bytes() >= program_.memory.arena_bytes, "{} bytes of memory for a program that needs {}", arena_->bytes(),
                 program_.memory.arena_bytes);
    if (const auto device = backend_.endpoint(); link_ && device) {
        devices_ = link_->device_traffic(*device);
        stream_ = device->stream;
    }
    if (link_) {
        link_->put_off().settle();
        open_groups(program_, *link_, devices_);
    }
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
        const Instruction& instruction = program_.instructions[i];
        kernels_.push_back(is_traffic(instruction.action) ? nullptr : prepare(instruction));
        if (kernels_.back()) continue;
        CONVOY_CHECK(link_, "{} of \"{}\" needs a link to other ranks", text_of(instruction), instruction.layer);
        prepare_traffic(i, *link_);
    }
    const bool queued = std::any_of(queues_.begin(), queues_.end(), [](const TrafficQueue& q) { return q.size() > 0; });
    may_record_ = !backend_.on_host() && !queued;
    if (queued && backend_.on_host() && !does_collectives_) find_carried();
    begun_.reserve(kernels_.size());
    for (TrafficQueue& q : queues_) q.start();
}

Executor::~Executor() {
    try {
        require(is_settled() || std::uncaught_exceptions() == 0, "updates of the last step were not done, because an error ended it");
        settle();
    } catch (...) {
        link_->put_off().fail(std::current_exception());
    }
    settled();
}

void Executor::find_carried() {
    std::vector<const Slot*> used;
    for (size_t i = 0; i < kernels_.size(); ++i) {
        if (due(i) == kNone) continue;
        for (const auto* list : {&program_.instructions[i].inputs, &program_.instructions[i].outputs})
            for (const SlotId id : *list)
                if (program_.slot(id).state == kNone) used.push_back(&program_.slot(id));
    }
    carried_ = carried_computations(program_);
    next_carried_ = carried_.size();
    for (const Slot& slot : program_.slots)
        settles_.push_back(slot.state == kNone && std::any_of(used.begin(), used.end(), [&](const Slot* other) {
                               return slot.offset < other->offset + other->bytes && other->offset < slot.offset + slot.bytes;
                           }));
}

void Executor::prepare_traffic(size_t index, Link& link) {
    const Instruction& instruction = program_.instructions[index];
    const auto memory = [&](const std::vector<SlotId>& slots) {
        std::vector<Bytes> list;
        for (const SlotId id : slots)
            list.emplace_back(static_cast<std::byte*>(operand(id).data), static_cast<size_t>(program_.slot(id).bytes));
        return list;
    };
    const auto inputs = memory(instruction.inputs), outputs = memory(instruction.outputs);
    if (devices_) {
        traffic_[index] = bind_device_traffic(instruction, *devices_, inputs, outputs);
        return;
    }
    auto work = backend_.on_host() ? bind_traffic(instruction, link, inputs, outputs)
                                   : bind_staged_traffic(instruction, link, backend_, inputs, outputs);
    TrafficQueue& q = queue(instruction.queue);
    const auto timed = [this, index, work = std::move(work)] {
        if (timing_) spans_[index].begin = Clock::now();
        work();
        if (timing_) spans_[index].end = Clock::now();
    };
    q.add(timed, due(index) != kNone);
    place_[index] = q.size();
}

Operand Executor::operand(SlotId id) const {
    const Slot& slot = program_.slot(id);
    if (slot.state == kNone) return {arena_->data() + slot.offset, slot.desc, slot.layout};
    Operand operand = state_.operand(program_.states[static_cast<size_t>(slot.state)].spec.name);
    operand.desc = slot.desc;  // a view of the state may have another shape
    return operand;
}

std::unique_ptr<Kernel> Executor::prepare(const Instruction& instruction) {
    KernelRequest request;
    for (const SlotId id : instruction.inputs) request.inputs.push_back(operand(id));
    for (const SlotId id : instruction.outputs) request.outputs.push_back(operand(id));
    if (std::holds_alternative<Copy>(instruction.action)) return backend_.prepare_copy(request.inputs[0], request.outputs[0]);
    const auto* compute = std::get_if<Compute>(&instruction.action);
    request.problem = compute->problem;
    request.algorithm = compute->algorithm;
    request.workspace_bytes = compute->workspace_bytes;
    if (compute->workspace_bytes > 0) request.workspace = arena_->data() + compute->workspace_offset;
    return backend_.prepare(request);
}

void Executor::set_input(SlotId slot, const Tensor& tensor) {
    const TensorDesc& desc = program_.slot(slot).desc;
    CONVOY_CHECK(tensor.shape() == desc.shape && tensor.dtype() == desc.dtype, "input \"{}\" is {} {}, got {} {}", program_.slot(slot).name,
                 to_string(desc.shape), name_of(desc.dtype), to_string(tensor.shape()), name_of(tensor.dtype()));
    if (link_) link_->put_off().settle(this);  // another executor's, perhaps of the same memory
    backend_.upload(tensor, operand(slot));
}

void Executor::read(SlotId slot, Tensor& tensor) const {
    if (!settles_.empty() && settles_[static_cast<size_t>(slot)]) state_.settle();
    backend_.download(operand(slot), tensor);
}

Tensor Executor::read(SlotId slot) const {
    Tensor tensor = tensor_for(slot);
    read(slot, tensor);
    return tensor;
}

Tensor Executor::tensor_for(SlotId slot) const { return Tensor(program_.slot(slot).desc.shape, program_.slot(slot).desc.dtype); }

void Executor::watch(SlotId scalar) {
    watched_ = scalar;
    watched_value_ = tensor_for(scalar);
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
        const auto& outputs = program_.instructions[i].outputs;
        if (std::find(outputs.begin(), outputs.end(), scalar) != outputs.end()) watched_after_ = i;
    }
    recordings_ = {};
}

void Executor::set_whole_input(std::string_view name, const Tensor& whole) {
    for (const auto& [input, slot] : program_.inputs) {
        if (input != name) continue;
        const TensorDesc& desc = program_.slot(slot).desc;
        CONVOY_CHECK(whole.shape() == desc.global, "input \"{}\" is {}, got {}", name, to_string(desc.global), to_string(whole.shape()));
        set_input(slot, part_of(whole, {desc.origin, desc.shape}).to(desc.dtype));
    }
}

void Executor::set_traffic_mode(TrafficMode mode) {
    settle();
    traffic_mode_ = mode;
    recordings_ = {};
}

// A computation waits for the traffic it needs, and traffic for that of other queues; all are in order within their queue.
void Executor::execute(size_t index, const StepContext& context) {
    if (traffic_mode_ != TrafficMode::None)
        for (const int w : program_.instructions[index].waits) await_traffic(static_cast<size_t>(w));
    if (!kernels_[index]) {
        if (traffic_mode_ == TrafficMode::None) return;
        start_traffic(index);
        if (traffic_mode_ == TrafficMode::Serial) await_traffic(index);
        return;
    }
    if (timing_) spans_[index].begin = Clock::now();
    kernels_[index]->run(context);
    if (!timing_) return;
    backend_.synchronize();
    spans_[index].end = Clock::now();
}

void Executor::start_traffic(size_t index) {
    if (!devices_) {
        backend_.synchronize();  // what is sent has been computed
        if (does_collectives_ && std::holds_alternative<Collective>(program_.instructions[index].action)) return begun_.push_back(index);
        do_begun(begun_.size() - next_begun_);
        TrafficQueue& q = queue(program_.instructions[index].queue);
        if (!awaited_at_once(index) || !q.run_here()) q.post();
        return;
    }
    if (timing_) spans_[index].begin = Clock::now();
    if (!recording_) traffic_[index]->expect();
    traffic_[index]->start(stream_);
    started_.push_back(index);
    if (!timing_) return;
    await_traffic(index);
    backend_.synchronize();
    spans_[index].end = Clock::now();
}

// All ranks do them in one order, so those before the one that is needed go first.
void Executor::do_begun(size_t count) {
    for (; count > 0; --count) {
        const size_t index = begun_[next_begun_++];
        TrafficQueue& q = queue(program_.instructions[index].queue);
        if (q.run_here()) continue;
        q.post();  // behind messages that are still under way
        q.wait(place_[index]);
    }
}

// Another thread would gain nothing, and cost two changes between them.
bool Executor::awaited_at_once(size_t index) const {
    if (traffic_mode_ == TrafficMode::Serial || (watched_ != kNone && index == watched_after_)) return true;
    if (carrying_ && due(index) != kNone) return false;
    if (index + 1 == kernels_.size()) return true;
    const std::vector<int>& waits = program_.instructions[index + 1].waits;
    return kernels_[index + 1] && std::find(waits.begin(), waits.end(), static_cast<int>(index)) != waits.end();
}

void Executor::await_traffic(size_t index) {
    if (!devices_) {
        const auto first = begun_.begin() + static_cast<std::ptrdiff_t>(next_begun_);
        if (const auto at = std::find(first, begun_.end(), index); at != begun_.end()) do_begun(static_cast<size_t>(at - first) + 1);
        return queue(program_.instructions[index].queue).wait(place_[index]);
    }
    const auto at = std::find(started_.begin(), started_.end(), index);
    if (at == started_.end()) return;
    traffic_[index]->join(stream_);
    started_.erase(at);
}

void Executor::join_devices() {
    while (!started_.empty()) await_traffic(started_.back());
}

void Executor::begin_step() {
    begun_.clear();
    next_begun_ = 0;
    if (!devices_) return;
    devices_->check();
    started_.clear();
}

void Executor::finish_traffic() {
    do_begun(begun_.size() - next_begun_);
    for (TrafficQueue& q : queues_) q.finish();
    if (devices_) join_devices();
}

void Executor::run_range(size_t begin, size_t end, const StepContext& context) {
    for (size_t i = begin; i < end; ++i) {
        run_carried(i);
        if (!carrying_ || due(i) == kNone || !kernels_[i]) execute(i, context);
    }
}

void Executor::run_carried(size_t before) {
    for (; next_carried_ < carried_.size() && due(static_cast<size_t>(carried_[next_carried_])) <= static_cast<int>(before);
         ++next_carried_) {
        const auto index = static_cast<size_t>(carried_[next_carried_]);
        for (const int w : program_.instructions[index].waits)
            queue(program_.instructions[static_cast<size_t>(w)].queue).wait_before(place_[static_cast<size_t>(w)]);
        kernels_[index]->run(carried_context_);
    }
}

void Executor::settled() {
    if (link_) link_->put_off().remove(this);
}

void Executor::settle() {
    run_carried(kernels_.size());
    settled();
}

void Executor::put_off(const StepContext& context) {
    run_carried(kernels_.size());
    for (TrafficQueue& q : queues_) q.carry();
    carried_context_ = context;
    next_carried_ = 0;
    link_->put_off().add(this);
}

void Executor::execute_range(size_t begin, size_t end, const StepContext& context) {
    if (may_record_ && warm_ && !timing_ && begin < end) {
        auto& recording = recordings_[begin == 0 ? 0 : 1];
        if (!recording) recording = record_range(begin, end);
        if (recording) {
            if (devices_ && traffic_mode_ != TrafficMode::None)
                for (size_t i = begin; i < end; ++i)
                    if (traffic_[i]) traffic_[i]->expect();
            return recording->run(context);
        }
    }
    auto* const clock = timing_ && may_record_ && !devices_ ? dynamic_cast<HasDeviceClock*>(&backend_) : nullptr;
    if (!clock) return run_range(begin, end, context);
    // A device that times its kernels itself: their spans follow each other from now on.
    std::vector<Kernel*> kernels;
    for (size_t i = begin; i < end; ++i) kernels.push_back(kernels_[i].get());
    auto at = Clock::now();
    for (const double seconds : clock->time_each(kernels, context)) {
        spans_[begin].begin = at;
        at += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
        spans_[begin++].end = at;
    }
}

// Traffic between devices is part of the recording, which ends with all of it done.
std::unique_ptr<Kernel> Executor::record_range(size_t begin, size_t end) {
    join_devices();  // what is not part of it
    const auto range = make_kernel([&](const StepContext& context) {
        run_range(begin, end, context);
        join_devices();
    });
    Kernel* const whole = range.get();
    recording_ = true;
    const auto no_longer = [](bool* recording) { *recording = false; };
    const std::unique_ptr<bool, decltype(no_longer)> until_made(&recording_, no_longer);
    auto recording = backend_.record({&whole, 1});
    may_record_ = recording != nullptr;
    return recording;
}

bool Executor::start(const StepContext& context) {
    if (link_) link_->put_off().settle(this);
    try {
        return start_step(context);
    } catch (...) {
        // Who asks for what was put off and will not be done now, learns why.
        if (!is_settled()) link_->put_off().fail(std::current_exception());
        throw;
    }
}

bool Executor::start_step(const StepContext& context) {
    carrying_ = !carried_.empty() && traffic_mode_ == TrafficMode::Beside && !timing_;
    begin_step();
    const size_t pause = watched_ == kNone ? kernels_.size() : watched_after_ + 1;
    execute_range(0, pause, context);
    bool finite = true;
    if (watched_ != kNone) {
        const size_t i = watched_after_;
        if (!kernels_[i] && traffic_mode_ != TrafficMode::None) await_traffic(i);
        read(watched_, watched_value_);
        if (devices_) devices_->check();
        finite = std::isfinite(element(watched_value_, 0));
    }
    if (finite) execute_range(pause, kernels_.size(), context);
    if (finite && carrying_) {
        put_off(context);
    } else {
        settle();
        finish_traffic();
    }
    warm_ = warm_ || finite;
    return finite;
}

bool Executor::run(const StepContext& context, const std::function<void()>& meanwhile) {
    const bool finite = start(context);
    if (finite && meanwhile && !backend_.on_host()) meanwhile();
    if (finite) backend_.synchronize();
    if (devices_) devices_->check();
    return finite;
}

bool Executor::run_traced(const StepContext& context, TraceLog& log) {
    settle();  // what is of the step before
    spans_.assign(spans_.size(), {});
    timing_ = true;
    const auto no_longer = [](bool* timing) { *timing = false; };
    std::unique_ptr<bool, decltype(no_longer)> timing(&timing_, no_longer);
    const bool finite = run(context);
    timing.reset();
    for (size_t i = 0; i < kernels_.size(); ++i) {
        if (spans_[i].begin == Clock::time_point{}) continue;  // it did not run
        const Instruction& in = program_.instructions[i];
        log.add({.layer = in.layer,
                 .what = text_of(in),
                 .phase = std::string(name_of(in.phase)),
                 .queue = static_cast<int>(in.queue),
                 .step = context.step,
                 .flops = in.work,
                 .bytes = in.bytes,
                 .sent = in.sent},
                spans_[i].begin, spans_[i].end);
    }
    return finite;
}

bool Executor::finite(SlotId slot) const {
    if (!is_floating(program_.slot(slot).desc.dtype)) return true;
    const Tensor tensor = read(slot);
    for (int64_t i = 0; i < tensor.numel(); ++i)
        if (!std::isfinite(element(tensor, i))) return false;
    return true;
}

std::optional<std::string> Executor::find_non_finite(const StepContext& context, int* where) {
    const size_t end = watched_ == kNone ? kernels_.size() : watched_after_ + 1;
    state_.settle();
    carrying_ = false;
    // States that the failed run has already written (running statistics) say nothing of what was before it.
    std::vector<bool> written(program_.states.size());
    for (size_t i = 0; i < end; ++i)
        for (const SlotId id : program_.instructions[i].outputs)
            if (const int state = program_.slot(id).state; state != kNone) written[static_cast<size_t>(state)] = true;
    std::optional<std::string> found;
    for (const Slot& slot : program_.slots)
        if (!found && slot.state != kNone && !written[static_cast<size_t>(slot.state)] &&
            !finite(static_cast<SlotId>(&slot - program_.slots.data())))
            found = fmt::format("\"{}\" was not finite before the step began", program_.states[static_cast<size_t>(slot.state)].spec.name);
    for (const auto& [name, slot] : program_.inputs)
        if (!found && !finite(slot)) found = fmt::format("the input \"{}\" holds a number that is not finite", name);
    if (where) *where = -1;
    begin_step();
    for (size_t i = 0; i < end; ++i) {  // to the end in any case: other ranks take part in its traffic
        execute(i, context);
        if (!kernels_[i]) await_traffic(i);
        for (const SlotId slot : program_.instructions[i].outputs) {
            if (found || finite(slot)) continue;
            if (where) *where = static_cast<int>(i);
            found = fmt::format("layer \"{}\" ({}, {}) was the first whose result was not finite", program_.instructions[i].layer,
                                text_of(program_.instructions[i]), name_of(program_.instructions[i].phase));
        }
    }
    finish_traffic();
    return found;
}

}  // namespace convoy
