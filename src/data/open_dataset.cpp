#include "data/open_dataset.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/suggest.h"
#include "data/array_dataset.h"
#include "data/data_files.h"
#include "data/image_dataset.h"
#include "data/planar_images.h"
#include "data/synthetic.h"

namespace convoy {

namespace {

namespace fs = std::filesystem;

Transform transform_for(DataKind kind, Split split, const DatasetOptions& options) {
    const bool one_size = kind == DataKind::Mnist || kind == DataKind::Idx || kind == DataKind::Cifar10 || kind == DataKind::Cifar100;
    Transform transform{.size = one_size ? Shape{} : options.size, .resize = options.resize, .seed = options.seed};
    if (split == Split::Train && !options.plain)
        transform.augment = parse_augment(options.augment.empty() ? usual_augment(kind) : options.augment);
    transform.normalize = parse_normalize(options.normalize.empty() ? usual_normalize(kind) : options.normalize);
    return transform;
}

std::unique_ptr<Dataset> find_mnist(Split split, const DatasetOptions& options) {
    const auto places = mnist_places(options.data);
    for (const auto& place : places)
        if (has_idx_files(place, split))
            return open_mnist(place, split, {.name = "mnist", .transform = transform_for(DataKind::Mnist, split, options)});
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

// Pictures in files, in folders or shards. The classes are those of the train split, whichever split is asked for.
std::unique_ptr<Dataset> open_pictures(const DataFiles& files, Split split, const ImageOptions& options) {
    ImageOptions filled = options;
    const SplitFiles& mine = files.of(split);
    if (files.kind == DataKind::Images) {
        ImageFolder folder = open_image_folder(files.train.directory);
        filled.info.class_names = folder.classes;
        filled.info.classes = static_cast<int64_t>(folder.classes.size());
        if (mine.directory != files.train.directory) folder = open_image_folder(mine.directory, folder.classes);
        return make_image_dataset(std::move(folder.source), filled);
    }
    auto source = open_tar_shards(mine.files);
    int32_t largest = 0;
    for (int64_t i = 0; i < source->size(); ++i) largest = std::max(largest, source->label(i));
    const auto names = static_cast<int64_t>(filled.info.class_names.size());
    if (filled.info.classes == 0) filled.info.classes = names > 0 ? names : int64_t{largest} + 1;
    if (names != filled.info.classes) filled.info.class_names.clear();
    require(largest < filled.info.classes, "dataset {}: found label {}; expected labels in 0..{}", files.path.string(), largest,
            filled.info.classes - 1);
    return make_image_dataset(std::move(source), filled);
}

std::unique_ptr<ArraySource> open_arrays(const DataFiles& files, Split split) {
    const SplitFiles& mine = files.of(split);
    switch (files.kind) {
        case DataKind::Npy: return open_npy_pair(mine.directory / "x.npy", mine.directory / "y.npy");
        case DataKind::Hdf5Samples: return open_hdf5_samples(mine.files);
        case DataKind::Npz:
        case DataKind::Hdf5Set: break;
        default: raise_bug(__FILE__, __LINE__, "arrays", "a dataset of another kind");
    }
    require(mine.files.size() == 1, "dataset {}: expected one file for a split, found {}: {}, {} ...", files.path.string(),
            mine.files.size(), mine.files.size() > 1 ? mine.files[0].filename().string() : "",
            mine.files.size() > 1 ? mine.files[1].filename().string() : "");
    if (files.kind == DataKind::Hdf5Set) return open_hdf5_set(mine.files[0]);
    const bool both = files.split && files.train.files == files.test.files;
    const std::string ending = !both ? "" : split == Split::Train ? "_train" : "_test";
    return open_npz(mine.files[0], "x" + ending, "y" + ending);
}

std::unique_ptr<Dataset> open_files(const std::string& path, Split split, const DatasetOptions& options) {
    const DataFiles files = find_data_files(path);
    const Transform transform = transform_for(files.kind, split, options);
    const auto names = names_of_classes(path);
    std::unique_ptr<Dataset> dataset;
    switch (files.kind) {
        case DataKind::Idx:
            require(has_idx_files(path, split), "dataset {}: expected {}-images-idx3-ubyte.gz (or without .gz); found no such file", path,
                    split == Split::Train ? "train" : "t10k");
            dataset = open_idx_directory(path, split,
                                         {.name = path, .classes = options.classes > 0 ? options.classes : 10, .transform = transform});
            break;
        case DataKind::Cifar10: dataset = open_cifar(path, CifarKind::Cifar10, split, transform); break;
        case DataKind::Cifar100: dataset = open_cifar(path, CifarKind::Cifar100, split, transform); break;
        case DataKind::Images:
        case DataKind::Tar:
            dataset = open_pictures(files, split,
                                    {.info = {.name = path, .classes = options.classes, .class_names = names},
                                     .transform = transform,
                                     .strict = options.strict});
            break;
        default:
            dataset = make_array_dataset(open_arrays(files, split),
                                         {.name = path, .classes = options.classes, .class_names = names, .transform = transform});
    }
    return files.split ? std::move(dataset) : one_of_ten(std::move(dataset), split);
}

}  // namespace

std::string_view name_of(DataKind kind) {
    switch (kind) {
        case DataKind::Mnist: return "mnist";
        case DataKind::Synthetic: return "synthetic";
        case DataKind::Images: return "images";
        case DataKind::Idx: return "idx";
        case DataKind::Cifar10: return "cifar10";
        case DataKind::Cifar100: return "cifar100";
        case DataKind::Npy: return "npy";
        case DataKind::Npz: return "npz";
        case DataKind::Hdf5Set: return "hdf5";
        case DataKind::Hdf5Samples: return "hdf5 (a file for each sample)";
        case DataKind::Tar: return "tar";
    }
    return "";
}

bool any_size(DataKind kind) { return kind == DataKind::Images || kind == DataKind::Tar; }

std::string usual_augment(DataKind kind) {
    if (any_size(kind)) return "random-resized-crop,flip";
    return kind == DataKind::Cifar10 || kind == DataKind::Cifar100 ? "random-crop:4,flip" : "none";
}

std::string usual_normalize(DataKind kind) {
    if (any_size(kind)) return "imagenet";
    if (kind == DataKind::Cifar10 || kind == DataKind::Cifar100) return "cifar";
    return kind == DataKind::Mnist || kind == DataKind::Idx ? "mnist" : "none";
}

DataKind dataset_kind(const std::string& name) {
    if (name == "mnist") return DataKind::Mnist;
    if (name == "synthetic") return DataKind::Synthetic;
    std::error_code ignored;
    if (fs::exists(name, ignored)) return find_data_files(name).kind;
    const std::vector<std::string> known{"mnist", "synthetic"};
    fail("unknown dataset \"{}\"; expected mnist, synthetic, or the path of data{}", name, did_you_mean(name, known));
}

std::unique_ptr<Dataset> open_dataset(const std::string& name, Split split, const DatasetOptions& options) {
    require(options.most >= 0, "dataset \"{}\": expected a number of samples, found {}", name, options.most);
    const DataKind kind = dataset_kind(name);
    auto dataset = kind == DataKind::Mnist       ? find_mnist(split, options)
                   : kind == DataKind::Synthetic ? open_synthetic(split, options.synthetic)
                                                 : open_files(name, split, options);
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
