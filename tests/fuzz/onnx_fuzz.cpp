// ONNX models: parsed, and imported for evaluation and for training. An op of the graph takes about a KiB, and a node of 35 bytes may stand for eight of
// them (MeanVarianceNormalization); most have 20 to 40 bytes for one.
#include "onnx/import.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace convoy;
    const auto bytes = fuzz::text_of(data, size);
    for (const auto mode : {onnx::NodeMode::AsWritten, onnx::NodeMode::Training})
        fuzz::run(size, 288, [&] { onnx::import_graph(onnx::parse_model(bytes), bytes, {.mode = mode}); });
    return 0;
}
