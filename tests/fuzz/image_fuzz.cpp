// Pictures in folders, as JPEG or PNG: what a file holds is seen from its first bytes.
#include "dataset.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace convoy;
    const auto text = fuzz::text_of(data, size);
    for (const char* name : {"set/train/a/0.jpg", "set/test/a/0.png"}) fuzz::file(name, text);
    fuzz::run(size, 8192, [&] { fuzz::read_dataset(fuzz::directory() / "set"); });
    return 0;
}
