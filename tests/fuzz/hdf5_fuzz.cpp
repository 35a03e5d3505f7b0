// HDF5 files, for a whole set and for a sample.
#include "dataset.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace convoy;
    const auto text = fuzz::text_of(data, size);
    for (const char* name :
         {"set/train.h5", "set/test.h5", "samples/train/0.h5", "samples/train/1.h5", "samples/test/0.h5", "samples/test/1.h5"})
        fuzz::file(name, text);
    for (const char* folder : {"set", "samples"}) fuzz::run(size, 1024, [&] { fuzz::read_dataset(fuzz::directory() / folder); });
    return 0;
}
