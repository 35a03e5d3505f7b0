// Pictures in folders, as JPEG or PNG: what a file holds is seen from its first bytes. A block of 64 pixels in a JPEG takes a bit or more, a pixel in a
// PNG an eighth of a byte that was packed 1032 times or less; decoded, a pixel is three bytes, and up to six more while a JPEG is progressive.
#include "dataset.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace convoy;
    const auto text = fuzz::text_of(data, size);
    for (const char* name : {"set/train/a/0.jpg", "set/test/a/0.jpg"}) fuzz::file(name, text);
    const bool png = text.starts_with('\x89');
    fuzz::run(size, png ? 3 * 8 * 1032 : 9 * 512, [&] { fuzz::read_dataset(fuzz::directory() / "set", {Split::Train}, {16, 16}); });
    return 0;
}
