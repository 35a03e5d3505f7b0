// A graph: nodes (ops) over values, in an order in which every value is produced before it is read. Values are immutable; what lasts from
// step to step (parameters, optimizer slots, running statistics) is *state*: a value that enters the graph by name, and a *store* that says
// which value becomes its next version.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/op.h"
#include "tensor/dtype.h"

namespace convoy {

using ValueId = int32_t;
using NodeId = int32_t;
constexpr int32_t kNone = -1;

enum class Phase : uint8_t { Forward, Backward, Update };
std::string_view name_of(Phase phase);

// Elements in a file, one after the other, little-endian.
struct FilePlace {
    std::string path;
    int64_t offset = 0;  // of the first one, in bytes
    DType type = DType::f32;
    bool operator==(const FilePlace&) const = default;
};

// How a state tensor begins: every element the same, drawn, listed, or read from a file.
struct Initializer {
    enum class Kind : uint8_t { Constant, Uniform, Normal, Values, File };
    Kind kind = Kind::Constant;
    double value = 0;            // the constant; the bound of U(-value, value); the standard deviation
    std::vector<double> values;  // of Values, in row-major order
    FilePlace file;              // of File
    bool operator==(const Initializer&) const = default;
};

enum class StateKind : uint8_t { Parameter, Buffer, Slot };  // learned by gradient; kept by the model; kept by the optimizer
struct StateSpec {
    std::string name;
    Shape shape;
    Initializer initializer;
    StateKind kind = StateKind::Parameter;
    bool decays = true;  // whether Lars and Lamb scale and decay it: not biases and norm parameters
    bool operator==(const StateSpec&) const = default;
};

struct Value {
    std::string name;
    ValueType type;
    NodeId producer = kNone;  // kNone: a graph input or a state
    int state = kNone;        // index into Graph::states()
    int micro_batch = 0;
    ValueId gradient_of = kNone;  // the value whose gradient this is, or a part of it
};

struct Node {
    Op op;
    std::string layer;  // the layer that the node belongs to, forwards and backwards
    std::vector<ValueId> inputs, outputs;
    Phase phase = Phase::Forward;
    int micro_batch = 0;
};

struct Store {
    ValueId state;  // the value through which the state entered
    ValueId value;  // its next version
};

struct NamedValue {
    std::string name;
    ValueId value;
};

class Graph {
  public:
    // Adds a value that is given anew at every step. Error when the name is taken.
    ValueId add_input(const std::string& name, ValueType type);
    // The value of a state tensor. Asking again for a name gives the same value (shared parameters); Error when the spec differs.
    ValueId add_state(const StateSpec& spec);
    // Adds a node; its outputs get the layer's name. Error names the layer and says what does not fit.
    std::vector<ValueId> add(const Op& op, const std::vector<ValueId>& inputs, const std::string& layer);
    // The same for an op with one output.
    ValueId add1(const Op& op, const std::vector<ValueId>& inputs, const std::string& layer);
    void add_output(const std::string& name, ValueId value);
    void add_store(ValueId state, ValueId value);
    // Notes that `gradient` is (a part of) the gradient of `of`. The first note counts: a sum hands its gradient on to all its terms.
    void mark_gradient(ValueId gradient, ValueId of);

    // What nodes added from now on belong to.
    void set_phase(Phase phase) { phase_ = phase; }
    void set_micro_batch(int index) { micro_batch_ = index; }

    std::span<const Node> nodes() const { return nodes_; }
    std::span<const Value> values() const { return values_; }
    std::span<const StateSpec> states() const { return states_; }
    std::span<const NamedValue> inputs() const { return inputs_; }
    std::span<const NamedValue> outputs() const { return outputs_; }
    std::span<const Store> stores() const { return stores_; }
    const Node& node(NodeId id) const { return nodes_[static_cast<size_t>(id)]; }
    const Value& value(ValueId id) const { return values_[static_cast<size_t>(id)]; }
    const Shape& shape(ValueId id) const { return value(id).type.shape; }

    // By name; Bug when there is none.
    ValueId input(std::string_view name) const;
    ValueId output(std::string_view name) const;
    // The value of a state, or nothing.
    std::optional<ValueId> find_state(const std::string& name) const;

  private:
    ValueId add_value(Value value);

    std::vector<Node> nodes_;
    std::vector<Value> values_;
    std::vector<StateSpec> states_;
    std::unordered_map<std::string, ValueId> state_values_;
    std::vector<NamedValue> inputs_, outputs_;
    std::vector<Store> stores_;
    Phase phase_ = Phase::Forward;
    int micro_batch_ = 0;
};

}  // namespace convoy
