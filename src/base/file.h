// Files: whole reads, and writes that either happen entirely or not at all.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace convoy {

// The whole file as bytes; Error when it cannot be read.
std::string read_file(const std::filesystem::path& path);

// A file being written under a temporary name beside its place. `commit` makes it durable and moves it into place in one step; without
// it the temporary file is removed and the old file, if any, is untouched. Where the path is a link, the file that it leads to is
// replaced; a device or a pipe is written to as it is, because a rename would put a file in its place. Every failure (full disk, no
// permission, a directory) is an Error.
class AtomicFile {
  public:
    explicit AtomicFile(std::filesystem::path path);
    ~AtomicFile();
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    void write(std::string_view bytes);
    void commit();

  private:
    std::filesystem::path path_, temporary_;  // no temporary file for a device or a pipe
    int descriptor_ = -1;
};

// Replaces `path` by `bytes`, atomically and durably.
void write_file(const std::filesystem::path& path, std::string_view bytes);

// A lock that processes and threads take in turns: a file, which is made, with its directory, and stays. Freed when its process ends, however that comes. Error
// when the file cannot be made.
class FileLock {
  public:
    // Waits for no longer than `limit`, where there is one.
    explicit FileLock(const std::filesystem::path& path, std::optional<std::chrono::milliseconds> limit = std::nullopt);
    ~FileLock();
    FileLock(const FileLock&) = delete;
    FileLock& operator=(const FileLock&) = delete;

    // Whether it was had in time.
    bool held() const { return held_; }

  private:
    int descriptor_ = -1;
    bool held_ = true;
};

// Replaces a file that many processes and threads may change at once, under a lock (a file of its own beside it), by what `change` makes of what it holds.
// That is nothing when there is no such file or it cannot be read. What stays the same is not written. Makes the directory. Error when it cannot be written.
void update_file(const std::filesystem::path& path, const std::function<std::string(const std::optional<std::string>& held)>& change);

// Error when nothing can be written to `path`, for commands that work long before they write. A device or a pipe is not opened.
void expect_writable(const std::filesystem::path& path);

// Where measurements are kept between runs: $CONVOY_CACHE, or convoy/ in the user's cache directory. Not made here. Error when there is none.
std::filesystem::path cache_directory();

// Makes renames and creations inside `directory` durable.
void sync_directory(const std::filesystem::path& directory);

}  // namespace convoy
