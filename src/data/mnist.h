// MNIST, and any pair of IDX files with images and labels.
#pragma once

#include <filesystem>
#include <memory>

#include "data/dataset.h"
#include "data/transform.h"

namespace convoy {

// The defaults are MNIST's.
struct IdxOptions {
    std::string name = "idx";
    int64_t classes = 10;
    Transform transform{.normalize = {{0.1307}, {0.3081}}};
};

// Images u8 [n, h, w] and labels [n] of integers in 0..classes-1, gzipped or not, held in memory. Samples are [1, h, w]. Error, naming the
// file and, for labels, the first bad one, when they are not that.
std::unique_ptr<Dataset> open_idx(const std::filesystem::path& images, const std::filesystem::path& labels, const IdxOptions& options);

// The same from a directory with MNIST's file names: train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-..., each with or without .gz.
std::unique_ptr<Dataset> open_idx_directory(const std::filesystem::path& directory, Split split, const IdxOptions& options);

// MNIST itself: the same with its 10 classes and 28x28 pixels.
std::unique_ptr<Dataset> open_mnist(const std::filesystem::path& directory, Split split, const IdxOptions& options = {.name = "mnist"});

// Whether the directory has the images of that split under MNIST's name.
bool has_idx_files(const std::filesystem::path& directory, Split split);

}  // namespace convoy
