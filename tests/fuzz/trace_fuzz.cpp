// Traces as JSON.
#include "base/trace.h"

#include "base/error.h"
#include "base/parse_json.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace convoy;
    fuzz::run(size, 128, [&] {
        const Json json = parse_json(fuzz::text_of(data, size), "input");
        const Trace trace = trace_from_chrome(json);
        CONVOY_CHECK(trace_from_chrome(chrome_trace(trace)) == trace, "a trace that does not round-trip");
    });
    return 0;
}
