// Pictures of a ball, a box or a cone on the ground under the sky, as a camera would take them: any colour, pattern, size, place and view; sun and
// shadow; grounds and skies of many kinds, stones beside the thing, noise of the sensor. Three classes that a colour or a texture does not give away.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "data/pixels.h"

namespace convoy {

struct ShapeOptions {
    int64_t size = 128;  // pixels of the shorter side; the longer one has up to a half more
    uint64_t seed = 1;
};

void require_valid(const ShapeOptions& options);

inline constexpr std::array<std::string_view, 3> kShapeClasses{"ball", "box", "cone"};

// Picture `index` of a class; it depends on the options, the class and the index alone.
Pixels make_shape(const ShapeOptions& options, size_t shape_class, uint64_t index);

}  // namespace convoy
