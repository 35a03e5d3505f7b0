// HDF5 files, for a whole set and for a sample. What is packed may be 1032 times as large, of single bytes, which become numbers of four.
#include "dataset.h"
#include "fuzz.h"

// The library itself loses some memory over damaged files; and looking for leaks after each of them costs more than reading it.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }  // NOLINT(bugprone-reserved-identifier): the sanitizer's name

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace convoy;
    const auto text = fuzz::text_of(data, size);
    for (const char* name : {"set/train.h5", "set/test.h5", "samples/train/0.h5", "samples/test/0.h5"}) fuzz::file(name, text);
    for (const char* folder : {"set", "samples"})
        fuzz::run(size, 8 * 1032, [&] { fuzz::read_dataset(fuzz::directory() / folder, {Split::Train}); });
    return 0;
}
