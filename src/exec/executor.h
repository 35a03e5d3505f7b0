// Runs a program: binds its kernels to memory once, and then executes step after step without allocating or looking anything up.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/state.h"
#include "exec/trace_log.h"
#include "exec/traffic.h"
#include "kernels/backend.h"
#include "program/program.h"

namespace convoy {

// How traffic runs: beside the computation; each before the computation goes on; or not at all, which gives wrong results, and the time that
// the computation alone takes.
enum class TrafficMode : uint8_t { Beside, Serial, None };

// Where a program runs. All of it must outlive the executor; the state must have been bound to the program.
struct Site {
    Backend& backend;
    const State& state;
    Link* link = nullptr;                      // to the other ranks, where the program has traffic
    std::shared_ptr<Memory> memory = nullptr;  // for its steps, as large as its arena or larger; none: memory of its own
};

class Executor : private Pending {
  public:
    // With a link, making an executor is collective over the ranks. Executors may have one memory when they run in turns: what one of them holds there, inputs and
    // results, is gone when another is made, gets an input or runs.
    Executor(Program program, const Site& site);
    // Finishes its last step, unless an exception is on its way.
    ~Executor() override;

    const Program& program() const { return program_; }

    // Copies a tensor into an input. Bug when its shape or type is not the input's.
    void set_input(SlotId slot, const Tensor& tensor);
    // A way to send an input ahead, while a step runs; nothing where set_input is as good.
    std::unique_ptr<Intake> intake(SlotId slot) const { return backend_.intake(operand(slot)); }
    // Gives an input by name as a whole: every form of it takes its part. Nothing happens on a rank that reads none of it.
    void set_whole_input(std::string_view name, const Tensor& whole);
    // Copies a slot (an output) into `tensor`, which has its shape and type.
    void read(SlotId slot, Tensor& tensor) const;
    Tensor read(SlotId slot) const;
    // An empty tensor of a slot's shape and type, to fill and set.
    Tensor tensor_for(SlotId slot) const;

    // A scalar output that is looked at as soon as it is computed: when it is not finite the step ends there.
    void watch(SlotId scalar);

    // For measurements; the same on all ranks.
    void set_traffic_mode(TrafficMode mode);

    // Runs one step. What the program carries runs in the next one, or when somebody looks at the state. False when the watched scalar was not finite; nothing
    // after it was executed then, and all of the step before was. `meanwhile` runs on the host while a device is at work, before it is waited for; on the host
    // itself, and when the scalar was not finite, not at all.
    bool run(const StepContext& context, const std::function<void()>& meanwhile = nullptr);
    // The same, but a device may still be at work when it returns; whatever reads or writes a slot waits for it.
    bool start(const StepContext& context);
    // Like run, carries nothing, and writes down when every instruction ran. A device waits after each, so the times are those of a step without overlap there.
    bool run_traced(const StepContext& context, TraceLog& log);

    // Runs the step again up to the watched scalar, looking at every result, and describes where a number first was not finite: a state, an input
    // or the result of an instruction, whose number goes to `where` (-1: before the first). Nothing when all are finite. With a link all ranks
    // must ask at the same time; each speaks of its own part.
    std::optional<std::string> find_non_finite(const StepContext& context, int* where = nullptr);

  private:
    using Clock = TraceLog::Clock;
    struct Span {
        Clock::time_point begin, end;
    };

    Operand operand(SlotId slot) const;
    std::unique_ptr<Kernel> prepare(const Instruction& instruction);
    void prepare_traffic(size_t index, Link& link);
    TrafficQueue& queue(Queue q) { return queues_[static_cast<size_t>(q) - static_cast<size_t>(Queue::Activation)]; }
    void find_carried();
    int due(size_t index) const { return program_.instructions[index].due; }
    // What the step before has carried here and is due before this instruction.
    void run_carried(size_t before);
    bool is_settled() const { return next_carried_ == carried_.size(); }
    void settle() override;
    void put_off(const StepContext& context);
    void settled();
    void execute(size_t index, const StepContext& context);
    void start_traffic(size_t index);
    void do_begun(size_t count);
    // Whether nothing is computed between its beginning and the first wait for it.
    bool awaited_at_once(size_t index) const;
    // What is computed from now on has this traffic's results.
    void await_traffic(size_t index);
    // The same for all traffic between devices that was started.
    void join_devices();
    void run_range(size_t begin, size_t end, const StepContext& context);
    void execute_range(size_t begin, size_t end, const StepContext& context);
    std::unique_ptr<Kernel> record_range(size_t begin, size_t end);
    bool start_step(const StepContext& context);
    void begin_step();
    void finish_traffic();
    bool finite(SlotId slot) const;

    Program program_;
    Backend& backend_;
    const State& state_;
    Link* link_;
    std::shared_ptr<Memory> arena_;
    std::vector<std::unique_ptr<Kernel>> kernels_;  // of each instruction; none for traffic
    std::vector<size_t> place_;                     // of each traffic instruction: how many of its queue are done with it
    // Instead of queues, where devices reach each other by themselves: traffic is started in the order of the program, by the thread that starts
    // kernels, and waited for on the device.
    DeviceTraffic* devices_ = nullptr;
    void* stream_ = nullptr;                              // where kernels run, there
    std::vector<std::unique_ptr<BoundTraffic>> traffic_;  // of each instruction; none for kernels
    std::vector<size_t> started_;                         // traffic that nothing has waited for yet
    bool recording_ = false;
    // The parts of a step before and after the watched scalar, each recorded as one kernel where the backend can. The first step is not: libraries
    // load what they need when they first run.
    std::array<std::unique_ptr<Kernel>, 2> recordings_;
    bool may_record_ = false, warm_ = false;
    TrafficMode traffic_mode_ = TrafficMode::Beside;
    std::vector<int> carried_;     // carried_computations(program_)
    size_t next_carried_ = 0;      // of the step before: those from here on have not run yet
    StepContext carried_context_;  // of the step before
    std::vector<bool> settles_;    // of each slot: whether what is carried has to do with its memory
    bool carrying_ = false;        // in this step
    // Whether the computing thread does collectives, when their results are needed (Link::fills_machine), in the order in which they have begun, and which have not been done.
    bool does_collectives_;
    std::vector<size_t> begun_;
    size_t next_begun_ = 0;
    bool timing_ = false;
    std::vector<Span> spans_;
    SlotId watched_ = kNone;
    size_t watched_after_ = 0;  // the instruction that computes it
    Tensor watched_value_;
    std::array<TrafficQueue, 3> queues_;  // activation, gradient, late; the last member: their threads use the others
};

}  // namespace convoy
