// "Did you mean": the nearest of the known names to one that is not known.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace convoy {

// The known name nearest to `word` in edit distance, or "" when none is near enough to be worth saying.
std::string nearest(std::string_view word, std::span<const std::string> known);

// `; did you mean "resnet18"?` or "", to append to an error's text.
std::string did_you_mean(std::string_view word, std::span<const std::string> known);

}  // namespace convoy
