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

}  // namespace convoy
