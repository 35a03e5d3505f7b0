// Pictures in files of any size, each with a class: decoded, cut out, made as large as the network takes them, and normalised.
//
// A JPEG is decoded at the smallest size that still has as many pixels as are wanted. A picture that cannot be read is passed over: the next one of
// its split that can be read takes its place, which depends on the files alone and not on who reads them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "data/dataset.h"
#include "data/pixels.h"
#include "data/transform.h"

namespace convoy {

// Where encoded pictures come from. For several threads at once.
class ImageSource {
  public:
    virtual ~ImageSource() = default;
    virtual int64_t size() const = 0;
    virtual int32_t label(int64_t index) const = 0;
    // For messages.
    virtual std::string name(int64_t index) const = 0;
    // The bytes of a file: in `buffer`, or elsewhere for as long as the source lives.
    virtual std::string_view bytes(int64_t index, std::string& buffer) const = 0;
};

struct ImageOptions {
    DatasetInfo info;  // name, classes and their names; the rest is filled in
    Transform transform;
    bool strict = false;  // a picture that cannot be read is an Error
};

// Samples are [3, height, width] as the transform's size says (default: 224x224). Error when the transform is not one for pictures.
std::unique_ptr<Dataset> make_image_dataset(std::unique_ptr<ImageSource> source, const ImageOptions& options);

// ROOT/CLASS/FILE.jpg (.jpeg, .png; in any case). `classes` are the folders to look into, of which the label is the position; empty: all, sorted by name.
// Error when there is no picture, or a folder that is no class.
struct ImageFolder {
    std::unique_ptr<ImageSource> source;
    std::vector<std::string> classes;
};
ImageFolder open_image_folder(const std::filesystem::path& root, const std::vector<std::string>& classes = {});
// Whether the directory has a folder with a picture in it.
bool has_image_folders(const std::filesystem::path& root);

// The samples of WebDataset shards, in order. Error names the shard and the sample that has no picture or no label.
std::unique_ptr<ImageSource> open_tar_shards(const std::vector<std::filesystem::path>& shards);

// The size of an encoded picture, whatever its format. Error when it is none.
ImageSize image_size(std::string_view bytes, const std::string& name);

}  // namespace convoy
