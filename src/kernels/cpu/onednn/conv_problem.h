// What the implementations of convolutions share: finding a convolution in a problem, and asking the library for its primitive. Internal to this
// folder.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/onednn/common.h"
#include "kernels/patterns.h"

namespace convoy::cpu {

// Nothing when the problem is no convolution, has other types than f32, or needs what the library lacks (cropping).
std::optional<ConvProblem> recognise(const Problem& problem);

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
    ConvDescriber(const ConvProblem& conv, const Problem& problem);

    // The weight's shape with a dim for the groups, where there are several.
    const Shape& grouped_weight() const { return grouped_; }
    // Throws dnnl::error when the library has no such primitive, or one that is known to be wrong.
    Described describe(const Variant& v, bool make) const;

  private:
    ConvProblem conv_;
    Shape x_, y_, w_, grouped_;
    dnnl::memory::dims stride_, dilation_, lo_, hi_;
};

// The operands as the library's arguments.
std::vector<std::pair<int, dnnl::memory>> conv_arguments(Direction direction, const dnnl::memory& x, const dnnl::memory& w,
                                                         const dnnl::memory& y);

}  // namespace convoy::cpu
