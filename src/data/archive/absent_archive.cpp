// For builds without libarchive.
#include "base/error.h"
#include "data/archive/archive.h"

namespace convoy {

bool has_archives() { return false; }

Archive::Archive(const std::filesystem::path& path) : file_(path) {
    fail("{}: this build cannot read tar and npz files; install libarchive (Debian: libarchive-dev) and build again", path.string());
}

}  // namespace convoy
