#include "base/error.h"

#include <cstring>

namespace convoy {

void raise_bug(const char* file, int line, const char* condition, const std::string& text) {
    const char* name = std::strstr(file, "src/");
    throw Bug(fmt::format("internal error at {}:{}: {} (expected {})", name ? name : file, line, text, condition));
}

}  // namespace convoy
