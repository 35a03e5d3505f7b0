// The ways in which labels lie on the dims of an op's operands: elementwise, by windows, per channel, .. signature.cpp says which op has which.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "program/signature.h"

namespace convoy::labelling {

using Types = std::vector<ValueType>;

// A dim of an operand, for a label to be on.
struct At {
    bool output;
    size_t operand;
    int dim;
    int64_t scale = 1;
    bool derived = false;

    static At in(size_t operand, int dim, int64_t scale = 1) { return {false, operand, dim, scale}; }
    static At out(size_t operand, int dim, int64_t scale = 1) { return {true, operand, dim, scale}; }
    // An input that is read as the other operands need.
    static At read(size_t operand, int dim) { return {false, operand, dim, 1, true}; }
};
using Places = std::vector<At>;

// Builds a signature label by label. Operands begin with no label on any dim.
class Builder {
  public:
    Builder(const Types& in, const Types& out);
    Builder& label(std::string name, int64_t length, const Places& places);
    operator Signature() { return std::move(result_); }

  private:
    Signature result_;
};

// "sample", "channel", "height", .. of dim `dim` of an activation with `rank` dims.
std::string dim_name(int dim, int rank);

// A label for every dim of `shape`, at the places that are given for it; none: no label.
Signature by_dim(const Types& in, const Types& out, const Shape& shape, const std::function<Places(int dim)>& places);

// The same, where sums that are not yet reduced may pass.
Signature passing_sums(Signature signature);

// --- Layers with weights: x, w and y stand for the operand that has that role in any direction ---

struct Directed {
    struct Role {
        bool output;
        size_t operand;
        At at(int dim, int64_t scale = 1) const { return {output, operand, dim, scale}; }
        const Shape& shape(const Types& in, const Types& out) const { return (output ? out : in)[operand].shape; }
    };
    Role x, w, y;
};
constexpr Directed kForward{.x = {false, 0}, .w = {false, 1}, .y = {true, 0}};
constexpr Directed kGradInput{.x = {true, 0}, .w = {false, 1}, .y = {false, 0}};
constexpr Directed kGradWeight{.x = {false, 0}, .w = {true, 0}, .y = {false, 1}};

// x[N,C,..] w[F,C/groups,K..] y[N,F,..]
Signature convolution(const Types& in, const Types& out, const Directed& direction, int64_t groups);
// x[N,C] w[F,C] y[N,F]
Signature fully_connected(const Types& in, const Types& out, const Directed& direction);
// x[N,C,..] w[F,out..,C,K..] y[N,F,out..]
Signature local_convolution(const Types& in, const Types& out, const Directed& direction);

// --- Activations ---

// Every dim of the first output, on all operands of its shape.
Signature elementwise(const Types& in, const Types& out);

// Samples and channels are cut alike; space as the result is cut, and all inputs are read as it needs. Without `spatial` it is not cut.
Signature windowed(const Types& in, const Types& out, bool spatial = true);

// All dims but one, on all operands alike.
Signature all_but(const Types& in, const Types& out, int axis);

// By position, since a batch of two makes statistics [2,C] and activations [N,C] look alike: these operands are activations, cut along all dims;
// the others have one entry per channel (statistics [2,C], vectors [C]) or are scalars.
Signature per_channel(const Types& in, const Types& out, const std::vector<size_t>& in_activations, bool out_activation);

// What an operand of group and layer norm is, by position.
enum class CellRole { Activation, Cells, Affine };
// Along samples the cells are cut with x; along dims that lie inside a cell its statistics are partial.
Signature cells(const Cells& cells, const Types& in, const Types& out, const std::vector<CellRole>& in_roles, CellRole out_role);

// Every dim of the result; the inputs are read as it needs along the dims where indices move.
Signature rearranged(const Types& in, const Types& out, const std::vector<bool>& moves);

// --- Losses and updates ---

// logits[N,K,..] and targets[N,..]: everything but the classes is cut.
Signature logits_and_targets(const Types& in, const Types& out);

// Parameter, gradient and slots, by position: a scalar parameter has the shape of other operands.
Signature update(const Types& in, const Types& out, size_t slots);

}  // namespace convoy::labelling
