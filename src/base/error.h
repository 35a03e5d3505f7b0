// Errors. `Error` is what a user or a caller can cause: its text names the thing, what was expected and what was found. `Bug` is a broken
// invariant of our own, raised by CONVOY_CHECK. Neither ends the process; only the program's main does.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace convoy {

class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

class Bug : public std::logic_error {
  public:
    using std::logic_error::logic_error;
};

// Throws Error with the formatted text.
template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
    throw Error(fmt::format(text, std::forward<Args>(args)...));
}

// Throws Error with the formatted text unless `holds`.
template <class... Args>
void require(bool holds, fmt::format_string<Args...> text, Args&&... args) {
    if (!holds) throw Error(fmt::format(text, std::forward<Args>(args)...));
}

[[noreturn]] void raise_bug(const char* file, int line, const char* condition, const std::string& text);

}  // namespace convoy

// An invariant of our own code. The text after the condition is a format string with its arguments.
#define CONVOY_CHECK(condition, ...)                                                                     \
    do {                                                                                                 \
        if (!(condition)) ::convoy::raise_bug(__FILE__, __LINE__, #condition, fmt::format(__VA_ARGS__)); \
    } while (false)
