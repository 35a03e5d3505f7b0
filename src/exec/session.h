// A backend with a state, and the programs compiled for it: what a command works with. The first program compiled decides how states lie in
// memory; later ones take them as they are. Programs run in turns, in one memory: training, the last batch and evaluation need as much as the largest of them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "program/compile.h"

namespace convoy {

struct SessionOptions {
    std::string backend = "reference";
    DType dtype = DType::f32;
    int threads = 1;
    int device = 0;  // of several ranks the first one's on every machine (device_of)
    uint64_t seed = 1;
    Plan plan = Plan::single();
    Link* link = nullptr;                // to the other ranks of the plan; must outlive the session
    Limits limits = {};                  // what programs may use of the backend
    std::shared_ptr<const Costs> costs;  // what they are compiled with; none: the backend's estimates
    bool reuse_memory = true;            // off: every result of a step can still be read after it, and after those of other programs
};

class Session {
  public:
    explicit Session(const SessionOptions& options);

    Backend& backend() { return *backend_; }
    State& state() { return state_; }
    const SessionOptions& options() const { return options_; }

    // Compiles without binding: for reports.
    Program compile(const Graph& graph) const;
    // Compiles, binds the state (new tensors get their first values) and prepares the kernels. The largest program is best loaded first: another's memory may be
    // too small for it.
    std::unique_ptr<Executor> load(const Graph& graph);
    // Whether there is memory for the graph's program; load() says what is missing where there is not.
    bool has_room_for(const Graph& graph) const;
    // Memory held for steps, as allocated.
    int64_t step_bytes() const;

  private:
    struct Room {
        int64_t available = 0, step = 0, states = 0, beside = 0;
        int64_t needed() const { return step + states + beside; }
    };
    std::optional<Room> room_for(const Program& program) const;
    void require_room(const Program& program) const;
    // Whether it runs in the memory that is there.
    bool shares_memory(const Program& program) const {
        return options_.reuse_memory && memory_ && memory_->bytes() >= program.memory.arena_bytes;
    }
    std::shared_ptr<Memory> memory_for(const Program& program);

    SessionOptions options_;
    std::unique_ptr<Backend> backend_;
    State state_;
    std::unique_ptr<Program> first_;
    std::shared_ptr<Memory> memory_;           // the largest so far
    std::vector<std::weak_ptr<Memory>> held_;  // all there were
};

}  // namespace convoy
