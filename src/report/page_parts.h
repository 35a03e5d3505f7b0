// The files of web/ as they were when the program was built. The source is made by CMake.
#pragma once

#include <string_view>

namespace convoy {

struct PageParts {
    std::string_view page, style, script;
};
PageParts page_parts();

}  // namespace convoy
