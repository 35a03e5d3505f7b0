// Where the processor cannot have tiles.
#include "base/error.h"
#include "kernels/cpu/vector/amx.h"

namespace convoy::cpu::vec {

bool amx_ready() { return false; }
void begin_tiles() { CONVOY_CHECK(false, "there are no tiles"); }
void end_tiles() { CONVOY_CHECK(false, "there are no tiles"); }
void split(const float*, const int64_t*, int64_t, int64_t, Half*, Half*) { CONVOY_CHECK(false, "there are no tiles"); }
void split_in_turns(const float*, const int64_t*, int64_t, Half*, Half*) { CONVOY_CHECK(false, "there are no tiles"); }
void split_transposed(const float*, const int64_t*, int64_t, Half*, Half*, int64_t, int64_t) { CONVOY_CHECK(false, "there are no tiles"); }
void store_rows(const float*, float*, const int64_t*) { CONVOY_CHECK(false, "there are no tiles"); }
void sum_tiles(const TileSum&) { CONVOY_CHECK(false, "there are no tiles"); }

}  // namespace convoy::cpu::vec
