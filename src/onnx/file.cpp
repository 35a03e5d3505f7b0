#include "onnx/file.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "data/bytes.h"
#include "onnx/wire.h"

namespace convoy::onnx {

namespace {

constexpr std::string_view kNames[] = {"undefined", "float",   "uint8",  "int8",   "uint16", "int16",     "int32",      "int64",   "string",
                                       "bool",      "float16", "double", "uint32", "uint64", "complex64", "complex128", "bfloat16"};

DataType type_of(int64_t value) {
    require(value >= 0 && value <= 16, "an element type of {}, expected 0 to 16", value);
    return static_cast<DataType>(value);
}

Shape shape_of(const std::vector<int64_t>& dims, std::string_view name) {
    require(dims.size() <= static_cast<size_t>(Dims::kMost), "tensor {} has {} dims, expected at most {}", in_quotes(name), dims.size(),
            Dims::kMost);
    Shape shape;
    for (const int64_t size : dims) shape.push_back(size);
    require(checked_bytes(shape, 8).has_value(), "tensor {} has the impossible shape {}", in_quotes(name), to_string(shape));
    return shape;
}

Attribute parse_attribute(std::string_view bytes) {
    Attribute attribute;
    WireReader reader(bytes);
    for (WireField field; reader.next(field);) {
        switch (field.number) {
            case 1: attribute.name = field.as_bytes(); break;
            case 2: attribute.f = field.as_float(); break;
            case 3: attribute.i = field.as_int(); break;
            case 4: attribute.s = field.as_bytes(); break;
            case 5: attribute.tensor = {parse_tensor(field.as_bytes())}; break;
            case 7: append_floats(field, attribute.floats); break;
            case 8: append_ints(field, attribute.ints); break;
            case 20: attribute.type = static_cast<int>(std::clamp<int64_t>(field.as_int(), 0, 99)); break;
            default: break;
        }
    }
    require(!attribute.name.empty(), "an attribute has no name");
    return attribute;
}

// A node names its op and what it makes. That also bounds how many of them a file of so many bytes can hold, and with that the memory they take.
Node parse_node(std::string_view bytes) {
    Node node;
    WireReader reader(bytes);
    for (WireField field; reader.next(field);) {
        switch (field.number) {
            case 1: node.inputs.push_back(field.as_bytes()); break;
            case 2: node.outputs.push_back(field.as_bytes()); break;
            case 3: node.name = field.as_bytes(); break;
            case 4: node.op = field.as_bytes(); break;
            case 5: node.attributes.push_back(parse_attribute(field.as_bytes())); break;
            case 7: node.domain = field.as_bytes(); break;
            default: break;
        }
    }
    require(!node.op.empty() && !node.outputs.empty(), "node {} has no op or no output", in_quotes(node.name));
    return node;
}

Dimension parse_dimension(std::string_view bytes) {
    Dimension dimension;
    WireReader reader(bytes);
    for (WireField field; reader.next(field);) {
        if (field.number == 1) dimension.size = field.as_int();
        if (field.number == 2) dimension.name = field.as_bytes();
    }
    return dimension;
}

void parse_tensor_type(std::string_view bytes, ValueInfo& info) {
    WireReader reader(bytes);
    for (WireField field; reader.next(field);) {
        if (field.number == 1) info.type = type_of(field.as_int());
        if (field.number != 2) continue;
        info.has_shape = true;
        WireReader dims(field.as_bytes());
        for (WireField dim; dims.next(dim);)
            if (dim.number == 1) info.shape.push_back(parse_dimension(dim.as_bytes()));
    }
}

ValueInfo parse_value(std::string_view bytes) {
    ValueInfo info;
    WireReader reader(bytes);
    for (WireField field; reader.next(field);) {
        if (field.number == 1) info.name = field.as_bytes();
        if (field.number != 2) continue;
        WireReader type(field.as_bytes());
        for (WireField inner; type.next(inner);)
            if (inner.number == 1) parse_tensor_type(inner.as_bytes(), info);
    }
    return info;
}

// What has no name cannot be meant, and a file of two bytes for each such thing would take memory out of all proportion.
template <class T>
T named(T value, const char* what, size_t index) {
    require(!value.name.empty(), "{} {} has no name", what, index);
    return value;
}

void parse_graph(std::string_view bytes, ModelProto& model) {
    WireReader reader(bytes);
    for (WireField field; reader.next(field);) {
        switch (field.number) {
            case 1: model.nodes.push_back(parse_node(field.as_bytes())); break;
            case 5: model.initializers.push_back(named(parse_tensor(field.as_bytes()), "initialiser", model.initializers.size())); break;
            case 11: model.inputs.push_back(named(parse_value(field.as_bytes()), "input", model.inputs.size())); break;
            case 12: model.outputs.push_back(named(parse_value(field.as_bytes()), "output", model.outputs.size())); break;
            case 15: fail("it has a sparse initialiser, which is not supported");
            default: break;
        }
    }
}

template <class T>
Tensor copied(const TensorProto& proto, DType type) {
    Tensor tensor(proto.shape, type);
    std::memcpy(tensor.data(), proto.raw.data(), proto.raw.size());
    return tensor;
}

template <class T>
Tensor widened(const TensorProto& proto) {
    Tensor tensor(proto.shape, DType::i64);
    const auto out = tensor.as<int64_t>();
    for (size_t i = 0; i < out.size(); ++i)  // NOLINTNEXTLINE(bugprone-signed-char-misuse): an int8 is a number
        out[i] = static_cast<int64_t>(load_little<T>(proto.raw.data() + i * sizeof(T)));
    return tensor;
}

// Bytes of one element; 0 for types that are not read.
int64_t width_of(DataType type) {
    switch (type) {
        case DataType::Uint8:
        case DataType::Int8:
        case DataType::Bool: return 1;
        case DataType::Uint16:
        case DataType::Int16:
        case DataType::Float16:
        case DataType::Bfloat16: return 2;
        case DataType::Float:
        case DataType::Int32:
        case DataType::Uint32: return 4;
        case DataType::Double:
        case DataType::Int64:
        case DataType::Uint64: return 8;
        default: return 0;
    }
}

Tensor read_raw(const TensorProto& proto) {
    switch (proto.type) {
        case DataType::Float: return copied<float>(proto, DType::f32);
        case DataType::Double: return copied<double>(proto, DType::f64);
        case DataType::Float16: return copied<uint16_t>(proto, DType::f16).to(DType::f32);
        case DataType::Bfloat16: return copied<uint16_t>(proto, DType::bf16).to(DType::f32);
        case DataType::Int64:
        case DataType::Uint64: return widened<int64_t>(proto);
        case DataType::Int32: return widened<int32_t>(proto);
        case DataType::Uint32: return widened<uint32_t>(proto);
        case DataType::Int16: return widened<int16_t>(proto);
        case DataType::Uint16: return widened<uint16_t>(proto);
        case DataType::Int8: return widened<int8_t>(proto);
        default: return widened<uint8_t>(proto);
    }
}

// Halves are written as the bits of 16-bit numbers in int32_data.
Tensor halves(const TensorProto& proto) {
    Tensor tensor(proto.shape, proto.type == DataType::Float16 ? DType::f16 : DType::bf16);
    for (size_t i = 0; i < proto.integers.size(); ++i) {
        const auto bits = static_cast<uint16_t>(proto.integers[i]);
        std::memcpy(tensor.data() + 2 * i, &bits, 2);
    }
    return tensor.to(DType::f32);
}

}  // namespace

std::string name_of(DataType type) { return std::string(kNames[static_cast<size_t>(type)]); }
bool is_real(DataType type) { return type == DataType::Float || type == DataType::Double; }
bool is_integer(DataType type) {
    switch (type) {
        case DataType::Uint8:
        case DataType::Int8:
        case DataType::Uint16:
        case DataType::Int16:
        case DataType::Int32:
        case DataType::Int64:
        case DataType::Bool:
        case DataType::Uint32:
        case DataType::Uint64: return true;
        default: return false;
    }
}

int64_t ModelProto::opset() const {
    const auto at = opsets.find("");
    return at == opsets.end() ? 1 : at->second;
}

TensorProto parse_tensor(std::string_view bytes) {
    TensorProto tensor;
    std::vector<int64_t> dims;
    int packed = 0;  // fields with elements as they lie
    const auto elements = [&](const WireField& field) {
        if (field.kind != WireField::Kind::Bytes || packed++ > 0 || !tensor.reals.empty()) return false;
        tensor.raw = field.bytes;
        tensor.whole_bytes = true;
        return true;
    };
    WireReader reader(bytes);
    for (WireField field; reader.next(field);) {
        switch (field.number) {
            case 1: append_ints(field, dims); break;
            case 2: tensor.type = type_of(field.as_int()); break;
            case 3: fail("a tensor comes in segments, which is not supported");
            case 4:
                if (!elements(field)) append_floats(field, tensor.reals);
                break;
            case 5:
            case 7:
            case 11: append_ints(field, tensor.integers); break;
            case 8: tensor.name = field.as_bytes(); break;
            case 9: require(elements(field), "tensor {} holds its elements twice", in_quotes(tensor.name)); break;
            case 10:
                if (!elements(field)) append_doubles(field, tensor.reals);
                break;
            case 14: tensor.external = field.as_int() == 1; break;
            default: break;
        }
        require(dims.size() <= static_cast<size_t>(Dims::kMost), "tensor {} has more than {} dims", in_quotes(tensor.name), Dims::kMost);
    }
    require(packed == 0 || tensor.reals.empty(), "tensor {} holds its elements in pieces", in_quotes(tensor.name));
    tensor.shape = shape_of(dims, tensor.name);
    return tensor;
}

ModelProto parse_model(std::string_view bytes) {
    ModelProto model;
    bool graph = false;
    WireReader reader(bytes);
    for (WireField field; reader.next(field);) {
        switch (field.number) {
            case 1: model.ir_version = field.as_int(); break;
            case 7:
                require(!graph, "it holds two graphs");
                graph = true;
                parse_graph(field.as_bytes(), model);
                break;
            case 8: {
                std::string_view domain;
                int64_t version = 1;
                WireReader opset(field.as_bytes());
                for (WireField inner; opset.next(inner);) {
                    if (inner.number == 1) domain = inner.as_bytes();
                    if (inner.number == 2) version = inner.as_int();
                }
                model.opsets[domain == "ai.onnx" ? "" : domain] = version;
                break;
            }
            case 14: {
                std::string key, value;
                WireReader entry(field.as_bytes());
                for (WireField inner; entry.next(inner);) (inner.number == 1 ? key : value) = inner.as_bytes();
                model.metadata[key] = value;
                break;
            }
            default: break;
        }
    }
    require(graph, "it holds no graph: it is no ONNX model");
    require(!model.opsets.empty(), "it does not say which operator set it uses: it is no ONNX model");
    return model;
}

Tensor read_tensor(const TensorProto& proto) {
    const std::string name = in_quotes(proto.name);
    require(!proto.external, "tensor {} lies in another file, which is not supported; save the model with its weights inside", name);
    const int64_t width = width_of(proto.type), count = numel(proto.shape);
    require(width > 0, "tensor {} holds {}, which is not supported", name, name_of(proto.type));
    if (proto.whole_bytes) {
        require(static_cast<int64_t>(proto.raw.size()) == count * width, "tensor {} holds {} bytes, expected {} for {} of {}", name,
                proto.raw.size(), count * width, to_string(proto.shape), name_of(proto.type));
        return read_raw(proto);
    }
    const bool real = is_real(proto.type);
    const auto found = static_cast<int64_t>(real ? proto.reals.size() : proto.integers.size());
    require(found == count, "tensor {} holds {} elements, expected {} for {}", name, found, count, to_string(proto.shape));
    if (proto.type == DataType::Double) return Tensor::of(proto.shape, proto.reals);
    if (proto.type == DataType::Float) return Tensor::of(proto.shape, proto.reals).to(DType::f32);
    if (proto.type == DataType::Float16 || proto.type == DataType::Bfloat16) return halves(proto);
    return Tensor::of(proto.shape, proto.integers);
}

}  // namespace convoy::onnx
