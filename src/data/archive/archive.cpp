#include "data/archive/archive.h"

#include <memory>

#include <archive.h>
#include <archive_entry.h>

#include "base/error.h"

namespace convoy {

namespace {

constexpr size_t kMostGrowth = 1000;

using Handle = std::unique_ptr<::archive, int (*)(::archive*)>;

// The library says "warning" of what it could repair, such as a name in a strange alphabet.
bool done(int result) { return result == ARCHIVE_OK || result == ARCHIVE_WARN; }

std::string error_of(::archive* handle) {
    const char* text = archive_error_string(handle);
    return text ? text : "unknown error";
}

}  // namespace

bool has_archives() { return true; }

Archive::Archive(const std::filesystem::path& path) : file_(path) {
    const std::string name = path.string();
    const std::string_view whole = file_.bytes();
    const Handle handle(archive_read_new(), archive_read_free);
    require(handle != nullptr, "{}: cannot start libarchive", name);
    archive_read_support_filter_gzip(handle.get());
    archive_read_support_format_tar(handle.get());
    archive_read_support_format_zip(handle.get());
    require(!whole.empty() && done(archive_read_open_memory(handle.get(), whole.data(), whole.size())), "{}: not a tar or zip file{}", name,
            whole.empty() ? ": it is empty" : "");
    size_t left = kMostGrowth * whole.size();
    const auto inside = [&](const char* data) { return data >= whole.data() && data < whole.data() + whole.size(); };
    for (;;) {
        archive_entry* entry = nullptr;
        const int result = archive_read_next_header(handle.get(), &entry);
        if (result == ARCHIVE_EOF) break;
        require(done(result), "{}: damaged archive after {} entries: {}", name, entries_.size(), error_of(handle.get()));
        if (archive_entry_filetype(entry) != AE_IFREG) continue;
        const char* const inner = archive_entry_pathname(entry);
        ArchiveEntry& added = entries_.emplace_back(ArchiveEntry{inner ? inner : "", {}});
        const void* block = nullptr;
        size_t size = 0;
        la_int64_t offset = 0;
        std::string* copy = nullptr;
        int read = 0;
        while (done(read = archive_read_data_block(handle.get(), &block, &size, &offset))) {
            const auto* const data = static_cast<const char*>(block);
            const auto at = static_cast<size_t>(offset);
            const std::string_view now = copy ? std::string_view(*copy) : added.bytes;
            // One piece after the other in the mapped file: nothing is copied.
            if (!copy && at == now.size() && inside(data) && (now.empty() || now.data() + now.size() == data)) {
                added.bytes = {now.empty() ? data : now.data(), now.size() + size};
                continue;
            }
            require(offset >= 0 && at >= now.size() && at - now.size() <= left && size <= left - (at - now.size()),
                    "{}: entry {}: it unpacks to more than {} times the file", name, in_quotes(added.name), kMostGrowth);
            if (!copy) copy = &unpacked_.emplace_back(now);
            left -= at - now.size() + size;
            copy->resize(at, '\0');  // a hole
            copy->append(data, size);
        }
        require(read == ARCHIVE_EOF, "{}: entry {}: {}", name, in_quotes(added.name), error_of(handle.get()));
        if (copy) added.bytes = *copy;
        const bool sized = archive_entry_size_is_set(entry) != 0;
        require(!sized || archive_entry_size(entry) == static_cast<la_int64_t>(added.bytes.size()),
                "{}: entry {}: expected {} bytes, found {}", name, in_quotes(added.name), archive_entry_size(entry), added.bytes.size());
    }
}

}  // namespace convoy
