// Opens what lies at a path as `--data` would, and reads a few samples.
#pragma once

#include <algorithm>
#include <array>
#include <filesystem>

#include "data/open_dataset.h"

namespace convoy::fuzz {

// `size`: of pictures.
inline void read_dataset(const std::filesystem::path& path, std::initializer_list<Split> splits, const Shape& size = {}) {
    for (const Split split : splits) {
        DatasetOptions options;
        options.plain = true;
        options.size = size;
        const auto dataset = open_dataset(path.string(), split, options);
        const int64_t count = std::min<int64_t>(dataset->size(), 3);
        // Samples as large as the file says; what is read is bounded by what is there.
        Tensor input = make_input(dataset->info(), 1, DType::f32), target = make_target(dataset->info(), 1, DType::f32);
        for (int64_t i = 0; i < count; ++i) dataset->read(std::array{i}, input, target);
    }
}

}  // namespace convoy::fuzz
