// The name alone, for headers that pass JSON on, so that whoever includes them does not compile the library as well.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace convoy {

using Json = nlohmann::ordered_json;

}  // namespace convoy
