#include "onnx/export.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
#include "onnx/emitter.h"

namespace convoy::onnx {

namespace {

constexpr int64_t kIrVersion = 8;
constexpr int64_t kMostBytes = (int64_t{1} << 31) - 1;

struct Stored {
    std::string name;
    Tensor tensor;      // of a constant
    int state = kNone;  // or the state whose tensor it is
    Shape shape;
    DataType type;
    int64_t bytes;
};

// One graph on its way out.
class Exporter {
  public:
    Exporter(const Model& model, DType type)
        : graph_(model.graph), type_(type), names_(graph_.values().size()), readers_(graph_.values().size()) {
        for (const convoy::Node& node : graph_.nodes())
            for (const ValueId v : node.inputs) ++readers_[index(v)];
        for (const NamedValue& output : graph_.outputs()) readers_[index(output.value)] += 2;
        for (const NamedValue& input : graph_.inputs()) names_[index(input.value)] = taken(input.name);
        for (const auto& state : graph_.states()) used_.insert(state.name);
        // The prediction keeps its name; what only the loss reads is not part of the network.
        prediction_ = graph_.outputs().front();
        if (graph_.value(prediction_.value).producer != kNone) names_[index(prediction_.value)] = taken(prediction_.name);
    }

    void run() {
        std::vector<bool> live(graph_.nodes().size(), false);
        std::vector<ValueId> todo{prediction_.value};
        while (!todo.empty()) {
            const NodeId at = graph_.value(todo.back()).producer;
            todo.pop_back();
            if (at == kNone || live[static_cast<size_t>(at)]) continue;
            live[static_cast<size_t>(at)] = true;
            for (const ValueId v : graph_.node(at).inputs) todo.push_back(v);
        }
        for (size_t i = 0; i < live.size(); ++i) {
            if (!live[i] || done_.count(static_cast<NodeId>(i))) continue;
            node_ = &graph_.nodes()[i];
            std::visit([&](const auto& op) { emit(op); }, node_->op);
        }
        if (graph_.value(prediction_.value).producer == kNone) fail("the network computes nothing: its output is its input");
    }

    const std::vector<std::string>& nodes() const { return nodes_; }
    const std::vector<Stored>& stored() const { return stored_; }
    bool any_batch() const { return any_batch_; }
    int64_t opset() const { return opset_; }
    DataType real() const { return type_ == DType::f64 ? DataType::Double : DataType::Float; }
    NamedValue prediction() const { return prediction_; }

  private:
    static size_t index(ValueId v) { return static_cast<size_t>(v); }

    std::string taken(const std::string& wish) {
        std::string name = wish;
        for (int i = 2; !used_.insert(name).second; ++i) name = fmt::format("{}#{}", wish, i);
        return name;
    }

    [[noreturn]] void refuse(const std::string& why) const { fail("{} \"{}\": {}", name_of(node_->op), node_->layer, why); }

    // The name of a value, which becomes an initialiser when it is a state.
    std::string name(ValueId v) {
        std::string& known = names_[index(v)];
        if (!known.empty()) return known;
        const Value& value = graph_.value(v);
        if (value.state == kNone) return known = taken(value.name);
        const StateSpec& spec = graph_.states()[static_cast<size_t>(value.state)];
        stored_.push_back({spec.name, {}, value.state, spec.shape, real(), numel(spec.shape) * size_of(type_)});
        return known = spec.name;
    }
    std::string in(size_t i) { return name(node_->inputs[i]); }
    std::string out(size_t o = 0) { return name(node_->outputs[o]); }
    const Shape& shape_in(size_t i) const { return graph_.shape(node_->inputs[i]); }
    const Shape& shape_out() const { return graph_.shape(node_->outputs[0]); }

    std::string constant(const Tensor& tensor, DataType type) {
        const std::string made = taken(node_->layer + ".const");
        stored_.push_back({made, tensor, kNone, tensor.shape(), type, tensor.bytes()});
        return made;
    }
    std::string ints(const std::vector<int64_t>& values) {
        return constant(Tensor::of({static_cast<int64_t>(values.size())}, values), DataType::Int64);
    }
    std::string number(double value) { return constant(Tensor::of<double>({}, {value}).to(type_), real()); }

    std::string add(const std::string& op, std::vector<std::string> inputs, const std::string& output, const Attributes& attributes = {}) {
        nodes_.push_back(node_message({op, taken("node:" + node_->layer), std::move(inputs), {output}, attributes}));
        return output;
    }
    // A node between others.
    std::string step(const std::string& op, std::vector<std::string> inputs, const Attributes& attributes = {}) {
        return add(op, std::move(inputs), taken(node_->layer + ".step"), attributes);
    }

    // The bias that alone reads the result of this node, so that both are one node; its result then is that node's.
    std::optional<NodeId> following_bias() const {
        const ValueId y = node_->outputs[0];
        if (readers_[index(y)] != 1) return std::nullopt;
        for (size_t i = 0; i < graph_.nodes().size(); ++i) {
            const convoy::Node& other = graph_.nodes()[i];
            const auto* bias = std::get_if<BiasOp>(&other.op);
            if (bias && bias->axis == 1 && other.inputs[0] == y && graph_.shape(other.inputs[1]).size() == 1) return static_cast<NodeId>(i);
        }
        return std::nullopt;
    }
    void add_with_bias(const std::string& op, const Attributes& attributes) {
        std::vector<std::string> inputs{in(0), in(1)};
        const auto bias = following_bias();
        if (!bias) {
            add(op, inputs, out(), attributes);
            return;
        }
        inputs.push_back(name(graph_.node(*bias).inputs[1]));
        done_.insert(*bias);
        add(op, inputs, name(graph_.node(*bias).outputs[0]), attributes);
    }

    static Attributes window(const Window& w) {
        Attributes a;
        a.integers("kernel_shape", w.kernel).integers("strides", w.stride).integers("pads", join(w.pad_lo, w.pad_hi));
        return a;
    }

    // --- Ops ---

    void emit(const ConvOp& op) {
        add_with_bias("Conv", window(op.window).integers("dilations", op.window.dilation).integer("group", op.groups));
    }
    void emit(const ConvGradInputOp& op) {
        const Window& w = op.window;
        Dims extra;
        for (int i = 0; i < w.rank(); ++i)
            extra.push_back(op.input[i] - ((shape_in(0)[2 + i] - 1) * w.stride[i] + w.extent(i) - w.pad_lo[i] - w.pad_hi[i]));
        add_with_bias("ConvTranspose",
                      window(w).integers("dilations", w.dilation).integer("group", op.groups).integers("output_padding", extra));
    }
    void emit(const LinearOp&) { add_with_bias("Gemm", Attributes().integer("transB", 1)); }
    // A bias at dims [axis, axis + rank) of x.
    void emit(const BiasOp& op) {
        const Shape b = shape_in(1);
        const int after = shape_in(0).size() - op.axis - b.size();
        std::vector<int64_t> full(b.begin(), b.end());
        full.resize(full.size() + static_cast<size_t>(after), 1);
        const std::string bias = after == 0 ? in(1) : step("Reshape", {in(1), ints(full)});
        add("Add", {in(0), bias}, out());
    }

    void emit(const MaxPoolOp& op) { add("MaxPool", {in(0)}, out(), window(op.window).integers("dilations", op.window.dilation)); }
    void emit(const AveragePoolOp& op) {
        const bool ceil = std::any_of(op.overflow.begin(), op.overflow.end(), [](int64_t v) { return v > 0; });
        add("AveragePool", {in(0)}, out(), window(op.window).integer("count_include_pad", op.count_padding).integer("ceil_mode", ceil));
    }
    void emit(const AdaptivePoolOp& op) {
        if (op.output == Dims::filled(op.output.size(), 1)) {
            add("GlobalAveragePool", {in(0)}, out());
            return;
        }
        Dims kernel;
        for (int i = 0; i < op.output.size(); ++i) {
            const int64_t length = shape_in(0)[2 + i];
            if (length % op.output[i] != 0)
                refuse(fmt::format("ONNX cannot average {} to {}", to_string(shape_in(0).slice(2)), to_string(op.output)));
            kernel.push_back(length / op.output[i]);
        }
        add("AveragePool", {in(0)}, out(), Attributes().integers("kernel_shape", kernel).integers("strides", kernel));
    }
    void emit(const UpsampleOp& op) {
        const bool nearest = op.mode == Resample::Nearest;
        Attributes a;
        a.text("mode", nearest ? "nearest" : "linear");
        a.text("coordinate_transformation_mode", nearest ? "asymmetric" : op.align_corners ? "align_corners" : "half_pixel");
        if (nearest) a.text("nearest_mode", "floor");
        std::vector<float> scales{1, 1};
        bool whole = true;
        for (int i = 0; i < op.output.size(); ++i) {
            whole = whole && op.output[i] % shape_in(0)[2 + i] == 0;
            scales.push_back(static_cast<float>(op.output[i] / shape_in(0)[2 + i]));
        }
        if (whole) {
            add("Resize", {in(0), "", constant(Tensor::of({static_cast<int64_t>(scales.size())}, scales), DataType::Float)}, out(), a);
        } else {
            any_batch_ = false;
            add("Resize", {in(0), "", "", ints({shape_out().begin(), shape_out().end()})}, out(), a);
        }
    }

    void emit(const RunningStatsOp&) {}
    void emit(const BatchNormalizeOp& op) {
        const NodeId stats = graph_.value(node_->inputs[1]).producer;
        if (stats == kNone || !std::holds_alternative<RunningStatsOp>(graph_.node(stats).op)) refuse("its statistics are not running ones");
        const auto& running = graph_.node(stats).inputs;
        add("BatchNormalization", {in(0), in(2), in(3), name(running[0]), name(running[1])}, out(),
            Attributes().real("epsilon", op.epsilon));
    }
    void emit(const CellStatsOp&) {}
    void emit(const CellNormalizeOp& op) {
        const Shape x = shape_in(0);
        if (op.cells.groups == 0) {
            opset_ = 17;
            add("LayerNormalization", {in(0), in(2), in(3)}, out(),
                Attributes().integer("axis", op.cells.axis).real("epsilon", op.epsilon));
            return;
        }
        // A group is an instance of its own: normalised as one, then scaled by channel.
        const int64_t groups = op.cells.groups;
        const auto fill = [&](double v) {
            return constant(Tensor::of({groups}, std::vector<double>(static_cast<size_t>(groups), v)).to(type_), real());
        };
        const std::string grouped = step("Reshape", {in(0), ints({0, groups, -1})});
        const std::string normal = step("InstanceNormalization", {grouped, fill(1), fill(0)}, Attributes().real("epsilon", op.epsilon));
        std::vector<int64_t> back(x.begin(), x.end()), channel{x[1]};
        back[0] = 0;
        channel.resize(static_cast<size_t>(x.size() - 1), 1);
        const std::string shaped = step("Reshape", {normal, ints(back)}),
                          scaled = step("Mul", {shaped, step("Reshape", {in(2), ints(channel)})});
        add("Add", {scaled, step("Reshape", {in(3), ints(channel)})}, out());
    }
    void emit(const LrnOp& op) {
        add("LRN", {in(0)}, out(), Attributes().real("alpha", op.alpha).real("beta", op.beta).real("bias", op.k).integer("size", op.size));
    }

    void emit(const UnaryOp& op) {
        switch (op.kind) {
            case Unary::Relu: add("Relu", {in(0)}, out()); return;
            case Unary::Relu6: add("Clip", {in(0), number(0), number(6)}, out()); return;
            case Unary::LeakyRelu: add("LeakyRelu", {in(0)}, out(), Attributes().real("alpha", op.alpha)); return;
            case Unary::Sigmoid: add("Sigmoid", {in(0)}, out()); return;
            case Unary::Tanh: add("Tanh", {in(0)}, out()); return;
            case Unary::Silu: add("Mul", {in(0), step("Sigmoid", {in(0)})}, out()); return;
            case Unary::Gelu: return half_of(step("Erf", {step("Mul", {in(0), number(std::sqrt(0.5))})}));
            case Unary::GeluTanh: {
                const std::string cube = step("Mul", {step("Mul", {in(0), in(0)}), in(0)});
                const std::string inner = step("Add", {in(0), step("Mul", {cube, number(0.044715)})});
                return half_of(step("Tanh", {step("Mul", {inner, number(std::sqrt(2 / 3.14159265358979323846))})}));
            }
        }
    }
    // x/2 * (1 + part).
    void half_of(const std::string& part) { add("Mul", {step("Mul", {in(0), number(0.5)}), step("Add", {part, number(1)})}, out()); }

    void emit(const PointwiseOp& op) {
        const std::string x = in(0);
        switch (op.kind) {
            case Pointwise::Elu: add("Elu", {x}, out(), Attributes().real("alpha", op.a)); return;
            case Pointwise::HardSigmoid: add("HardSigmoid", {x}, out(), Attributes().real("alpha", op.a).real("beta", op.b)); return;
            case Pointwise::HardSwish: {
                const Attributes gate = Attributes().real("alpha", 1.0 / 6).real("beta", 0.5);
                add("Mul", {x, step("HardSigmoid", {x}, gate)}, out());
                return;
            }
            case Pointwise::ThresholdedRelu: add("ThresholdedRelu", {x}, out(), Attributes().real("alpha", op.a)); return;
            case Pointwise::Shrink: add("Shrink", {x}, out(), Attributes().real("lambd", op.a).real("bias", op.b)); return;
            case Pointwise::Clip:
                add("Clip", {x, std::isfinite(op.a) ? number(op.a) : "", std::isfinite(op.b) ? number(op.b) : ""}, out());
                return;
            case Pointwise::Shift: add("Add", {x, number(op.a)}, out()); return;
            case Pointwise::Power: add("Pow", {x, number(op.a)}, out()); return;
            default: {
                std::string same(name_of(op.kind));  // "softplus" -> "Softplus"
                same[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(same[0])));
                add(same, {x}, out());
            }
        }
    }
    void emit(const PReluOp&) {
        std::vector<int64_t> full{shape_in(1)[0]};
        full.resize(static_cast<size_t>(shape_in(0).size() - 1), 1);
        add("PRelu", {in(0), full.size() == 1 ? in(1) : step("Reshape", {in(1), ints(full)})}, out());
    }
    void emit(const SoftmaxOp& op) { add("Softmax", {in(0)}, out(), Attributes().integer("axis", op.axis)); }
    void emit(const LogSoftmaxOp& op) { add("LogSoftmax", {in(0)}, out(), Attributes().integer("axis", op.axis)); }

    void emit(const AddOp&) {
        std::vector<std::string> terms;
        for (size_t i = 0; i < node_->inputs.size(); ++i) terms.push_back(in(i));
        add(terms.size() == 2 ? "Add" : "Sum", terms, out());
    }
    void emit(const MulOp&) { add("Mul", {in(0), in(1)}, out()); }
    void emit(const ScaleOp& op) { add("Mul", {in(0), number(op.factor)}, out()); }
    void emit(const ExpandOp& op) {
        std::vector<int64_t> shape;
        for (int d = 0; d < op.shape.size(); ++d) shape.push_back(op.shape[d] == shape_in(0)[d] ? 1 : op.shape[d]);
        if (!shape.empty() && shape[0] != 1) any_batch_ = false;
        add("Expand", {in(0), ints(shape)}, out());
    }
    void emit(const SumToOp& op) {
        std::vector<int64_t> axes;
        for (int d = 0; d < op.shape.size(); ++d)
            if (op.shape[d] != shape_in(0)[d]) axes.push_back(d);
        add("ReduceSum", {in(0), ints(axes)}, out(), Attributes().integer("keepdims", 1));
    }

    void emit(const ConcatOp& op) {
        std::vector<std::string> parts;
        for (size_t i = 0; i < node_->inputs.size(); ++i) parts.push_back(in(i));
        add("Concat", parts, out(), Attributes().integer("axis", op.axis));
    }
    void emit(const SliceOp& op) {
        std::vector<int64_t> starts, ends, axes;
        for (int d = 0; d < op.start.size(); ++d) {
            if (op.start[d] == 0 && op.size[d] == shape_in(0)[d]) continue;
            if (d == 0) any_batch_ = false;
            starts.push_back(op.start[d]);
            ends.push_back(op.start[d] + op.size[d]);
            axes.push_back(d);
        }
        if (axes.empty()) {
            add("Identity", {in(0)}, out());
            return;
        }
        add("Slice", {in(0), ints(starts), ints(ends), ints(axes)}, out());
    }
    void emit(const PadOp& op) {
        const Dims both = join(op.lo, op.hi);
        if (!both.empty() && (op.lo[0] != 0 || op.hi[0] != 0)) any_batch_ = false;
        add("Pad", {in(0), ints({both.begin(), both.end()}), number(op.value)}, out());
    }
    void emit(const ReshapeOp& op) {
        std::vector<int64_t> shape(op.shape.begin(), op.shape.end());
        const bool of_state = graph_.value(node_->inputs[0]).state != kNone;
        if (!of_state && !shape.empty() && !shape_in(0).empty() && shape[0] == shape_in(0)[0])
            shape[0] = 0;
        else if (!of_state)
            any_batch_ = false;
        add("Reshape", {in(0), ints(shape)}, out());
    }
    void emit(const TransposeOp& op) {
        if (!op.order.empty() && op.order[0] != 0 && graph_.value(node_->inputs[0]).state == kNone) any_batch_ = false;
        add("Transpose", {in(0)}, out(), Attributes().integers("perm", op.order));
    }

    template <class Other>
    void emit(const Other&) {
        refuse("ONNX has no such op");
    }

    const Graph& graph_;
    DType type_;
    NamedValue prediction_;
    std::vector<std::string> names_;
    std::vector<int> readers_;
    std::set<std::string> used_;
    std::set<NodeId> done_;
    const convoy::Node* node_ = nullptr;
    std::vector<std::string> nodes_;
    std::vector<Stored> stored_;
    bool any_batch_ = true;
    int64_t opset_ = 13;
};

const char* loss_text(LossKind kind) {
    switch (kind) {
        case LossKind::CrossEntropy: return "cross_entropy";
        case LossKind::SquaredError: return "squared_error";
        case LossKind::AbsoluteError: return "absolute_error";
    }
    return "";
}

std::string pair_message(std::string_view key, std::string_view value) {
    WireWriter w;
    w.bytes(1, key);
    w.bytes(2, value);
    return w.text();
}

}  // namespace

ExportReport export_model(const std::filesystem::path& path, const Model& model, const std::function<Tensor(const StateSpec&)>& weights,
                          const ExportOptions& options) {
    require(options.type == DType::f32 || options.type == DType::f64, "an ONNX file holds f32 or f64 here, not {}", name_of(options.type));
    Exporter exporter(model, options.type);
    exporter.run();

    WireWriter nodes, ends;
    for (const std::string& node : exporter.nodes()) nodes.bytes(1, node);
    nodes.bytes(2, "network");
    const ValueId input = model.graph.input("input");
    ends.bytes(11, value_message("input", exporter.real(), model.graph.shape(input), exporter.any_batch()));
    ends.bytes(12, value_message(exporter.prediction().name, exporter.real(), model.graph.shape(exporter.prediction().value),
                                 exporter.any_batch()));

    // Sizes come before what they count, so they are added up first; the tensors are written one by one.
    std::vector<std::string> heads;
    int64_t graph_bytes = static_cast<int64_t>(nodes.text().size() + ends.text().size());
    for (const Stored& s : exporter.stored()) {
        const std::string head = tensor_head(s.name, s.type, s.shape, s.bytes);
        WireWriter field;
        field.begin_bytes(5, head.size() + static_cast<uint64_t>(s.bytes));
        heads.push_back(field.text() + head);
        graph_bytes += static_cast<int64_t>(heads.back().size()) + s.bytes;
    }
    require(graph_bytes < kMostBytes, "the file would have {} bytes; the format ends at 2 GiB", graph_bytes);
    WireWriter start, opset;
    start.number(1, kIrVersion);
    start.bytes(2, options.producer);
    opset.bytes(1, "");
    opset.number(2, exporter.opset());
    start.bytes(8, opset.text());
    start.bytes(14, pair_message("convoy.loss", loss_text(model.losses.at(0).kind)));
    start.begin_bytes(7, static_cast<uint64_t>(graph_bytes));

    AtomicFile file(path);
    file.write(start.text());
    file.write(nodes.text());
    for (size_t i = 0; i < heads.size(); ++i) {
        const Stored& s = exporter.stored()[i];
        const Tensor tensor = s.state == kNone ? s.tensor : weights(model.graph.states()[static_cast<size_t>(s.state)]).to(options.type);
        CONVOY_CHECK(tensor.bytes() == s.bytes, "\"{}\" has {} bytes, expected {}", s.name, tensor.bytes(), s.bytes);
        file.write(heads[i]);
        file.write({reinterpret_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.bytes())});
    }
    file.write(ends.text());
    file.commit();
    return {.nodes = static_cast<int64_t>(exporter.nodes().size()),
            .initializers = static_cast<int64_t>(heads.size()),
            .bytes = graph_bytes + static_cast<int64_t>(start.text().size()),
            .opset = exporter.opset(),
            .any_batch = exporter.any_batch()};
}

}  // namespace convoy::onnx
