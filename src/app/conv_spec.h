// A convolution as a word, such as n16c64h56w56f64k3s1p1: letters with numbers, in any order.
//
// n samples, c channels, (d, h,) w the input's size, f filters, k the window, s stride, p padding, l dilation, g groups. k, s, p and l have one number
// for all dims or one each (k1x3x3). n, s, l and g are 1 and p is 0 where they are not given.
#pragma once

#include <string>
#include <vector>

#include "model/graph.h"
#include "program/problem.h"

namespace convoy {

struct ConvSpec {
    Window window;
    int64_t groups = 1;
    Shape x, w, y;
    std::vector<std::string> layers;  // of a model that have it

    // The problem of one direction ("forward", "input" or "weight"), in this type.
    Problem problem(const std::string& direction, DType dtype) const;
    double operations() const;
    // The word.
    std::string text() const;
    bool same_as(const ConvSpec& other) const;
};

// Error that names the letter, when the word is none or the convolution has no outputs.
ConvSpec parse_conv(const std::string& word);
// The words of a file, one to a line; what follows a # is left out. Error names file and line.
std::vector<ConvSpec> read_convs(const std::string& path);
// The distinct convolutions of a graph, in its order. A transposed convolution is listed as the one whose gradient it is.
std::vector<ConvSpec> convs_of(const Graph& graph);

}  // namespace convoy
