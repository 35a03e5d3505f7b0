// Node by node, with a tensor of its own for every value. A tensor is dropped after its last reader, so that large graphs fit.
#include <omp.h>

#include <vector>

#include "base/error.h"
#include "kernels/reference/reference.h"

namespace convoy {

namespace {

// Operands of fewer elements than this are not worth more than one thread.
constexpr int64_t kThreadsFrom = 1 << 15;

DType storage_of(Element element, DType real) {
    switch (element) {
        case Element::Index: return DType::i32;
        case Element::Byte: return DType::u8;
        default: return real;
    }
}

Operand operand_of(Tensor& tensor) { return {tensor.data(), TensorDesc::whole(tensor.shape(), tensor.dtype()), Layout::plain()}; }

class Interpreter {
  public:
    Interpreter(const Graph& graph, DType dtype)
        : graph_(graph), dtype_(dtype), values_(graph.values().size()), readers_(graph.values().size()) {
        for (const auto& node : graph.nodes())
            for (const ValueId v : node.inputs) ++readers_[index(v)];
        for (const auto& output : graph.outputs()) ++readers_[index(output.value)];
        for (const auto& store : graph.stores()) ++readers_[index(store.value)];
    }

    void feed(const std::map<std::string, Tensor>& feeds) {
        for (size_t i = 0; i < values_.size(); ++i) {
            const Value& value = graph_.value(static_cast<ValueId>(i));
            if (value.producer != kNone) continue;
            const auto at = feeds.find(value.name);
            require(at != feeds.end(), "no feed for {} \"{}\" of shape {}", value.state == kNone ? "input" : "state", value.name,
                    to_string(value.type.shape));
            require(at->second.shape() == value.type.shape, "the feed \"{}\" is {}, expected {}", value.name, to_string(at->second.shape()),
                    to_string(value.type.shape));
            values_[i] = at->second.to(storage_of(value.type.element, dtype_));
        }
    }

    void run(const Node& node, const StepContext& context) {
        std::vector<Operand> inputs, outputs;
        std::vector<TensorDesc> input_descs, output_descs;
        int64_t most = 0;
        const auto add = [&](ValueId v, std::vector<Operand>& operands, std::vector<TensorDesc>& descs) {
            operands.push_back(operand_of(values_[index(v)]));
            descs.push_back(operands.back().desc);
            most = std::max(most, numel(descs.back().shape));
        };
        for (const ValueId v : node.inputs) add(v, inputs, input_descs);
        for (const ValueId v : node.outputs) {
            const ValueType& type = graph_.value(v).type;
            values_[index(v)] = Tensor(type.shape, storage_of(type.element, dtype_));
            add(v, outputs, output_descs);
        }
        const int threads = most < kThreadsFrom ? 1 : omp_get_max_threads();
        const Buffer workspace(reference_workspace_bytes(node.op, input_descs, output_descs, threads));
        run_reference(node.op, inputs, outputs, workspace.data(), threads, context);
        for (const ValueId v : node.inputs)
            if (--readers_[index(v)] == 0) values_[index(v)] = Tensor();
        for (const ValueId v : node.outputs)
            if (readers_[index(v)] == 0) values_[index(v)] = Tensor();
    }

    const Tensor& value(ValueId v) const { return values_[index(v)]; }

  private:
    static size_t index(ValueId v) { return static_cast<size_t>(v); }

    const Graph& graph_;
    DType dtype_;
    std::vector<Tensor> values_;
    std::vector<int> readers_;
};

}  // namespace

std::map<std::string, Tensor> interpret(const Graph& graph, const std::map<std::string, Tensor>& feeds, DType dtype,
                                        const StepContext& context) {
    require(dtype == DType::f64 || dtype == DType::f32, "the reference backend computes in f64 or f32, not {}", name_of(dtype));
    Interpreter interpreter(graph, dtype);
    interpreter.feed(feeds);
    for (const auto& node : graph.nodes()) interpreter.run(node, context);
    std::map<std::string, Tensor> results;
    for (const auto& output : graph.outputs()) results.emplace(output.name, interpreter.value(output.value));
    for (const auto& store : graph.stores()) results.emplace("store:" + graph.value(store.state).name, interpreter.value(store.value));
    return results;
}

}  // namespace convoy
