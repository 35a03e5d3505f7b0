// How an op may be divided. Every dim of every operand carries a label; dims with one label are cut together. An axis of a grid either splits one
// label or does nothing to the op. An operand without that label is replicated along the axis when it is read, and a sum not yet reduced when
// it is made: everything that is known about parallel convolutions, losses and norms follows from these lists.
//
//     conv   x[n,c,h,w] w[f,c,.,.] -> y[n,f,h,w]     split n: data parallel;  h: spatial, with halo;  c: y is partial;  f: y split on channels
#pragma once

#include <string>
#include <vector>

#include "model/graph.h"

namespace convoy {

struct DimRole {
    int label = kNone;     // kNone: this dim is never cut
    int64_t scale = 1;     // elements of this dim per unit of the label
    bool derived = false;  // what is read along this dim follows from the other operands: windows, resampling, concatenation
};
using DimRoles = std::vector<DimRole>;

struct Label {
    std::string name;    // "sample", "channel", "filter", "height", ...
    int64_t length = 0;  // in units
};

struct Signature {
    std::vector<Label> labels;  // the usual choice first
    std::vector<DimRoles> inputs, outputs;
    bool linear = false;  // sums not yet reduced may pass: all inputs partial, all outputs partial
};

Signature signature_of(const Op& op, const std::vector<ValueType>& inputs, const std::vector<ValueType>& outputs);

// The dim of an operand that carries the label, or kNone.
int dim_of(const DimRoles& roles, int label);

// "depth", "height", "width" of spatial dim i of `rank`.
std::string spatial_name(int i, int rank);

}  // namespace convoy
