// Datasets by name or path, for the command line: what kind they are is seen from what lies there.
//
// Splits. A directory with train/ and one of test/, val/ or validation/ has those. Files train*.EXT and test*.EXT (or val*.EXT) in one directory likewise. Where there is
// no test split, every tenth sample (index % 10 == 9) is for testing. classes.txt in the directory, a name to a line, names the classes of any kind.
//
//   images    [train/]CLASS/*.jpg, .jpeg, .png: classes are the folders, sorted by name; samples are sorted by class, then by file name
//   idx       MNIST's file names, gzipped or not
//   cifar10   data_batch_1.bin ... data_batch_5.bin, test_batch.bin, batches.meta.txt
//   cifar100  train.bin, test.bin, fine_label_names.txt
//   npy       [train/]x.npy and y.npy
//   npz       FILE.npz, or train.npz and test.npz, with x and y; or FILE.npz with x_train, y_train, x_test and y_test
//   hdf5      for all samples: FILE.h5, or train.h5 and test.h5; x [N, C, spatial...], y [N...]
//             for each sample: [train/]*.h5, two or more, sorted by name; x [C, spatial...], y
//   tar       WebDataset shards: FILE.tar, [train/]*.tar, or train*.tar and test*.tar; a picture and .cls or .json ({"label": n}) for each sample
//
// Arrays (npy, npz, hdf5): x of any number type, of which u8 becomes value / 255. y: integers, one for a sample, are classes; integers with x's spatial shape are a
// label for each voxel; real numbers are to be predicted. The number of classes is the attribute "classes" of y (HDF5), or that of the names in
// classes.txt, or given, or the largest label and one.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
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

enum class DataKind : uint8_t { Mnist, Synthetic, Images, Idx, Cifar10, Cifar100, Npy, Npz, Hdf5Set, Hdf5Samples, Tar };
std::string_view name_of(DataKind kind);
// Whether samples have a size only once it is said: pictures in files.
bool any_size(DataKind kind);

struct DatasetOptions {
    std::filesystem::path data;  // of "mnist": the directory with its files, or the one above; empty: the usual places
    int64_t most = 0;            // at most so many samples, the first ones; 0: all
    SyntheticOptions synthetic;  // of "synthetic"
    int64_t classes = 0;         // 0: as the files say
    // What is done to samples. Empty texts: what is usual for the kind, as usual_augment and usual_normalize say.
    std::string augment;    // of the train split, as parse_augment takes it; the test split is never augmented
    std::string normalize;  // as parse_normalize takes it
    Shape size;             // spatial, of what comes out; empty: as the samples are (pictures in files: 224x224)
    int64_t resize = 0;     // pictures in files: the short side before a centre or random crop; 0: size * 256 / 224
    uint64_t seed = 1;      // of augmentation
    bool strict = false;    // pictures that cannot be read are an Error
    bool plain = false;     // nothing random, in the train split neither
};

// What is usual for a kind: images and tar: random-resized-crop,flip and imagenet; cifar: random-crop:4,flip and cifar; mnist and idx: none and mnist; others: none.
std::string usual_augment(DataKind kind);
std::string usual_normalize(DataKind kind);

// What lies at a path, or what a name means. Error when it is nothing that is known, with what was expected and what was found.
DataKind dataset_kind(const std::string& name_or_path);

// "mnist", "synthetic", or a path. Error as dataset_kind, or when the files are not found, with the places that were searched, or damaged.
std::unique_ptr<Dataset> open_dataset(const std::string& name_or_path, Split split, const DatasetOptions& options);

// Where the files of "mnist" are looked for, in this order: in `data` alone if it is given, since somebody who says where the data are
// does not want others; else $CONVOY_DATA/mnist, ../data/mnist beside the program, and data/mnist in the source tree.
std::vector<std::filesystem::path> mnist_places(const std::filesystem::path& data);

}  // namespace convoy
