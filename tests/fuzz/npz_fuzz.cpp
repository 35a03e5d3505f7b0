// NumPy's archives of arrays. They may be compressed, 1032 times at most.
#include "dataset.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace convoy;
    const auto text = fuzz::text_of(data, size);
    for (const char* name : {"set/train.npz", "set/test.npz", "both.npz"}) fuzz::file(name, text);
    fuzz::run(size, 4 * 1032, [&] { fuzz::read_dataset(fuzz::directory() / "set", {Split::Train}); });
    fuzz::run(size, 4 * 1032, [&] { fuzz::read_dataset(fuzz::directory() / "both.npz", {Split::Train, Split::Test}); });
    return 0;
}
