// IDX files, gzipped or not. Deflate expands at most 1032 times; the tensor is a copy of that, and a growing buffer may be twice as large.
#include "data/idx.h"

#include "data/gzip.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace convoy;
    const auto text = fuzz::text_of(data, size);
    const auto path = fuzz::file("input", text);
    fuzz::run(size, is_gzip(text) ? 4 * 1032 : 16, [&] { read_idx(path); });
    return 0;
}
