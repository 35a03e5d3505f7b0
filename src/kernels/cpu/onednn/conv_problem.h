// What the algorithms that oneDNN backs share: asking the library for a convolution's primitive. Internal to this folder.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/conv/view.h"
#include "kernels/cpu/onednn/common.h"

namespace convoy::cpu {

// How the activations lie, and by which method.
struct Variant {
    const char* name;
    dnnl::algorithm method;
    Layout x, y;
};

// A primitive descriptor of one of the three directions.
struct Described {
    dnnl::memory::desc x, w, y, scratchpad;
    std::string library_name;
    dnnl::primitive primitive;  // only when asked for
};

// Describes one convolution to the library, in several variants.
class ConvDescriber {
  public:
    struct Shapes {
        Shape x, w, y;
    };
    ConvDescriber(const ConvProblem& conv, const Shapes& shapes);
    explicit ConvDescriber(const ConvView& view) : ConvDescriber(view.conv, Shapes{view.x, view.w, view.y}) {}

    // The weight's shape with a dim for the groups, where there are several.
    const Shape& grouped_weight() const { return grouped_; }
    // Throws dnnl::error when the library has no such primitive, or one that is known to be wrong.
    Described describe(const Variant& v, bool make) const;

  private:
    ConvProblem conv_;
    Shape x_, y_, w_, grouped_;
    dnnl::memory::dims stride_, dilation_, lo_, hi_;
};

// Why the library takes no such convolution, whatever the method; empty when it may.
std::string library_refusal(const ConvView& view);

// The operands as the library's arguments.
std::vector<std::pair<int, dnnl::memory>> conv_arguments(Direction direction, const dnnl::memory& x, const dnnl::memory& w,
                                                         const dnnl::memory& y);

}  // namespace convoy::cpu
