#include "base/log.h"

#include <cstdio>

namespace convoy {

void log_line(std::string_view level, std::string_view text) {
    const std::string line = fmt::format("{}{}\n", level, text);
    std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace convoy
