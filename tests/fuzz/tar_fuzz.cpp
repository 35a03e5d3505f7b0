// WebDataset shards: tar archives with pictures and labels. They may be compressed, and so may be the pictures in them.
#include "dataset.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace convoy;
    const auto text = fuzz::text_of(data, size);
    for (const char* name : {"set/train-0.tar", "set/test-0.tar"}) fuzz::file(name, text);
    fuzz::run(size, 3 * 8 * 1032, [&] { fuzz::read_dataset(fuzz::directory() / "set", {Split::Train}, {16, 16}); });
    return 0;
}
