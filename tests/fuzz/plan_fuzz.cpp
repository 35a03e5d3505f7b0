// Plans as JSON: what is accepted must be the same after writing and reading it again.
#include "program/plan.h"

#include "base/error.h"
#include "base/parse_json.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace convoy;
    fuzz::run(size, 128, [&] {
        const Json json = parse_json(fuzz::text_of(data, size), "input");
        const Plan plan = plan_from_json(json);
        CONVOY_CHECK(plan_from_json(to_json(plan)) == plan, "a plan that does not round-trip");
    });
    return 0;
}
