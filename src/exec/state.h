// The state of a run: parameters, optimizer slots and running statistics, by name. Programs (training, last batch, evaluation) bind to the same
// state; outside it is seen as global, plain tensors, so that any plan can read what any other wrote. With a link, each rank holds its part.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exec/link.h"
#include "kernels/backend.h"
#include "program/program.h"
#include "tensor/tensor.h"

namespace convoy {

class State {
  public:
    explicit State(Backend& backend, Link* link = nullptr) : backend_(backend), link_(link) {}

    // Makes room for those states of the program that are not here yet and gives them their first values, drawn from `seed`, the tensor's name
    // and the element's index alone. Error when a state is here with another shape, Bug when with another layout.
    void bind(const Program& program, uint64_t seed);

    // The memory of a state that a program was bound to.
    Operand operand(const std::string& name) const;
    bool contains(const std::string& name) const { return entries_.count(name) > 0; }
    // In the order in which they were bound.
    const std::vector<StateSpec>& specs() const { return specs_; }

    // The whole tensor. With a link all ranks must ask for it at the same time, and all get it.
    Tensor read(const std::string& name) const;
    // What this rank holds of it.
    Tensor read_part(const std::string& name) const;
    // Gives the whole tensor; every rank keeps its part. Converts the floating type as needed. Error names the tensor when there is none of that name or its shape differs.
    void write(const std::string& name, const Tensor& tensor);

    // Has steps finished that are not over yet; all that reads or writes does so first.
    void settle() const;

    // Memory held, as allocated.
    int64_t bytes() const;

  private:
    struct Entry {
        StateBinding binding;
        Grid grid;
        std::unique_ptr<Memory> memory;  // none: other ranks hold it
    };
    void add(const StateBinding& binding, const Program& program, bool here, uint64_t seed);
    const Entry& entry(const std::string& name) const;

    Backend& backend_;
    Link* link_;
    std::map<std::string, Entry> entries_;
    std::vector<StateSpec> specs_;
};

// The first value of a state, as a whole.
Tensor initial_value(const StateSpec& spec, DType dtype, uint64_t seed);

}  // namespace convoy
