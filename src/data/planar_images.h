// Small pictures that are kept in memory as they are: u8 planes of one size, each picture with a class. MNIST and CIFAR are of this kind.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "data/dataset.h"
#include "data/transform.h"

namespace convoy {

// Pictures u8 [n, c, h, w] with labels i32 [n] in 0..info.classes-1, unchecked. `info` gives name, classes and their names; the rest is filled in. Values become
// (pixel / 255 - mean) / deviation. Of augmentation there is flip and random-crop with padding. Error when the transform asks for anything else.
std::unique_ptr<Dataset> make_planar_images(Tensor pictures, Tensor labels, const DatasetInfo& info, const Transform& transform);

// CIFAR-10 and CIFAR-100 in their binary form. `fine`: 100 classes, two labels before each picture, of which the second counts.
enum class CifarKind : uint8_t { Cifar10, Cifar100 };
// The files of a split in a directory; none when it does not look like CIFAR.
std::vector<std::filesystem::path> cifar_files(const std::filesystem::path& directory, CifarKind kind, Split split);
std::unique_ptr<Dataset> open_cifar(const std::filesystem::path& directory, CifarKind kind, Split split, const Transform& transform);

}  // namespace convoy
