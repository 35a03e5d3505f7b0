// Datasets by name, for the command line.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/mnist.h"

namespace convoy {

struct SyntheticOptions {
    DatasetInfo info;
    int64_t train = 1024, test = 256;  // samples; the two splits share none
    uint64_t seed = 1;
    double signal = 1;
};

struct DatasetOptions {
    std::filesystem::path data;  // of "mnist": the directory with its files, or the one above; empty: the usual places
    int64_t most = 0;            // at most so many samples, the first ones; 0: all
    SyntheticOptions synthetic;  // of "synthetic"
    IdxOptions idx;              // of a directory
};

// "mnist", "synthetic", or a directory with IDX files under MNIST's names. Error when it is none of them, with the names that are known,
// or when the files are not found, with the places that were searched.
std::unique_ptr<Dataset> open_dataset(const std::string& name_or_path, Split split, const DatasetOptions& options);

// Where the files of "mnist" are looked for, in this order: in `data` alone if it is given, since somebody who says where the data are
// does not want others; else $CONVOY_DATA/mnist, ../data/mnist beside the program, and data/mnist in the source tree.
std::vector<std::filesystem::path> mnist_places(const std::filesystem::path& data);

}  // namespace convoy
