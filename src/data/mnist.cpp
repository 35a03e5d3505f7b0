#include "data/mnist.h"

#include "base/error.h"
#include "data/idx.h"
#include "data/planar_images.h"

namespace convoy {

namespace {

std::string stem(Split split, const char* rest) { return (split == Split::Train ? "train-" : "t10k-") + std::string(rest); }

std::filesystem::path find_file(const std::filesystem::path& directory, const std::string& name) {
    for (const char* ending : {".gz", ""})
        if (std::filesystem::exists(directory / (name + ending))) return directory / (name + ending);
    fail("{}: no file {}.gz or {}", directory.string(), name, name);
}

std::filesystem::path images_file(const std::filesystem::path& directory, Split split) {
    return find_file(directory, stem(split, "images-idx3-ubyte"));
}

}  // namespace

std::unique_ptr<Dataset> open_idx(const std::filesystem::path& images, const std::filesystem::path& labels, const IdxOptions& options) {
    require(options.classes >= 1 && options.classes <= INT32_MAX, "{}: expected at least one class, found {}", images.string(),
            options.classes);
    Tensor pixels = read_idx(images);
    const Shape shape = pixels.shape();
    require(pixels.dtype() == DType::u8 && shape.size() == 3, "{}: expected images of u8 with 3 dims (count, height, width), found {} {}",
            images.string(), name_of(pixels.dtype()), to_string(shape));
    require(pixels.numel() > 0, "{}: expected at least one image of at least one pixel, found {}", images.string(), to_string(shape));
    Tensor classes = read_idx(labels);
    require(!is_floating(classes.dtype()) && classes.shape().size() == 1, "{}: expected integer labels with 1 dim, found {} {}",
            labels.string(), name_of(classes.dtype()), to_string(classes.shape()));
    require(classes.shape()[0] == shape[0], "{}: expected {} labels, as many as the images in {}, found {}", labels.string(), shape[0],
            images.string(), classes.shape()[0]);
    classes = classes.to(DType::i32);
    const auto values = classes.as<int32_t>();
    for (size_t i = 0; i < values.size(); ++i)
        require(values[i] >= 0 && values[i] < options.classes, "{}: label {} is {}; expected labels in 0..{}", labels.string(), i,
                values[i], options.classes - 1);
    return make_planar_images(pixels.reshaped({shape[0], 1, shape[1], shape[2]}), std::move(classes),
                              {.name = options.name, .classes = options.classes}, options.transform);
}

std::unique_ptr<Dataset> open_idx_directory(const std::filesystem::path& directory, Split split, const IdxOptions& options) {
    const auto images = images_file(directory, split), labels = find_file(directory, stem(split, "labels-idx1-ubyte"));
    return open_idx(images, labels, options);
}

std::unique_ptr<Dataset> open_mnist(const std::filesystem::path& directory, Split split, const IdxOptions& options) {
    auto dataset = open_idx_directory(directory, split, options);
    const Shape& input = dataset->info().input;
    require(input == Shape{1, 28, 28}, "{}: expected MNIST images of 28x28 pixels, found {}", images_file(directory, split).string(),
            to_string(input.slice(1)));
    return dataset;
}

bool has_idx_files(const std::filesystem::path& directory, Split split) {
    const std::string name = stem(split, "images-idx3-ubyte");
    std::error_code ignored;
    return std::filesystem::exists(directory / (name + ".gz"), ignored) || std::filesystem::exists(directory / name, ignored);
}

}  // namespace convoy
