#include "base/log.h"

#include <cstdio>
#include <mutex>
#include <set>

namespace convoy {

void log_line(std::string_view level, std::string_view text) {
    const std::string line = fmt::format("{}{}\n", level, text);
    std::fwrite(line.data(), 1, line.size(), stderr);
}

bool first_mention(const std::string& subject) {
    static std::mutex mutex;
    static std::set<std::string> mentioned;
    const std::lock_guard lock(mutex);
    return mentioned.insert(subject).second;
}

}  // namespace convoy
