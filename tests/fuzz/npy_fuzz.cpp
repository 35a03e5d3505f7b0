// NumPy's array files.
#include "data/npy.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace convoy;
    const auto path = fuzz::file("input.npy", fuzz::text_of(data, size));
    fuzz::run(size, 16, [&] { read_npy(path); });
    return 0;
}
