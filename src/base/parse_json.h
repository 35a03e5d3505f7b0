// Text that others wrote as JSON.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace convoy {

// Lists and objects inside each other, at most: what walks through a value does so by recursion.
inline constexpr int kMostJsonDepth = 64;

// Error, beginning with `where`, when the text is no JSON or is nested deeper than kMostJsonDepth.
Json parse_json(std::string_view text, const std::string& where);

// What is wrong with a document that is JSON but not as expected, without the library's name and number for it.
std::string fault_of(const Json::exception& error);

}  // namespace convoy
