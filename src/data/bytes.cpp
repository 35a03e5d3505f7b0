#include "data/bytes.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace convoy {

namespace {

class Descriptor {
  public:
    explicit Descriptor(const std::filesystem::path& path) : value_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
    ~Descriptor() {
        if (value_ >= 0) ::close(value_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int value() const { return value_; }

  private:
    int value_;
};

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
    const Descriptor file(path);
    require(file.value() >= 0, "cannot open {}: {}", path.string(), std::strerror(errno));
    struct stat status {};
    require(::fstat(file.value(), &status) == 0, "cannot read {}: {}", path.string(), std::strerror(errno));
    require(S_ISREG(status.st_mode), "cannot read {}: it is {}, not a regular file", path.string(),
            S_ISDIR(status.st_mode) ? "a directory" : "a device or a pipe");
    const auto size = static_cast<size_t>(status.st_size);
    if (size == 0) return;  // nothing to map
    void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.value(), 0);
    require(at != MAP_FAILED, "cannot read {}: {}", path.string(), std::strerror(errno));
    bytes_ = {static_cast<const char*>(at), size};
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

std::optional<int64_t> checked_bytes(const Shape& shape, int64_t unit) {
    constexpr int64_t kLimit = int64_t{1} << 62;
    int64_t bytes = unit;
    bool none = false;
    for (const int64_t size : shape) {
        if (size < 0 || (size > 0 && bytes > kLimit / size)) return std::nullopt;
        none = none || size == 0;
        bytes *= std::max<int64_t>(size, 1);
    }
    return none ? 0 : bytes;
}

std::string in_quotes(std::string_view text) {
    constexpr size_t kMost = 120;
    std::string result = "\"";
    for (const char c : text.substr(0, kMost)) result += static_cast<unsigned char>(c) < 32 || c == 127 ? '?' : c;
    return result + (text.size() > kMost ? "...\"" : "\"");
}

}  // namespace convoy
