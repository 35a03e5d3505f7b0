#include "data/data_files.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "data/array_dataset.h"
#include "data/image_dataset.h"
#include "data/planar_images.h"

namespace convoy {

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_ending(const fs::path& directory, const std::vector<std::string>& endings) {
    std::vector<fs::path> files;
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(directory, failed)) {
        const std::string name = entry.path().filename().string();
        if (name[0] == '.' || entry.is_directory()) continue;
        if (std::any_of(endings.begin(), endings.end(), [&](const std::string& ending) { return name.ends_with(ending); }))
            files.push_back(entry.path());
    }
    require(!failed, "{}: {}", directory.string(), failed.message());
    std::sort(files.begin(), files.end());
    return files;
}

const std::vector<std::string> kHdf5{".h5", ".hdf5"}, kTar{".tar", ".tar.gz", ".tgz"}, kNpz{".npz"};

bool begins(const fs::path& file, const char* word) { return file.filename().string().starts_with(word); }
bool is_test(const fs::path& file) { return begins(file, "test") || begins(file, "val"); }

// Files named for their splits, or all of them for both.
DataFiles by_names(DataKind kind, const fs::path& path, const std::vector<fs::path>& files) {
    DataFiles found{.kind = kind, .path = path};
    for (const auto& file : files)
        if (begins(file, "train"))
            found.train.files.push_back(file);
        else if (is_test(file))
            found.test.files.push_back(file);
    found.split = !found.test.files.empty();
    if (found.train.files.empty()) {
        require(!found.split, "{}: found files for testing ({}) but none for training", path.string(),
                found.split ? found.test.files[0].filename().string() : "");
        found.train.files = files;
    }
    return found;
}

bool is_npz_of_both(const fs::path& file) {
    const auto names = npz_names(file);
    return std::find(names.begin(), names.end(), "x_train") != names.end();
}

DataFiles in_file(const fs::path& path) {
    const std::string name = path.filename().string();
    const auto ends = [&](const std::vector<std::string>& endings) {
        return std::any_of(endings.begin(), endings.end(), [&](const std::string& ending) { return name.ends_with(ending); });
    };
    DataFiles found{.path = path, .train = {.files = {path}}};
    if (ends(kHdf5))
        found.kind = DataKind::Hdf5Set;
    else if (ends(kTar))
        found.kind = DataKind::Tar;
    else if (ends(kNpz)) {
        found.kind = DataKind::Npz;
        found.split = is_npz_of_both(path);
        found.test = found.train;
    } else
        fail("dataset {}: it is a file; expected .h5, .npz or .tar, or a directory", path.string());
    return found;
}

// What one directory holds, not looking at train/ and test/; nothing when it is no dataset.
std::optional<DataFiles> in_directory(const fs::path& path) {
    DataFiles found{.path = path, .train = {.directory = path}};
    const auto kind = [&](DataKind which, bool split) {
        found.kind = which;
        found.split = split;
        found.test = found.train;
        return found;
    };
    if (has_idx_files(path, Split::Train) || has_idx_files(path, Split::Test)) return kind(DataKind::Idx, true);
    for (const auto& [which, cifar] :
         {std::pair(DataKind::Cifar10, CifarKind::Cifar10), std::pair(DataKind::Cifar100, CifarKind::Cifar100)})
        if (!cifar_files(path, cifar, Split::Train).empty() || !cifar_files(path, cifar, Split::Test).empty()) return kind(which, true);
    if (fs::exists(path / "x.npy")) return kind(DataKind::Npy, false);
    if (const auto files = files_ending(path, kNpz); !files.empty()) return by_names(DataKind::Npz, path, files);
    if (const auto files = files_ending(path, kHdf5); !files.empty()) {
        const bool named = std::any_of(files.begin(), files.end(), [](const fs::path& f) { return begins(f, "train") || is_test(f); });
        if (named || files.size() == 1) return by_names(DataKind::Hdf5Set, path, files);
        found.kind = DataKind::Hdf5Samples;
        found.train.files = files;
        return found;
    }
    if (const auto files = files_ending(path, kTar); !files.empty()) return by_names(DataKind::Tar, path, files);
    if (has_image_folders(path)) return kind(DataKind::Images, false);
    return std::nullopt;
}

std::string contents(const fs::path& directory) {
    std::vector<std::string> names;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(directory, ignored))
        names.push_back(entry.path().filename().string() + (entry.is_directory() ? "/" : ""));
    std::sort(names.begin(), names.end());
    const size_t all = names.size();
    if (all > 5) names.resize(5);
    return all == 0 ? "an empty directory"
                    : fmt::format("{}{}", fmt::join(names, ", "), all > 5 ? fmt::format(" and {} more", all - 5) : "");
}

}  // namespace

DataFiles find_data_files(const fs::path& path) {
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) return in_file(path);
    if (fs::is_directory(path / "train", ignored)) {
        auto found = in_directory(path / "train");
        require(found.has_value() && found->kind != DataKind::Idx,
                "dataset {}: found a directory train, but no data in it that are known: {}", path.string(), contents(path / "train"));
        found->path = path;
        found->split = false;
        // One file in train/ is a sample as well as any other.
        if (found->kind == DataKind::Hdf5Set) found->kind = DataKind::Hdf5Samples;
        for (const char* name : {"test", "val", "validation"}) {
            if (!fs::is_directory(path / name, ignored)) continue;
            auto other = in_directory(path / name);
            if (other && other->kind == DataKind::Hdf5Set) other->kind = DataKind::Hdf5Samples;
            require(other && other->kind == found->kind, "dataset {}: train holds {}, but {} holds {}", path.string(), name_of(found->kind),
                    name, other ? name_of(other->kind) : "nothing that is known");
            found->test = other->train;
            found->split = true;
            break;
        }
        return *found;
    }
    const auto found = in_directory(path);
    require(found.has_value(),
            "dataset {}: expected a folder of pictures for each class, *-images-idx3-ubyte, data_batch_1.bin, x.npy and y.npy, .npz, .h5 "
            "or .tar "
            "files, or train/ and test/ with any of them; found {}",
            path.string(), contents(path));
    return *found;
}

std::vector<std::string> names_of_classes(const fs::path& path) {
    std::error_code ignored;
    const fs::path file = (fs::is_directory(path, ignored) ? path : path.parent_path()) / "classes.txt";
    if (!fs::exists(file, ignored)) return {};
    std::vector<std::string> names;
    std::string line;
    for (const char c : read_file(file) + "\n") {
        if (c != '\n') {
            if (c != '\r') line += c;
            continue;
        }
        if (!line.empty()) names.push_back(line);
        line.clear();
    }
    require(!names.empty(), "{}: expected the name of a class on each line, found none", file.string());
    return names;
}

}  // namespace convoy
