// One node on its way into the graph: what a converter works with. Internal to this folder.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onnx/import.h"

namespace convoy::onnx {

// A value of the file: known here and now, stored in the file, or computed by the graph.
struct Item {
    std::optional<Tensor> known;          // f64 or i64
    const TensorProto* stored = nullptr;  // real numbers, not yet read
    ValueId id = kNone;
    bool graph_input = false;
    Shape shape(const Graph& graph) const;
};

// The state of an import.
struct Import {
    const ModelProto& file;
    std::string_view bytes;
    const ImportOptions& options;
    Graph graph;
    std::unordered_map<std::string_view, Item> items;
    std::unordered_map<std::string, int> layers;  // how often each name was wished for
    int64_t folded = 0;                           // elements of known values so far

    // What is folded may not grow beyond what a file of this size can mean.
    void count_folded(int64_t elements);
};

class NodeContext {
  public:
    NodeContext(Import& import, const Node& node);

    Graph& graph() { return import_.graph; }
    const ImportOptions& options() const { return import_.options; }
    const Node& node() const { return node_; }
    int64_t opset() const { return import_.file.opset(); }
    const std::string& layer() const { return layer_; }
    [[noreturn]] void refuse(const std::string& why) const;

    // --- Inputs ---
    size_t inputs() const { return node_.inputs.size(); }
    bool has(size_t i) const { return i < node_.inputs.size() && !node_.inputs[i].empty(); }
    Shape shape(size_t i);
    // Whether the numbers are known without asking for a large stored tensor.
    bool is_known(size_t i);
    bool is_scalar(size_t i) { return numel(shape(i)) == 1; }
    // The numbers, f64 or i64. NeedsConstant or Error when they are not known.
    Tensor known(size_t i);
    std::vector<int64_t> known_ints(size_t i);
    double known_number(size_t i);
    // The graph's value of that name.
    ValueId named(std::string_view name) const;
    // As a value of the graph; numbers become state: learned when the file stores them, fixed when a node makes them.
    ValueId value(size_t i);
    ValueId buffer(size_t i);
    // Counts known values of this shape, before anything is allocated for them.
    void count(const Shape& shape);
    // Zeros, to be known values. Error, before anything is allocated, when they are more than a file of this size can mean.
    Tensor fresh(const Shape& shape, DType type);
    Tensor filled(const Shape& shape, double value);
    // A fixed tensor of these numbers.
    ValueId constant(const Tensor& numbers, const std::string& suffix = "");

    // --- Attributes; each that a converter asks for is known to it, and what is left over is refused ---
    bool has_attribute(std::string_view name) const { return find(name) != nullptr; }
    int64_t integer(std::string_view name, int64_t fallback);
    double real(std::string_view name, double fallback);
    std::string text(std::string_view name, std::string_view fallback);
    std::vector<int64_t> integers(std::string_view name);
    const Attribute* attribute(std::string_view name);
    void require_all_attributes_known() const;
    // A setting with one entry per spatial dim, each of low..2^31.
    Dims window_setting(std::string_view name, int rank, int64_t fallback, int64_t low);

    // --- Outputs ---
    size_t outputs() const { return node_.outputs.size(); }
    bool wants(size_t o) const { return o < node_.outputs.size() && !node_.outputs[o].empty(); }
    void set(size_t o, ValueId value);
    void set_known(size_t o, Tensor numbers);
    // Output 0 as another name for the stored tensor that input 0 is; false when it is none. Exporters write parameters that begin with equal numbers so:
    // each is a state of its own, by its own name.
    bool alias_stored();

    // --- Nodes of the graph ---
    ValueId add(const Op& op, const std::vector<ValueId>& inputs);
    std::vector<ValueId> add_all(const Op& op, const std::vector<ValueId>& inputs);
    Shape shape_of(ValueId v) const { return import_.graph.shape(v); }
    ValueId reshape(ValueId v, const Shape& shape);
    ValueId transpose(ValueId v, const Dims& order);
    ValueId scale(ValueId v, double factor);
    ValueId shift(ValueId v, double by);
    ValueId negative(ValueId v) { return scale(v, -1); }
    ValueId map(Pointwise kind, ValueId v, double a = 0, double b = 0) { return add(PointwiseOp{kind, a, b}, {v}); }
    // v repeated to `shape`, by NumPy's rules.
    ValueId broadcast(ValueId v, const Shape& shape);
    ValueId plus(ValueId a, ValueId b);   // by NumPy's rules
    ValueId times(ValueId a, ValueId b);  // by NumPy's rules
    ValueId slice(ValueId v, int axis, int64_t start, int64_t size);
    // The entries of a dim at these places, in this order.
    ValueId select(ValueId v, int axis, const std::vector<int64_t>& places);
    // Sums and maxima over these dims, which are left as 1.
    ValueId sum_over(ValueId v, const std::vector<int>& axes);
    ValueId max_over(ValueId v, const std::vector<int>& axes);
    // A dim counted from the end when it is negative.
    int axis_in(int64_t axis, int rank) const;
    std::vector<int> axes_in(const std::vector<int64_t>& axes, int rank) const;

  private:
    Item& item(size_t i);
    const Attribute* find(std::string_view name) const;
    ValueId state(size_t i, StateKind kind);

    Import& import_;
    const Node& node_;
    std::string layer_;
    std::set<std::string_view> used_;
};

// The shape to which both repeat; Error when there is none.
Shape broadcast_shape(const Shape& a, const Shape& b);

// What shape ops ask for, whether they move data or numbers that are known.
Shape result_shape(NodeContext& node);  // of Reshape, Flatten, Squeeze, Unsqueeze
struct SlicePart {
    int axis;
    int64_t start, step, count;
};
std::vector<SlicePart> slice_parts(NodeContext& node);

using Converter = void (*)(NodeContext&);
struct OpEntry {
    std::string_view op;
    Converter convert;
};
// The converters, by family.
std::span<const OpEntry> window_ops();  // convolutions, pooling
std::span<const OpEntry> resize_ops();
std::span<const OpEntry> norm_ops();       // normalisation, dropout
std::span<const OpEntry> pointwise_ops();  // activations, functions, arithmetic
std::span<const OpEntry> matrix_ops();     // products, reductions
std::span<const OpEntry> shape_ops();      // rearranging
std::span<const OpEntry> loss_ops();
std::span<const OpEntry> training_ops();  // ONNX's preview of training: optimizers, gradients

// Computes the node when all it reads is known and it is one of the ops that shapes are computed with. False when it is not.
bool fold(NodeContext& node);

}  // namespace convoy::onnx
