// What lies at the path of a dataset: its kind and the files of each split. Internal to this folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/open_dataset.h"

namespace convoy {

// Where a split is.
struct SplitFiles {
    std::filesystem::path directory;           // of Images, Npy
    std::vector<std::filesystem::path> files;  // of Npz, Hdf5, Tar
};

struct DataFiles {
    DataKind kind = DataKind::Images;
    std::filesystem::path path;
    SplitFiles train, test;
    bool split = false;  // false: both splits are taken from `train`

    const SplitFiles& of(Split which) const { return split && which == Split::Test ? test : train; }
};

// Error when it is no dataset that is known.
DataFiles find_data_files(const std::filesystem::path& path);

// The lines of classes.txt in or beside the path; none without that file.
std::vector<std::string> names_of_classes(const std::filesystem::path& path);

}  // namespace convoy
