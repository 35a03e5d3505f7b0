// Pictures made smaller or larger: a rectangle of the source becomes a picture of any size, by a triangle filter as wide as what it must smooth
// (what Pillow and torchvision call bilinear with antialiasing). Planes of real numbers come out, ready to be normalised.
#pragma once

#include <vector>

#include "data/pixels.h"

namespace convoy {

struct SourceRect {
    double x = 0, y = 0, width = 0, height = 0;  // in pixels of the source; edges, not centres
};

// Of one direction: output i is the sum of weight[i * taps + k] times the source at first[i] + k.
struct FilterTable {
    int taps = 0;
    std::vector<int> first;
    std::vector<float> weight;

    // For `out` outputs from [begin, begin + length) of a line of `size` pixels.
    void make(double begin, double length, int64_t size, int64_t out);
};

class Resampler {
  public:
    // Red, green and blue planes of to.height x to.width numbers 0..255. Requires a rectangle inside the picture.
    void run(const Pixels& source, const SourceRect& rect, ImageSize to, float* planes);

  private:
    FilterTable across_, down_;
    std::vector<float> line_;  // of the source, smoothed downwards
};

// The same, obviously: for tests.
void resample_reference(const Pixels& source, const SourceRect& rect, ImageSize to, float* planes);

}  // namespace convoy
