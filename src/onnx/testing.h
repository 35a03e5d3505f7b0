// ONNX files made by hand, for tests.
#pragma once

#include <string>
#include <vector>

#include "onnx/emitter.h"
#include "onnx/import.h"

namespace convoy::onnx::testing {

class TestModel {
  public:
    explicit TestModel(int64_t opset = 13) : opset_(opset) {}

    TestModel& input(const std::string& name, const Shape& shape, DataType type = DataType::Float) {
        graph_.bytes(11, value_message(name, type, shape, false));
        return *this;
    }
    TestModel& output(const std::string& name) {
        graph_.bytes(12, value_message(name, DataType::Float, {}, false));
        return *this;
    }
    TestModel& node(const std::string& op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                    const Attributes& attributes = {}) {
        graph_.bytes(1, node_message({op, "the " + op, inputs, outputs, attributes}));
        return *this;
    }
    TestModel& weight(const std::string& name, const Shape& shape, const std::vector<float>& values) {
        return tensor(name, DataType::Float, shape, {reinterpret_cast<const char*>(values.data()), values.size() * 4});
    }
    TestModel& integers(const std::string& name, const std::vector<int64_t>& values) {
        return tensor(name, DataType::Int64, {static_cast<int64_t>(values.size())},
                      {reinterpret_cast<const char*>(values.data()), values.size() * 8});
    }
    TestModel& tensor(const std::string& name, DataType type, const Shape& shape, std::string_view raw) {
        graph_.bytes(5, tensor_head(name, type, shape, static_cast<int64_t>(raw.size())) + std::string(raw));
        return *this;
    }
    std::string bytes() const {
        WireWriter opset, model;
        opset.bytes(1, "");
        opset.number(2, opset_);
        model.number(1, 8);
        model.bytes(8, opset.text());
        model.bytes(7, graph_.text());
        return model.text();
    }
    // The graph as written; Error as import_graph throws it.
    Imported import(const ImportOptions& options = {}) const {
        const std::string text = bytes();
        return import_graph(parse_model(text), text, options);
    }

  private:
    int64_t opset_;
    WireWriter graph_;
};

}  // namespace convoy::onnx::testing
