#include "onnx/import.h"

#include <algorithm>

#include "data/bytes.h"
#include "onnx/context.h"

namespace convoy::onnx {

namespace {

constexpr std::string_view kTraining = "ai.onnx.preview.training";

Converter find(std::span<const OpEntry> list, std::string_view op) {
    const auto at = std::find_if(list.begin(), list.end(), [&](const OpEntry& e) { return e.op == op; });
    return at == list.end() ? nullptr : at->convert;
}

Converter converter_of(const Node& node) {
    if (node.domain == kTraining) return find(training_ops(), node.op);
    if (!node.domain.empty() && node.domain != "ai.onnx") return nullptr;
    for (const auto list : {window_ops(), resize_ops(), norm_ops(), pointwise_ops(), matrix_ops(), shape_ops(), loss_ops()})
        if (const Converter convert = find(list, node.op)) return convert;
    return nullptr;
}

// The whole shape of an input: as asked for, or as the file says.
Shape shape_of(const ValueInfo& info, const ImportOptions& options) {
    const std::string name(info.name);
    if (const auto given = options.shapes.find(name); given != options.shapes.end()) return given->second;
    require(info.has_shape && info.shape.size() <= static_cast<size_t>(Dims::kMost), "input {} has no shape, or one of more than {} dims",
            in_quotes(name), Dims::kMost);
    Shape shape;
    for (const Dimension& d : info.shape) {
        require(d.size > 0 && d.size <= int64_t{1} << 31, "input {} has a dim of {}, expected a fixed size of at least 1", in_quotes(name),
                d.name.empty() ? std::to_string(d.size) : std::string(d.name));
        shape.push_back(d.size);
    }
    const auto bytes = checked_bytes(shape, 1);
    require(bytes && *bytes <= int64_t{1} << 40, "input {} is {}", in_quotes(name), to_string(shape));
    return shape;
}

// Whole numbers and single ones are wanted here and now more often than not; large arrays of real numbers stay where they lie.
void add_initializers(Import& import) {
    for (const TensorProto& tensor : import.file.initializers) {
        require(!tensor.name.empty(), "an initialiser has no name");
        Item item;
        if (is_integer(tensor.type)) {
            Tensor numbers = read_tensor(tensor);
            import.count_folded(numbers.numel());
            item.known = std::move(numbers);
        } else {
            require(is_real(tensor.type) || tensor.type == DataType::Float16 || tensor.type == DataType::Bfloat16,
                    "initialiser {} holds {}, which is not supported", in_quotes(tensor.name), name_of(tensor.type));
            require(!tensor.external, "initialiser {} lies in another file, which is not supported; save the model with its weights inside",
                    in_quotes(tensor.name));
            item.stored = &tensor;
        }
        require(import.items.emplace(tensor.name, std::move(item)).second, "there are two initialisers {}", in_quotes(tensor.name));
    }
}

void add_inputs(Import& import) {
    constexpr size_t kMost = 1024;  // that are no initialisers: networks have one or a few
    require(import.file.inputs.size() <= kMost + import.file.initializers.size(), "it has {} inputs, expected at most {}",
            import.file.inputs.size(), kMost);
    for (const ValueInfo& info : import.file.inputs) {
        const std::string name(info.name);
        require(!name.empty(), "an input has no name");
        const auto at = import.items.find(info.name);
        if (at != import.items.end() && !at->second.graph_input) continue;  // an initialiser that may be replaced
        require(at == import.items.end(), "there are two inputs {}", in_quotes(name));
        Item item;
        item.graph_input = true;
        if (const auto known = import.options.constants.find(name); known != import.options.constants.end()) {
            item.known = known->second.to(is_floating(known->second.dtype()) ? DType::f64 : DType::i64);
        } else {
            require(is_real(info.type) || info.type == DataType::Int32 || info.type == DataType::Int64,
                    "input {} holds {}, expected float or double, or int32 or int64 for targets", in_quotes(name), name_of(info.type));
            const auto other = import.options.names.find(name);
            item.id = import.graph.add_input(other == import.options.names.end() ? name : other->second,
                                             {shape_of(info, import.options), is_real(info.type) ? Element::Real : Element::Index});
        }
        import.items.emplace(info.name, std::move(item));
    }
}

// Nodes stand in an order in which each reads only what is there.
void require_readable(const Import& import, size_t at) {
    const Node& node = import.file.nodes[at];
    for (const std::string_view input : node.inputs) {
        if (input.empty() || import.items.count(input)) continue;
        for (size_t later = at; later < import.file.nodes.size(); ++later)
            for (const std::string_view output : import.file.nodes[later].outputs)
                require(output != input, "{} {}: it reads {}, which {} makes after it: the graph is a circle, or not in order",
                        std::string(node.op), in_quotes(node.name), in_quotes(input), in_quotes(import.file.nodes[later].name));
        fail("{} {}: it reads {}, which nothing makes", std::string(node.op), in_quotes(node.name), in_quotes(input));
    }
}

void add_node(Import& import, size_t at) {
    const Node& node = import.file.nodes[at];
    require_readable(import, at);
    NodeContext context(import, node);
    const Converter convert = converter_of(node);
    try {
        if (fold(context)) return;
        // These make nothing but known values: what they read must be known.
        if (node.op == "ConstantOfShape" || node.op == "Range")
            for (size_t i = 0; i < context.inputs(); ++i) context.known(i);
        if (!convert)
            context.refuse(node.domain.empty() || node.domain == "ai.onnx"
                               ? "this op is not supported"
                               : fmt::format("ops of the domain {} are not supported", in_quotes(node.domain)));
        convert(context);
    } catch (const NeedsConstant&) {
        throw;
    } catch (const Error& e) {
        // What a helper found wrong does not know the node.
        const std::string text = e.what(), op(node.op);
        if (text.rfind(op + " ", 0) == 0) throw;
        context.refuse(text);
    }
    context.require_all_attributes_known();
    for (size_t o = 0; o < node.outputs.size(); ++o)
        if (context.wants(o) && !import.items.count(node.outputs[o]))
            context.refuse(fmt::format("its output {} ({}) is not supported", o + 1, in_quotes(node.outputs[o])));
}

}  // namespace

Imported import_graph(const ModelProto& file, std::string_view bytes, const ImportOptions& options) {
    const int64_t opset = file.opset();
    require(opset >= 1 && opset <= 17, "it uses operator set {}, expected 1 to 17", opset);
    Import import{.file = file, .bytes = bytes, .options = options, .graph = {}, .items = {}, .layers = {}};
    add_initializers(import);
    add_inputs(import);
    for (size_t at = 0; at < file.nodes.size(); ++at) add_node(import, at);
    Imported result;
    require(!file.outputs.empty(), "it has no output");
    for (const ValueInfo& output : file.outputs) {
        const auto at = import.items.find(output.name);
        require(at != import.items.end(), "nothing makes its output {}", in_quotes(output.name));
        const Item& item = at->second;
        ImportedOutput made{.name = std::string(output.name), .value = item.id, .known = {}};
        if (item.id == kNone) made.known = item.known ? *item.known : read_tensor(*item.stored).to(DType::f64);
        result.outputs.push_back(std::move(made));
    }
    result.graph = std::move(import.graph);
    return result;
}

}  // namespace convoy::onnx
