// CIFAR's binary files: the input is the train split of CIFAR-100, and two batches of CIFAR-10.
#include "dataset.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace convoy;
    const auto text = fuzz::text_of(data, size);
    for (const char* name : {"hundred/train.bin", "ten/data_batch_1.bin", "ten/data_batch_2.bin"}) fuzz::file(name, text);
    for (const char* folder : {"hundred", "ten"})
        fuzz::run(size, 16, [&] { fuzz::read_dataset(fuzz::directory() / folder, {Split::Train}); });
    return 0;
}
