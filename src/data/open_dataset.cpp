#include "data/open_dataset.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/suggest.h"
#include "data/synthetic.h"

namespace convoy {

namespace {

namespace fs = std::filesystem;

std::unique_ptr<Dataset> find_mnist(Split split, const fs::path& data) {
    const auto places = mnist_places(data);
    for (const auto& place : places)
        if (has_idx_files(place, split)) return open_mnist(place, split);
    std::string text;
    for (const auto& place : places) text += "\n  " + place.string();
    fail("dataset \"mnist\": no file {}-images-idx3-ubyte.gz (or without .gz) in any of these directories:{}",
         split == Split::Train ? "train" : "t10k", text);
}

std::unique_ptr<Dataset> open_synthetic(Split split, const SyntheticOptions& options) {
    require(options.train >= 1 && options.test >= 1, "dataset \"synthetic\": expected at least one sample in each split, found {} and {}",
            options.train, options.test);
    auto all = make_synthetic(options.info, options.train + options.test, options.seed, options.signal);
    return split == Split::Train ? subset(std::move(all), 0, options.train) : subset(std::move(all), options.train, options.test);
}

std::unique_ptr<Dataset> open_directory(const std::string& path, Split split, const DatasetOptions& options) {
    require(has_idx_files(path, split),
            "dataset {}: expected a directory with {}-images-idx3-ubyte.gz (or without .gz); found no such file", path,
            split == Split::Train ? "train" : "t10k");
    return open_idx_directory(path, split, options.idx);
}

std::unique_ptr<Dataset> open_all(const std::string& name, Split split, const DatasetOptions& options) {
    if (name == "mnist") return find_mnist(split, options.data);
    if (name == "synthetic") return open_synthetic(split, options.synthetic);
    std::error_code ignored;
    if (fs::is_directory(name, ignored)) return open_directory(name, split, options);
    require(!fs::exists(name, ignored), "dataset {}: it is a file; expected a directory with IDX files", name);
    const std::vector<std::string> known{"mnist", "synthetic"};
    fail("unknown dataset \"{}\"; expected mnist, synthetic, or a directory with IDX files{}", name, did_you_mean(name, known));
}

}  // namespace

std::unique_ptr<Dataset> open_dataset(const std::string& name_or_path, Split split, const DatasetOptions& options) {
    require(options.most >= 0, "dataset \"{}\": expected a number of samples, found {}", name_or_path, options.most);
    auto dataset = open_all(name_or_path, split, options);
    if (options.most == 0 || options.most >= dataset->size()) return dataset;
    return subset(std::move(dataset), 0, options.most);
}

std::vector<std::filesystem::path> mnist_places(const std::filesystem::path& data) {
    if (!data.empty()) return {data, data / "mnist"};
    std::vector<fs::path> places;
    if (const char* variable = std::getenv("CONVOY_DATA"); variable && *variable) places.push_back(fs::path(variable) / "mnist");
    std::error_code failed;
    const fs::path program = fs::read_symlink("/proc/self/exe", failed);
    if (!failed) places.push_back(program.parent_path().parent_path() / "data" / "mnist");
    places.push_back(fs::path(CONVOY_SOURCE_DATA) / "mnist");
    return places;
}

}  // namespace convoy
