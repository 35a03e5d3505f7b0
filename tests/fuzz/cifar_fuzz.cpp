// CIFAR's binary files: the input is both splits of CIFAR-100, and of CIFAR-10 all batches.
#include "dataset.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace convoy;
    const auto text = fuzz::text_of(data, size);
    for (const char* name : {"hundred/train.bin", "hundred/test.bin", "ten/data_batch_1.bin", "ten/data_batch_2.bin",
                             "ten/data_batch_3.bin", "ten/data_batch_4.bin", "ten/data_batch_5.bin", "ten/test_batch.bin"})
        fuzz::file(name, text);
    for (const char* folder : {"hundred", "ten"}) fuzz::run(size, 64, [&] { fuzz::read_dataset(fuzz::directory() / folder); });
    return 0;
}
