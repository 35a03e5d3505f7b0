// An ONNX file as it is written: nodes, attributes, tensors, with names and sizes checked but no meaning given to any op. All texts and weights are
// views into the file's bytes, so that reading a file takes memory for its nodes and no more, whatever the file claims.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace convoy::onnx {

enum class DataType : int32_t {
    Undefined = 0,
    Float = 1,
    Uint8 = 2,
    Int8 = 3,
    Uint16 = 4,
    Int16 = 5,
    Int32 = 6,
    Int64 = 7,
    String = 8,
    Bool = 9,
    Float16 = 10,
    Double = 11,
    Uint32 = 12,
    Uint64 = 13,
    Complex64 = 14,
    Complex128 = 15,
    Bfloat16 = 16
};
std::string name_of(DataType type);
bool is_real(DataType type);     // Float, Double
bool is_integer(DataType type);  // whole numbers and Bool

struct TensorProto {
    std::string_view name;
    Shape shape;
    DataType type = DataType::Undefined;
    std::string_view raw;           // raw_data, or packed float_data or double_data: the elements as they lie
    bool whole_bytes = false;       // whether `raw` holds the elements
    std::vector<double> reals;      // elements that were written one by one
    std::vector<int64_t> integers;  // int32_data, int64_data, uint64_data
    bool external = false;          // the elements are in another file
};

struct Attribute {
    std::string_view name;
    int type = 0;  // of AttributeProto: 1 float, 2 int, 3 string, 4 tensor, 5 graph, 6 floats, 7 ints, 8 strings
    float f = 0;
    int64_t i = 0;
    std::string_view s;
    std::vector<TensorProto> tensor;  // none or one
    std::vector<int64_t> ints;
    std::vector<double> floats;
};

struct Node {
    std::string_view op, name, domain;
    std::vector<std::string_view> inputs, outputs;  // "" stands for one that is left out
    std::vector<Attribute> attributes;
};

struct Dimension {
    int64_t size = -1;      // -1: not said
    std::string_view name;  // of a size that is not fixed
};
struct ValueInfo {
    std::string_view name;
    DataType type = DataType::Undefined;  // Undefined: no tensor
    bool has_shape = false;
    std::vector<Dimension> shape;
};

struct ModelProto {
    int64_t ir_version = 0;
    std::map<std::string_view, int64_t> opsets;  // by domain; "" is ONNX's own
    std::map<std::string, std::string> metadata;
    std::vector<Node> nodes;
    std::vector<TensorProto> initializers;
    std::vector<ValueInfo> inputs, outputs;

    int64_t opset() const;
};

// Error says what is wrong with the bytes; the caller names the file. The views stay valid as long as the bytes.
ModelProto parse_model(std::string_view bytes);
TensorProto parse_tensor(std::string_view bytes);

// The elements: integers and Bool as i64, Float as f32, Double as f64, Float16 and Bfloat16 as f32. Error when the type is another, when the elements are
// in another file, or when there are not as many as the shape says.
Tensor read_tensor(const TensorProto& proto);

}  // namespace convoy::onnx
