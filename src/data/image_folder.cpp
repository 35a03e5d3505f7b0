// Pictures in folders, one folder for each class.
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "data/image_dataset.h"

namespace convoy {

namespace {

namespace fs = std::filesystem;

bool is_picture(const fs::path& path) {
    std::string ending = path.extension().string();
    for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

// Names of what is in a directory and passes the test, sorted.
template <class F>
std::vector<std::string> names_in(const fs::path& directory, F&& wanted) {
    std::vector<std::string> names;
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(directory, failed))
        if (wanted(entry) && entry.path().filename().string()[0] != '.') names.push_back(entry.path().filename().string());
    require(!failed, "{}: {}", directory.string(), failed.message());
    std::sort(names.begin(), names.end());
    return names;
}

std::vector<std::string> pictures_in(const fs::path& directory) {
    return names_in(directory, [](const fs::directory_entry& entry) { return is_picture(entry.path()) && !entry.is_directory(); });
}

std::vector<std::string> folders_in(const fs::path& directory) {
    return names_in(directory, [](const fs::directory_entry& entry) { return entry.is_directory(); });
}

// Reads a whole small file into memory that is kept; mapping one costs more than reading it.
void read_into(const std::string& path, std::string& buffer) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    require(file >= 0, "cannot open {}: {}", path, std::strerror(errno));
    struct stat status {};
    const bool known = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    buffer.resize(known ? static_cast<size_t>(status.st_size) : 0);
    size_t done = 0;
    while (done < buffer.size()) {
        const ssize_t got = ::read(file, buffer.data() + done, buffer.size() - done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        done += static_cast<size_t>(got);
    }
    ::close(file);
    require(known && done == buffer.size(), "cannot read {}", path);
}

class FolderSource final : public ImageSource {
  public:
    struct Picture {
        int32_t label;
        std::string file;
    };
    FolderSource(const fs::path& root, std::vector<std::string> folders, std::vector<Picture> pictures)
        : root_(root.string()), folders_(std::move(folders)), pictures_(std::move(pictures)) {}

    int64_t size() const override { return static_cast<int64_t>(pictures_.size()); }
    int32_t label(int64_t index) const override { return at(index).label; }
    std::string name(int64_t index) const override {
        return root_ + "/" + folders_[static_cast<size_t>(at(index).label)] + "/" + at(index).file;
    }
    std::string_view bytes(int64_t index, std::string& buffer) const override {
        read_into(name(index), buffer);
        return buffer;
    }

  private:
    const Picture& at(int64_t index) const { return pictures_[static_cast<size_t>(index)]; }

    std::string root_;
    std::vector<std::string> folders_;
    std::vector<Picture> pictures_;
};

}  // namespace

ImageFolder open_image_folder(const fs::path& root, const std::vector<std::string>& classes) {
    ImageFolder result{nullptr, classes};
    const auto folders = folders_in(root);
    if (classes.empty())
        for (const std::string& folder : folders)
            if (!pictures_in(root / folder).empty()) result.classes.push_back(folder);
    std::vector<FolderSource::Picture> pictures;
    for (const std::string& folder : folders) {
        const auto at = std::find(result.classes.begin(), result.classes.end(), folder);
        auto files = pictures_in(root / folder);
        require(at != result.classes.end() || files.empty(), "{}: folder \"{}\" is none of the classes ({})", root.string(), folder,
                fmt::join(result.classes, ", "));
        for (std::string& file : files) pictures.push_back({static_cast<int32_t>(at - result.classes.begin()), std::move(file)});
    }
    require(!pictures.empty(), "{}: expected a folder for each class, with pictures (.jpg, .jpeg or .png) in it; found none",
            root.string());
    // With the classes of another split the order of the folders need not be that of the labels.
    std::stable_sort(pictures.begin(), pictures.end(), [](const auto& a, const auto& b) { return a.label < b.label; });
    result.source = std::make_unique<FolderSource>(root, result.classes, std::move(pictures));
    return result;
}

bool has_image_folders(const fs::path& root) {
    for (const std::string& folder : folders_in(root))
        if (!pictures_in(root / folder).empty()) return true;
    return false;
}

}  // namespace convoy
