// The name alone, for headers that pass JSON on: the library itself costs every file that includes it about a second.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace convoy {

using Json = nlohmann::ordered_json;

}  // namespace convoy
