// Line charts as pictures: panels side by side over one kind of x axis.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace convoy {

struct Color {
    uint8_t red, green, blue;
    bool operator==(const Color&) const = default;
};

struct Series {
    std::string name;
    Color color;
    std::vector<std::pair<double, double>> points;  // by rising x; points that are not finite are left out
    bool marks = false;                             // a dot at every point
};

struct Panel {
    std::string title;
    std::vector<Series> series;
    bool logarithmic = false;  // the y axis; points that are not positive are left out
};

struct Image {
    int width = 0, height = 0;
    std::vector<uint8_t> rgb;  // three bytes a pixel, row by row from the top

    Color at(int x, int y) const;
};

// Multiples of 1, 2 or 5 times a power of ten inside [low, high], about `count` of them. Requires low < high.
std::vector<double> ticks(double low, double high, int count);
// The same for a logarithmic axis: 1, 2 and 5 times powers of ten, or only the powers when there are many. Requires 0 < low.
std::vector<double> logarithmic_ticks(double low, double high);

Image plot(const std::vector<Panel>& panels, const std::string& x_label);

// Atomically. Error when it cannot be written.
void write_png(const std::filesystem::path& path, const Image& image);

}  // namespace convoy
