// Line charts as pictures: panels side by side over one kind of x axis.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "app/canvas.h"

namespace convoy {

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

// Multiples of 1, 2 or 5 times a power of ten inside [low, high], about `count` of them. Requires low < high.
std::vector<double> ticks(double low, double high, int count);
// The same for a logarithmic axis: 1, 2 and 5 times powers of ten, or only the powers when there are many. Requires 0 < low.
std::vector<double> logarithmic_ticks(double low, double high);

Image plot(const std::vector<Panel>& panels, const std::string& x_label);

}  // namespace convoy
