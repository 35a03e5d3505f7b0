// An ONNX graph being written, node by node. Internal to this folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "onnx/file.h"
#include "onnx/wire.h"
#include "tensor/tensor.h"

namespace convoy::onnx {

// The attributes of a node, in the order in which they are added.
class Attributes {
  public:
    Attributes& integer(std::string_view name, int64_t value);
    Attributes& integers(std::string_view name, const std::vector<int64_t>& values);
    Attributes& integers(std::string_view name, const Dims& values) {
        return integers(name, std::vector<int64_t>(values.begin(), values.end()));
    }
    Attributes& real(std::string_view name, double value);
    Attributes& text(std::string_view name, std::string_view value);
    const std::vector<std::string>& messages() const { return messages_; }

  private:
    std::vector<std::string> messages_;
};

struct NodeText {
    std::string op, name;
    std::vector<std::string> inputs, outputs;
    Attributes attributes = {};
};
std::string node_message(const NodeText& node);

// A value_info: its name, type and shape, of which the first size is left open when `open_batch`.
std::string value_message(std::string_view name, DataType type, const Shape& shape, bool open_batch);

// A tensor up to the point where its raw elements follow: those are the last field.
std::string tensor_head(std::string_view name, DataType type, const Shape& shape, int64_t bytes);

}  // namespace convoy::onnx
