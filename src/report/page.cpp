#include "report/page.h"

#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "report/page_parts.h"

namespace convoy {

namespace {

void put(std::string& page, std::string_view mark, std::string_view text) {
    const size_t at = page.find(mark);
    CONVOY_CHECK(at != std::string::npos, "the page has no {}", mark);
    page.replace(at, mark.size(), text);
}

// Inside a script element nothing may look like its end.
std::string escaped_json(const Json& data) {
    std::string text;
    for (const char c : data.dump(-1, ' ', false, Json::error_handler_t::replace)) {
        if (c == '<')
            text += "\\u003c";
        else
            text += c;
    }
    return text;
}

std::string escaped_text(std::string_view raw) {
    std::string text;
    for (const char c : raw) {
        if (c == '<' || c == '&')
            text += c == '<' ? "&lt;" : "&amp;";
        else
            text += c;
    }
    return text;
}

}  // namespace

std::string page_of(const Json& data) {
    const PageParts parts = page_parts();
    std::string page(parts.page);
    // Last to first, so that what is put in is not searched.
    put(page, "@SCRIPT@", parts.script);
    put(page, "@DATA@", escaped_json(data));
    put(page, "@STYLE@", parts.style);
    put(page, "@TITLE@", escaped_text(data.value("title", "") + " - Convoy"));
    return page;
}

}  // namespace convoy
