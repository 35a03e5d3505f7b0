#include "onnx/emitter.h"

namespace convoy::onnx {

namespace {

enum AttributeType : int64_t { kFloat = 1, kInt = 2, kString = 3, kInts = 7 };

// An attribute's name, its value as `write` puts it, and its type.
template <class Fn>
std::string attribute_message(std::string_view name, AttributeType type, const Fn& write) {
    WireWriter w;
    w.bytes(1, name);
    write(w);
    w.number(20, type);
    return w.text();
}

}  // namespace

Attributes& Attributes::integer(std::string_view name, int64_t value) {
    messages_.push_back(attribute_message(name, kInt, [&](WireWriter& w) { w.number(3, value); }));
    return *this;
}

Attributes& Attributes::integers(std::string_view name, const std::vector<int64_t>& values) {
    messages_.push_back(attribute_message(name, kInts, [&](WireWriter& w) {
        for (const int64_t v : values) w.number(8, v);
    }));
    return *this;
}

Attributes& Attributes::real(std::string_view name, double value) {
    messages_.push_back(attribute_message(name, kFloat, [&](WireWriter& w) { w.real(2, static_cast<float>(value)); }));
    return *this;
}

Attributes& Attributes::text(std::string_view name, std::string_view value) {
    messages_.push_back(attribute_message(name, kString, [&](WireWriter& w) { w.bytes(4, value); }));
    return *this;
}

std::string node_message(const NodeText& node) {
    WireWriter w;
    for (const std::string& input : node.inputs) w.bytes(1, input);
    for (const std::string& output : node.outputs) w.bytes(2, output);
    w.bytes(3, node.name);
    w.bytes(4, node.op);
    for (const std::string& attribute : node.attributes.messages()) w.bytes(5, attribute);
    return w.text();
}

std::string value_message(std::string_view name, DataType type, const Shape& shape, bool open_batch) {
    WireWriter dims;
    for (int d = 0; d < shape.size(); ++d) {
        WireWriter dim;
        if (d == 0 && open_batch)
            dim.bytes(2, "batch");
        else
            dim.number(1, shape[d]);
        dims.bytes(1, dim.text());
    }
    WireWriter tensor, outer, value;
    tensor.number(1, static_cast<int64_t>(type));
    tensor.bytes(2, dims.text());
    outer.bytes(1, tensor.text());
    value.bytes(1, name);
    value.bytes(2, outer.text());
    return value.text();
}

std::string tensor_head(std::string_view name, DataType type, const Shape& shape, int64_t bytes) {
    WireWriter w;
    for (const int64_t size : shape) w.number(1, size);
    w.number(2, static_cast<int64_t>(type));
    w.bytes(8, name);
    w.begin_bytes(9, static_cast<uint64_t>(bytes));
    return w.text();
}

}  // namespace convoy::onnx
