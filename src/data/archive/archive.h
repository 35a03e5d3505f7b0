// The entries of tar and zip files, through libarchive. A build without it has absent_archive.cpp, whose function says so.
#pragma once

#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/bytes.h"

namespace convoy {

// Whether this build has it.
bool has_archives();

struct ArchiveEntry {
    std::string name;        // its path inside the archive
    std::string_view bytes;  // valid as long as the archive
};

// All regular files of an archive, in its order. What is stored as it is stays in the mapped file; what is compressed is unpacked into memory.
class Archive {
  public:
    // Error when it is missing, no archive, damaged or cut short, or when what is unpacked is more than 1000 times the file.
    explicit Archive(const std::filesystem::path& path);

    const std::vector<ArchiveEntry>& entries() const { return entries_; }

  private:
    MappedFile file_;
    std::deque<std::string> unpacked_;
    std::vector<ArchiveEntry> entries_;
};

}  // namespace convoy
