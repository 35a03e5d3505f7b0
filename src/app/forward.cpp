#include "app/forward.h"

#include "data/npy.h"

namespace convoy {

namespace {

// "3,0,5": where element `index` of a tensor lies.
std::string place_of(const Shape& shape, int64_t index) {
    std::vector<std::string> parts(static_cast<size_t>(shape.size()));
    for (int d = shape.size() - 1; d >= 0; --d) {
        parts[static_cast<size_t>(d)] = std::to_string(index % shape[d]);
        index /= shape[d];
    }
    return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace

FileInput read_input(const std::filesystem::path& path, const ModelSource& entry, const CommonOptions& common, Mode mode) {
    Tensor tensor = read_npy(path);
    const Shape& shape = tensor.shape();
    ModelOptions options = model_options(common, mode, 0);
    require(shape.size() == entry.input.size() + 1, "{}: the array is {}; model \"{}\" takes {} dims, a batch of inputs such as 8x{}",
            path.string(), to_string(shape), entry.name, entry.input.size() + 1, to_string(entry.input));
    require(tensor.numel() > 0, "{}: the array is {}, expected at least one element", path.string(), to_string(shape));
    require(options.input.empty() || options.input == shape.slice(1), "{}: its inputs are {}, but --input says {}", path.string(),
            to_string(shape.slice(1)), to_string(options.input));
    require(options.batch == 0 || options.batch == shape[0], "{}: it holds {} inputs, but --batch says {}", path.string(), shape[0],
            options.batch);
    options.input = shape.slice(1);
    options.batch = shape[0];
    return {std::move(tensor), options};
}

Tensor read_target(const std::filesystem::path& path, const Slot& slot, int64_t classes) {
    Tensor tensor = read_npy(path);
    const Shape& expected = slot.desc.shape;
    require(tensor.shape() == expected, "{}: the targets are {}, expected {} for this input", path.string(), to_string(tensor.shape()),
            to_string(expected));
    if (is_floating(slot.desc.dtype)) return tensor.to(slot.desc.dtype);
    require(!is_floating(tensor.dtype()), "{}: the targets are {}, expected labels as integers", path.string(), name_of(tensor.dtype()));
    for (int64_t i = 0; i < tensor.numel(); ++i) {
        const double label = element(tensor, i);
        require(label >= 0 && label < static_cast<double>(classes), "{}: label {} at [{}] is out of range, expected 0..{}", path.string(),
                static_cast<int64_t>(label), place_of(expected, i), classes - 1);
    }
    return tensor.to(slot.desc.dtype);
}

}  // namespace convoy
