// ONNX models: parsed, and imported for evaluation and for training.
#include "onnx/import.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace convoy;
    const auto bytes = fuzz::text_of(data, size);
    for (const auto mode : {onnx::NodeMode::AsWritten, onnx::NodeMode::Training})
        fuzz::run(size, 512, [&] { onnx::import_graph(onnx::parse_model(bytes), bytes, {.mode = mode}); });
    return 0;
}
