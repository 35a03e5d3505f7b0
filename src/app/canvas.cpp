#include "app/canvas.h"

#include <algorithm>
#include <cmath>

#include "app/font.h"
#include "base/file.h"
#include "data/png/png.h"

namespace convoy {

Canvas::Canvas(int width, int height)
    : image_{width, height, std::vector<uint8_t>(static_cast<size_t>(width) * static_cast<size_t>(height) * 3, 255)} {}

void Canvas::blend(int x, int y, Color color, double cover) {
    if (x < 0 || y < 0 || x >= image_.width || y >= image_.height || cover <= 0) return;
    uint8_t* const pixel = &image_.rgb[(static_cast<size_t>(y) * static_cast<size_t>(image_.width) + static_cast<size_t>(x)) * 3];
    const auto mix = [cover](uint8_t old, uint8_t now) {
        return static_cast<uint8_t>(std::lround(old + (now - old) * std::min(1.0, cover)));
    };
    pixel[0] = mix(pixel[0], color.red);
    pixel[1] = mix(pixel[1], color.green);
    pixel[2] = mix(pixel[2], color.blue);
}

void Canvas::line(double x0, double y0, double x1, double y1, double width, Color color) {
    const double reach = width / 2 + 1, dx = x1 - x0, dy = y1 - y0, length = dx * dx + dy * dy;
    for (int y = static_cast<int>(std::min(y0, y1) - reach); y <= std::max(y0, y1) + reach; ++y)
        for (int x = static_cast<int>(std::min(x0, x1) - reach); x <= std::max(x0, x1) + reach; ++x) {
            const double along = length > 0 ? std::clamp(((x - x0) * dx + (y - y0) * dy) / length, 0.0, 1.0) : 0;
            blend(x, y, color, width / 2 + 0.5 - std::hypot(x - x0 - along * dx, y - y0 - along * dy));
        }
}

void Canvas::text(int x, int y, const std::string& text, Color color, int scale) {
    for (const char character : text) {
        const auto columns = glyph(character);
        for (int c = 0; c < kGlyphWidth * scale; ++c)
            for (int r = 0; r < kGlyphHeight * scale; ++r)
                if ((columns[static_cast<size_t>(c / scale)] >> (r / scale) & 1) != 0) blend(x + c, y + r, color, 1);
        x += (kGlyphWidth + 1) * scale;
    }
}

int text_width(const std::string& text, int scale) { return static_cast<int>(text.size()) * (kGlyphWidth + 1) * scale; }

Color Image::at(int x, int y) const {
    const size_t i = (static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)) * 3;
    return {rgb[i], rgb[i + 1], rgb[i + 2]};
}

void write_png(const std::filesystem::path& path, const Image& image) {
    write_file(path, encode_png({.size = {image.width, image.height}, .rgb = image.rgb}));
}

}  // namespace convoy
