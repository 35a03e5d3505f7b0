// A decoded picture: three bytes (red, green, blue) a pixel, row by row from the top.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace convoy {

struct ImageSize {
    int64_t width = 0, height = 0;
    bool operator==(const ImageSize&) const = default;
};

struct Pixels {
    ImageSize size;
    std::vector<uint8_t> rgb;  // may be longer than the picture: memory is kept for the next one

    // Makes room for a picture of this size.
    void resize(ImageSize to) {
        size = to;
        const auto bytes = static_cast<size_t>(to.width * to.height * 3);
        if (rgb.size() < bytes) rgb.resize(bytes);
    }
    uint8_t* row(int64_t y) { return rgb.data() + y * size.width * 3; }
    const uint8_t* row(int64_t y) const { return rgb.data() + y * size.width * 3; }
};

// The largest picture that is decoded, in pixels: a few bytes can claim to be far more than any memory holds.
inline constexpr int64_t kMostPixels = int64_t{1} << 26;

}  // namespace convoy
