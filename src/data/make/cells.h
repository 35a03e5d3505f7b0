// Volumes of cells, as a microscope would see them, with the class of every voxel: background, body of a cell, nucleus. Brightness alone does not tell:
// cells are bright and dim, light falls off to one side, bright specks lie between the cells, and all is blurred and noisy. What tells is what
// lies around a voxel.
#pragma once

#include "tensor/tensor.h"

namespace convoy {

struct CellOptions {
    int64_t size = 32;  // voxels along each side
    int64_t cells = 0;  // about so many in a volume; 0: as many as fill about a third of it
    uint64_t seed = 1;
};

void require_valid(const CellOptions& options);

inline constexpr int64_t kCellClasses = 3;
inline constexpr const char* kCellClassNames[] = {"background", "cell", "nucleus"};

struct CellSample {
    Tensor x;  // f32 [1, size, size, size], of about mean 0 and deviation 1
    Tensor y;  // u8 [size, size, size]
};

// Sample `index` of a set; it depends on the options and the index alone.
CellSample make_cells(const CellOptions& options, uint64_t index);

}  // namespace convoy
