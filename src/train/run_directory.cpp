#include "train/run_directory.h"

#include <cerrno>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"

namespace convoy {

namespace {

namespace fs = std::filesystem;

void create(const fs::path& directory) {
    std::error_code failed;
    fs::create_directories(directory, failed);
    require(!failed, "cannot create the run directory {}: {}", directory.string(), failed.message());
}

// What a killed AtomicFile left: config.json.tmp123.
void remove_leftovers(const fs::path& directory) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(directory, ignored)) {
        const std::string extension = entry.path().extension().string();
        if (extension.rfind(".tmp", 0) == 0 && extension.find_first_not_of("0123456789", 4) == std::string::npos)
            fs::remove(entry.path(), ignored);
    }
}

}  // namespace

RunDirectory::RunDirectory(const fs::path& path) : path_(path) {
    create(path_ / "checkpoints");
    const fs::path lock = path_ / "lock";
    lock_ = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    require(lock_ >= 0, "the run directory {} cannot be written: {}", path_.string(), std::strerror(errno));
    // A file system without locks is no reason to refuse.
    if (::flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        ::close(lock_);
        fail("another process is training in the run directory {}", path_.string());
    }
    try {
        AtomicFile(path_ / "checkpoints" / ".probe").write("x");
        AtomicFile(path_ / ".probe").write("x");
    } catch (const Error& error) {
        ::close(lock_);
        fail("the run directory {} cannot be written: {}", path_.string(), error.what());
    }
    remove_leftovers(path_);
}

RunDirectory::~RunDirectory() { ::close(lock_); }

}  // namespace convoy
