// WebDataset shards: tar archives with pictures and labels.
#include "dataset.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace convoy;
    const auto text = fuzz::text_of(data, size);
    for (const char* name : {"set/train-0.tar", "set/test-0.tar"}) fuzz::file(name, text);
    fuzz::run(size, 8192, [&] { fuzz::read_dataset(fuzz::directory() / "set"); });
    return 0;
}
