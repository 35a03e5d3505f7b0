// Reading JSON that others wrote and that may lack anything: a field of the wrong type is a field that is not there.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"

namespace convoy::fields {

inline std::optional<double> number(const Json& json, const char* name) {
    if (!json.is_object() || !json.contains(name) || !json[name].is_number()) return std::nullopt;
    return json[name].get<double>();
}
inline std::string text(const Json& json, const char* name) {
    if (!json.is_object() || !json.contains(name) || !json[name].is_string()) return "";
    return json[name].get<std::string>();
}
// An empty list where there is none.
inline const Json& list(const Json& json, const char* name) {
    static const Json kNone = Json::array();
    return json.is_object() && json.contains(name) && json[name].is_array() ? json[name] : kNone;
}
inline const Json& object(const Json& json, const char* name) {
    static const Json kNone = Json::object();
    return json.is_object() && json.contains(name) && json[name].is_object() ? json[name] : kNone;
}
inline int64_t whole(const Json& json, const char* name, int64_t otherwise = 0) {
    const auto value = number(json, name);
    return value ? static_cast<int64_t>(*value) : otherwise;
}

}  // namespace convoy::fields
