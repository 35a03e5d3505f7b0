// Messages for a person, on standard error, each a whole line.
#pragma once

#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace convoy {

void log_line(std::string_view level, std::string_view text);

template <class... Args>
void note(fmt::format_string<Args...> text, Args&&... args) {
    log_line("", fmt::format(text, std::forward<Args>(args)...));
}

template <class... Args>
void warn(fmt::format_string<Args...> text, Args&&... args) {
    log_line("warning: ", fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace convoy
