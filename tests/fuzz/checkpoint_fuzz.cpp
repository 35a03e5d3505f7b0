// Checkpoints: a directory with checkpoint.json and state.safetensors. The input is both, with a zero byte between them.
#include "base/json.h"
#include "train/checkpoint.h"

#include "base/error.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace convoy;
    const auto text = fuzz::text_of(data, size);
    const size_t end = std::min(text.find('\0'), text.size());
    fuzz::file("checkpoint.json", text.substr(0, end));
    fuzz::file("state.safetensors", text.substr(std::min(end + 1, text.size())));
    fuzz::run(size, 128, [&] {
        for (const bool verify : {false, true}) {
            const Checkpoint checkpoint = read_checkpoint(fuzz::directory(), verify);
            CONVOY_CHECK(config_from_json(to_json(checkpoint.config)) == checkpoint.config, "a configuration that does not round-trip");
        }
    });
    return 0;
}
