// A few samples of a dataset side by side, with what they are: pictures as they are, volumes as slices, labels of voxels as colours.
#pragma once

#include <vector>

#include "app/canvas.h"
#include "data/dataset.h"

namespace convoy {

struct SheetOptions {
    int64_t count = 24;  // samples, spread evenly over the dataset
    int columns = 8;
    int side = 128;  // of a picture, in pixels, about
};

// The samples that a sheet shows.
std::vector<int64_t> spread(int64_t size, int64_t count);

// Error when a sample cannot be read.
Image contact_sheet(const Dataset& dataset, const SheetOptions& options);

}  // namespace convoy
