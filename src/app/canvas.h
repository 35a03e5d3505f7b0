// Pictures that are drawn: points, lines, words and other pictures on white.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace convoy {

struct Color {
    uint8_t red, green, blue;
    bool operator==(const Color&) const = default;
};

struct Image {
    int width = 0, height = 0;
    std::vector<uint8_t> rgb;  // three bytes a pixel, row by row from the top

    Color at(int x, int y) const;
};

class Canvas {
  public:
    Canvas(int width, int height);

    Image take() { return std::move(image_); }

    // Mixes a colour into a pixel; outside the picture nothing happens.
    void blend(int x, int y, Color color, double cover);
    // A segment with round ends; a pixel is covered by how far it lies inside.
    void line(double x0, double y0, double x1, double y1, double width, Color color);
    // (x, y) is the upper left corner; a character's pixels are `scale` wide.
    void text(int x, int y, const std::string& text, Color color, int scale = 2);

  private:
    Image image_;
};

// How wide a text is drawn.
int text_width(const std::string& text, int scale = 2);

// Atomically. Error when it cannot be written.
void write_png(const std::filesystem::path& path, const Image& image);

}  // namespace convoy
