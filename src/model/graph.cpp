#include "model/graph.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace convoy {

namespace {

ValueId find(std::span<const NamedValue> list, std::string_view name) {
    const auto at = std::find_if(list.begin(), list.end(), [&](const NamedValue& v) { return v.name == name; });
    return at == list.end() ? kNone : at->value;
}

// So many elements of a value that bytes and operations, and their sums over a network, can be counted in 64 bits.
constexpr int64_t kMostElements = int64_t{1} << 48;

bool is_countable(const Shape& shape) {
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return true;
    int64_t count = 1;
    return std::all_of(shape.begin(), shape.end(),
                       [&](int64_t size) { return !__builtin_mul_overflow(count, size, &count) && count <= kMostElements; });
}

}  // namespace

std::string_view name_of(Phase phase) {
    constexpr std::array<std::string_view, 3> names{"forward", "backward", "update"};
    return names[static_cast<size_t>(phase)];
}

ValueId Graph::add_value(Value value) {
    require(is_countable(value.type.shape), "\"{}\" would be {}, more than 2^48 elements; use a smaller batch or input", value.name,
            to_string(value.type.shape));
    values_.push_back(std::move(value));
    return static_cast<ValueId>(values_.size() - 1);
}

ValueId Graph::add_input(const std::string& name, ValueType type) {
    require(find(inputs_, name) == kNone, "the graph has an input \"{}\" already", name);
    const ValueId id = add_value({.name = name, .type = type, .micro_batch = micro_batch_});
    inputs_.push_back({name, id});
    return id;
}

ValueId Graph::add_state(const StateSpec& spec) {
    if (const auto known = find_state(spec.name)) {
        const StateSpec& old = states_[static_cast<size_t>(value(*known).state)];
        require(old == spec, "\"{}\" is shared, but once it is {} and once {} (or begins differently)", spec.name, to_string(old.shape),
                to_string(spec.shape));
        return *known;
    }
    const ValueId id = add_value({.name = spec.name, .type = {spec.shape, Element::Precise}, .state = static_cast<int>(states_.size())});
    states_.push_back(spec);
    state_values_.emplace(spec.name, id);
    return id;
}

std::vector<ValueId> Graph::add(const Op& op, const std::vector<ValueId>& inputs, const std::string& layer) {
    std::vector<ValueType> types;
    for (const ValueId v : inputs) {
        CONVOY_CHECK(v >= 0 && v < static_cast<ValueId>(values_.size()), "node \"{}\" reads value {}", layer, v);
        types.push_back(value(v).type);
    }
    std::vector<ValueType> results;
    try {
        results = infer(op, types);
    } catch (const Error& e) {
        fail("{} \"{}\": {}", name_of(op), layer, e.what());
    }
    Node node{op, layer, inputs, {}, phase_, micro_batch_};
    for (const auto& type : results)
        node.outputs.push_back(
            add_value({.name = layer, .type = type, .producer = static_cast<NodeId>(nodes_.size()), .micro_batch = micro_batch_}));
    nodes_.push_back(std::move(node));
    return nodes_.back().outputs;
}

ValueId Graph::add1(const Op& op, const std::vector<ValueId>& inputs, const std::string& layer) {
    const auto outputs = add(op, inputs, layer);
    CONVOY_CHECK(outputs.size() == 1, "{} \"{}\" has {} outputs", name_of(op), layer, outputs.size());
    return outputs[0];
}

void Graph::add_output(const std::string& name, ValueId value) {
    require(find(outputs_, name) == kNone, "the graph has an output \"{}\" already", name);
    outputs_.push_back({name, value});
}

void Graph::add_store(ValueId state, ValueId value) {
    CONVOY_CHECK(this->value(state).state != kNone, "store into \"{}\", which is no state", this->value(state).name);
    CONVOY_CHECK(this->value(state).type == this->value(value).type, "store of another type into \"{}\"", this->value(state).name);
    stores_.push_back({state, value});
}

ValueId Graph::input(std::string_view name) const {
    const ValueId id = find(inputs_, name);
    CONVOY_CHECK(id != kNone, "the graph has no input \"{}\"", name);
    return id;
}

ValueId Graph::output(std::string_view name) const {
    const ValueId id = find(outputs_, name);
    CONVOY_CHECK(id != kNone, "the graph has no output \"{}\"", name);
    return id;
}

std::optional<ValueId> Graph::find_state(const std::string& name) const {
    const auto at = state_values_.find(name);
    if (at == state_values_.end()) return std::nullopt;
    return at->second;
}

void Graph::mark_gradient(ValueId gradient, ValueId of) {
    ValueId& known = values_[static_cast<size_t>(gradient)].gradient_of;
    if (known == kNone) known = of;
}

}  // namespace convoy
