// What this build was made of. Written by CMake from what it found.
#pragma once

#include <string>
#include <vector>

namespace convoy {

struct OptionalLibrary {
    std::string name;
    std::string version;  // "" when it is not in this build
    std::string use;      // what it is for
};

struct BuildInfo {
    std::string version, compiler, build_type;
    std::vector<OptionalLibrary> libraries;
};

const BuildInfo& build_info();

}  // namespace convoy
