#include "base/file.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

namespace convoy {

namespace {

[[noreturn]] void fail_on(const std::filesystem::path& path, const char* action) {
    fail("cannot {} {}: {}", action, path.string(), std::strerror(errno));
}

void make_directory_of(const std::filesystem::path& path) {
    std::error_code failed;
    if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), failed);
    require(!failed, "cannot make {}: {}", path.parent_path().string(), failed.message());
}

}  // namespace

FileLock::FileLock(const std::filesystem::path& path, std::optional<std::chrono::milliseconds> limit) {
    make_directory_of(path);
    descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor_ < 0) fail_on(path, "make the lock");
    constexpr std::chrono::milliseconds kAgain{10};
    const auto end = limit ? std::chrono::steady_clock::now() + *limit : std::chrono::steady_clock::time_point::max();
    while (::flock(descriptor_, limit ? LOCK_EX | LOCK_NB : LOCK_EX) != 0) {
        if (errno == EINTR) continue;
        if (errno != EWOULDBLOCK) return;  // a file system without locks: everybody has it
        if (std::chrono::steady_clock::now() >= end) {
            held_ = false;
            return;
        }
        std::this_thread::sleep_for(kAgain);
    }
}

FileLock::~FileLock() { ::close(descriptor_); }

std::string read_file(const std::filesystem::path& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) fail_on(path, "open");
    struct stat status {};
    if (::fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
        ::close(descriptor);
        fail("cannot read {}: it is a directory", path.string());
    }
    std::string bytes(static_cast<size_t>(status.st_size > 0 ? status.st_size : 0), '\0');
    size_t used = 0;
    while (true) {
        if (used == bytes.size()) bytes.resize(bytes.size() + 65536);
        const ssize_t got = ::read(descriptor, bytes.data() + used, bytes.size() - used);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            ::close(descriptor);
            fail_on(path, "read");
        }
        if (got == 0) break;
        used += static_cast<size_t>(got);
    }
    ::close(descriptor);
    bytes.resize(used);
    return bytes;
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
    struct stat status {};
    const bool there = ::stat(path_.c_str(), &status) == 0;
    if (there && S_ISDIR(status.st_mode)) fail("cannot write {}: it is a directory", path_.string());
    if (there && !S_ISREG(status.st_mode)) {
        descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
        if (descriptor_ < 0) fail_on(path_, "write");
        return;
    }
    std::error_code failed;
    if (there && std::filesystem::is_symlink(path_, failed)) path_ = std::filesystem::canonical(path_);
    temporary_ = path_;
    temporary_ += fmt::format(".tmp{}", ::getpid());
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (descriptor_ < 0) fail_on(path_, "write");
}

AtomicFile::~AtomicFile() {
    if (descriptor_ < 0) return;
    ::close(descriptor_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) fail_on(path_, "write");
        bytes.remove_prefix(static_cast<size_t>(put));
    }
}

void AtomicFile::commit() {
    if (temporary_.empty()) {
        const int descriptor = descriptor_;
        descriptor_ = -1;
        if (::close(descriptor) != 0) fail_on(path_, "write");
        return;
    }
    if (::fsync(descriptor_) != 0) fail_on(path_, "write");
    const int descriptor = descriptor_;
    descriptor_ = -1;
    if (::close(descriptor) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
        const int cause = errno;
        ::unlink(temporary_.c_str());
        errno = cause;
        fail_on(path_, "write");
    }
    sync_directory(path_.has_parent_path() ? path_.parent_path() : ".");
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
    AtomicFile file(path);
    file.write(bytes);
    file.commit();
}

void update_file(const std::filesystem::path& path, const std::function<std::string(const std::optional<std::string>& held)>& change) {
    std::filesystem::path beside = path;
    beside += ".lock";
    const FileLock lock(beside);
    std::error_code failed;
    std::optional<std::string> held;
    try {
        if (std::filesystem::exists(path, failed)) held = read_file(path);
    } catch (const Error&) {
        held.reset();
    }
    const std::string bytes = change(held);
    if (held != bytes) write_file(path, bytes);
}

void expect_writable(const std::filesystem::path& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))
        const AtomicFile probe(path);
    else if (::access(path.c_str(), W_OK) != 0)
        fail_on(path, "write");
}

void sync_directory(const std::filesystem::path& directory) {
    const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) fail_on(directory, "open");
    const int result = ::fsync(descriptor);
    ::close(descriptor);
    if (result != 0 && errno != EINVAL) fail_on(directory, "sync");
}

std::filesystem::path cache_directory() {
    const auto set = [](const char* name) {
        const char* const value = std::getenv(name);
        return value && *value ? value : nullptr;
    };
    if (const char* own = set("CONVOY_CACHE")) return own;
    if (const char* users = set("XDG_CACHE_HOME")) return std::filesystem::path(users) / "convoy";
    if (const char* home = set("HOME")) return std::filesystem::path(home) / ".cache" / "convoy";
    fail("there is no place to keep measurements: set CONVOY_CACHE to a directory (neither XDG_CACHE_HOME nor HOME is set)");
}

}  // namespace convoy
