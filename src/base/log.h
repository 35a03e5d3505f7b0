// Messages for a person, on standard error, each a whole line.
#pragma once

#include <string>
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

// Whether nobody has asked about this subject before; threads may ask at once.
bool first_mention(const std::string& subject);

// Once about each subject: several ranks and several programs come upon the same.
template <class... Args>
void warn_once(const std::string& subject, fmt::format_string<Args...> text, Args&&... args) {
    if (first_mention(subject)) warn(text, std::forward<Args>(args)...);
}

}  // namespace convoy
