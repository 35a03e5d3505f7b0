// Safetensors files: the header, and every tensor that it lists.
#include "data/safetensors.h"

#include "base/error.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace convoy;
    const auto path = fuzz::file("input.safetensors", fuzz::text_of(data, size));
    fuzz::run(size, 64, [&] {  // the header is text: names, and a tree of values for each
        const SafetensorsFile file(path);
        for (const std::string& name : file.names()) {
            CONVOY_CHECK(file.contains(name), "{} is listed and not there", name);
            try {
                const Tensor tensor = file.read(name);
                CONVOY_CHECK(tensor.bytes() == static_cast<int64_t>(file.bytes(name).size()), "{} has other bytes than the file", name);
            } catch (const Error&) {  // a type that is not ours; the others can be read
            }
        }
    });
    return 0;
}
