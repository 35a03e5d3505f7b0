#include "train/fields.h"

#include <algorithm>
#include <limits>

#include "base/json.h"
#include "base/suggest.h"

namespace convoy {

void put(Json& json, const char* name, const std::optional<double>& value) {
    if (value) json[name] = *value;
}

Fields::Fields(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    require(json.is_object(), "{}: expected a JSON object, found {}", where_, json.type_name());
}

const Json* Fields::find(const char* name) {
    if (std::find(known_.begin(), known_.end(), name) == known_.end()) known_.emplace_back(name);
    const auto at = json_.find(name);
    return at == json_.end() ? nullptr : &*at;
}

void Fields::refuse(const char* name, const char* expected, const Json& found) const {
    std::string text = found.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (text.size() > 60) text = text.substr(0, 57) + "...";
    fail("{}: expected {}, found {}", place(name), expected, text);
}

void Fields::read(const char* name, bool& value) {
    const Json* json = find(name);
    if (!json) return;
    if (!json->is_boolean()) refuse(name, "true or false", *json);
    value = json->get<bool>();
}

void Fields::read(const char* name, int64_t& value) {
    const Json* json = find(name);
    if (!json) return;
    const bool fits =
        json->is_number_unsigned() ? json->get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()} : json->is_number_integer();
    if (!fits) refuse(name, "an integer", *json);
    value = json->get<int64_t>();
}

void Fields::read(const char* name, int& value) {
    int64_t wide = value;
    read(name, wide);
    if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max())
        refuse(name, "an integer below 2^31", *find(name));
    value = static_cast<int>(wide);
}

void Fields::read(const char* name, uint64_t& value) {
    const Json* json = find(name);
    if (!json) return;
    if (!json->is_number_unsigned() && !(json->is_number_integer() && json->get<int64_t>() >= 0))
        refuse(name, "an integer that is not negative", *json);
    value = json->get<uint64_t>();
}

void Fields::read(const char* name, double& value) {
    const Json* json = find(name);
    if (!json) return;
    if (!json->is_number()) refuse(name, "a number", *json);
    value = json->get<double>();
}

void Fields::read(const char* name, std::string& value) {
    const Json* json = find(name);
    if (!json) return;
    if (!json->is_string()) refuse(name, "a text", *json);
    value = json->get<std::string>();
}

void Fields::read(const char* name, std::optional<double>& value) {
    const Json* json = find(name);
    if (!json) return;
    value.reset();
    if (json->is_null()) return;
    double number = 0;
    read(name, number);
    value = number;
}

void Fields::read(const char* name, std::vector<int64_t>& value) {
    const Json* json = find(name);
    if (!json) return;
    if (!json->is_array() || !std::all_of(json->begin(), json->end(), [](const Json& j) { return j.is_number_integer(); }))
        refuse(name, "a list of integers", *json);
    value = json->get<std::vector<int64_t>>();
}

void Fields::read(const char* name, std::vector<std::string>& value) {
    const Json* json = find(name);
    if (!json) return;
    if (!json->is_array() || !std::all_of(json->begin(), json->end(), [](const Json& j) { return j.is_string(); }))
        refuse(name, "a list of texts", *json);
    value = json->get<std::vector<std::string>>();
}

void Fields::require_field(const char* name) const { require(json_.contains(name), "{}: it is missing", place(name)); }

void Fields::finish() const {
    for (const auto& item : json_.items())
        require(std::find(known_.begin(), known_.end(), item.key()) != known_.end(), "{}: unknown field \"{}\"{}", where_, item.key(),
                did_you_mean(item.key(), known_));
}

}  // namespace convoy
