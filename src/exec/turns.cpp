#include "exec/turns.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "exec/share.h"

namespace convoy {

// A lock on a file that has no name any more once everybody has it open. Each rank opens it for itself, since a lock belongs to an opened file: so ranks may be
// processes or threads.
Turns::Turns(Link* link) {
    if (!link || link->size() == 1) return;
    std::string path;
    if (link->rank() == 0) {
        path = (std::filesystem::temp_directory_path() / "convoy-turns-XXXXXX").string();
        file_ = ::mkstemp(path.data());
        if (file_ < 0) path.clear();
    }
    path = share_text(link, 0, path);
    if (link->rank() > 0 && !path.empty()) file_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    link->everyone().barrier();
    if (link->rank() == 0 && !path.empty()) ::unlink(path.c_str());
}

Turns::~Turns() {
    if (file_ >= 0) ::close(file_);
}

Turns::Turn::Turn(const Turns& turns) : file_(turns.file_) {
    if (file_ >= 0) ::flock(file_, LOCK_EX);
}

Turns::Turn::~Turn() {
    if (file_ >= 0) ::flock(file_, LOCK_UN);
}

}  // namespace convoy
