#include "base/parse_json.h"

#include "base/error.h"

namespace convoy {

Json parse_json(std::string_view text, const std::string& where) {
    const auto within_depth = [&](int depth, Json::parse_event_t, Json&) {
        require(depth <= kMostJsonDepth, "{}: it is nested more than {} deep", where, kMostJsonDepth);
        return true;
    };
    Json json = Json::parse(text, within_depth, false);
    require(!json.is_discarded(), "{}: expected JSON, found something else ({} bytes)", where, text.size());
    return json;
}

std::string fault_of(const Json::exception& error) {
    const std::string_view text = error.what();
    const size_t end = text.find("] ");
    return std::string(text.rfind("[json.exception.", 0) == 0 && end != std::string_view::npos ? text.substr(end + 2) : text);
}

}  // namespace convoy
