// Fields of what another process has sent, which may be anything. Internal to this module.
#pragma once

#include <string>

#include "base/json.h"

namespace convoy {

// Empty when it is not there or no text.
inline std::string text_in(const Json& json, const char* name) {
    return json.is_object() && json.contains(name) && json[name].is_string() ? json[name].get<std::string>() : "";
}

// -1 when it is not there or no whole number.
inline int number_in(const Json& json, const char* name) {
    return json.is_object() && json.contains(name) && json[name].is_number_integer() ? json[name].get<int>() : -1;
}

}  // namespace convoy
