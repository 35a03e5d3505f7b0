#include "program/signature.h"

#include <algorithm>

#include "base/error.h"

namespace convoy {

namespace {

using Types = std::vector<ValueType>;

// Builds a signature label by label. Operands begin with no label on any dim.
class Builder {
  public:
    Builder(const Types& in, const Types& out) {
        for (const auto& t : in) result_.inputs.emplace_back(static_cast<size_t>(t.shape.size()));
        for (const auto& t : out) result_.outputs.emplace_back(static_cast<size_t>(t.shape.size()));
    }

    struct At {
        bool output;
        size_t operand;
        int dim;
        int64_t scale = 1;
        bool derived = false;
    };
    static At in(size_t operand, int dim, int64_t scale = 1) { return {false, operand, dim, scale}; }
    static At out(size_t operand, int dim, int64_t scale = 1) { return {true, operand, dim, scale}; }
    static At read(size_t operand, int dim) { return {false, operand, dim, 1, true}; }

    Builder& label(std::string name, int64_t length, const std::vector<At>& places) {
        const int id = static_cast<int>(result_.labels.size());
        result_.labels.push_back({std::move(name), length});
        for (const At& at : places)
            (at.output ? result_.outputs : result_.inputs)[at.operand][static_cast<size_t>(at.dim)] = {id, at.scale, at.derived};
        return *this;
    }
    Builder& linear() {
        result_.linear = true;
        return *this;
    }
    operator Signature() { return std::move(result_); }

  private:
    Signature result_;
};

std::string dim_name(int dim, int rank) {
    if (dim == 0) return "sample";
    if (dim == 1) return "channel";
    return spatial_name(dim - 2, rank - 2);
}

// Every dim of the first operand, on all operands of its shape.
Signature elementwise(const Types& in, const Types& out) {
    Builder b(in, out);
    const Shape& shape = out[0].shape;
    for (int d = 0; d < shape.size(); ++d) {
        std::vector<Builder::At> places;
        for (size_t i = 0; i < in.size(); ++i)
            if (in[i].shape == shape) places.push_back(Builder::in(i, d));
        for (size_t o = 0; o < out.size(); ++o)
            if (out[o].shape == shape) places.push_back(Builder::out(o, d));
        b.label(dim_name(d, shape.size()), shape[d], places);
    }
    return b;
}

using B = Builder;

// --- Convolution and fully connected layers: x, w, y stand for the operand that has that role in any direction ---

struct ConvPlaces {
    bool x_out, w_out, y_out;
    size_t x, w, y;
};
B::At place(bool output, size_t operand, int dim, int64_t scale = 1) { return {output, operand, dim, scale}; }

Signature conv(const Types& in, const Types& out, const ConvPlaces& p, int64_t groups) {
    const auto shape = [&](bool output, size_t i) -> const Shape& { return (output ? out : in)[i].shape; };
    const Shape &x = shape(p.x_out, p.x), &y = shape(p.y_out, p.y);
    const int rank = x.size() - 2;
    B b(in, out);
    b.label("sample", x[0], {place(p.x_out, p.x, 0), place(p.y_out, p.y, 0)});
    for (int i = 0; i < rank; ++i) {
        // The anchor is what is made, or dy: the other one is read as its windows say.
        const int d = 2 + i;
        B::At ax = place(p.x_out, p.x, d), ay = place(p.y_out, p.y, d);
        (p.x_out ? ay : ax).derived = true;
        b.label(spatial_name(i, rank), p.x_out ? x[d] : y[d], {ax, ay});
    }
    if (groups > 1) {
        b.label("group", groups,
                {place(p.x_out, p.x, 1, x[1] / groups), place(p.w_out, p.w, 0, y[1] / groups), place(p.y_out, p.y, 1, y[1] / groups)});
    } else {
        b.label("channel", x[1], {place(p.x_out, p.x, 1), place(p.w_out, p.w, 1)});
        b.label("filter", y[1], {place(p.w_out, p.w, 0), place(p.y_out, p.y, 1)});
    }
    return b;
}

Signature sign(const ConvOp& op, const Types& in, const Types& out) { return conv(in, out, {false, false, true, 0, 1, 0}, op.groups); }
Signature sign(const ConvGradInputOp& op, const Types& in, const Types& out) {
    return conv(in, out, {true, false, false, 0, 1, 0}, op.groups);
}
Signature sign(const ConvGradWeightOp& op, const Types& in, const Types& out) {
    return conv(in, out, {false, true, false, 0, 0, 1}, op.groups);
}

Signature linear(const Types& in, const Types& out, const ConvPlaces& p) {
    const auto shape = [&](bool output, size_t i) -> const Shape& { return (output ? out : in)[i].shape; };
    const Shape &x = shape(p.x_out, p.x), &y = shape(p.y_out, p.y);
    return B(in, out)
        .label("sample", x[0], {place(p.x_out, p.x, 0), place(p.y_out, p.y, 0)})
        .label("channel", x[1], {place(p.x_out, p.x, 1), place(p.w_out, p.w, 1)})
        .label("filter", y[1], {place(p.w_out, p.w, 0), place(p.y_out, p.y, 1)});
}
Signature sign(const LinearOp&, const Types& in, const Types& out) { return linear(in, out, {false, false, true, 0, 1, 0}); }
Signature sign(const LinearGradInputOp&, const Types& in, const Types& out) { return linear(in, out, {true, false, false, 0, 1, 0}); }
Signature sign(const LinearGradWeightOp&, const Types& in, const Types& out) { return linear(in, out, {false, true, false, 0, 0, 1}); }

// w[F,out..,C,K..]
Signature local_conv(const Types& in, const Types& out, const ConvPlaces& p) {
    const auto shape = [&](bool output, size_t i) -> const Shape& { return (output ? out : in)[i].shape; };
    const Shape &x = shape(p.x_out, p.x), &y = shape(p.y_out, p.y);
    const int rank = x.size() - 2;
    B b(in, out);
    b.label("sample", x[0], {place(p.x_out, p.x, 0), place(p.y_out, p.y, 0)});
    if (!p.x_out)  // the weights lie at output positions: only what is indexed by them is cut in space
        for (int i = 0; i < rank; ++i)
            b.label(spatial_name(i, rank), y[2 + i], {B::read(p.x, 2 + i), place(p.w_out, p.w, 1 + i), place(p.y_out, p.y, 2 + i)});
    b.label("channel", x[1], {place(p.x_out, p.x, 1), place(p.w_out, p.w, 1 + rank)});
    b.label("filter", y[1], {place(p.w_out, p.w, 0), place(p.y_out, p.y, 1)});
    return b;
}
Signature sign(const LocalConvOp&, const Types& in, const Types& out) { return local_conv(in, out, {false, false, true, 0, 1, 0}); }
Signature sign(const LocalConvGradInputOp&, const Types& in, const Types& out) {
    return local_conv(in, out, {true, false, false, 0, 1, 0});
}
Signature sign(const LocalConvGradWeightOp&, const Types& in, const Types& out) {
    return local_conv(in, out, {false, true, false, 0, 0, 1});
}

Signature sign(const BiasOp& op, const Types& in, const Types& out) {
    B b(in, out);
    const Shape& x = in[0].shape;
    for (int d = 0; d < x.size(); ++d) {
        std::vector<B::At> places{B::in(0, d), B::out(0, d)};
        if (d >= op.axis && d < op.axis + in[1].shape.size()) places.push_back(B::in(1, d - op.axis));
        b.label(dim_name(d, x.size()), x[d], places);
    }
    return b;
}
Signature sign(const BiasGradOp& op, const Types& in, const Types& out) {
    B b(in, out);
    const Shape& dy = in[0].shape;
    for (int d = 0; d < dy.size(); ++d) {
        std::vector<B::At> places{B::in(0, d)};
        if (d >= op.axis && d < op.axis + op.rank) places.push_back(B::out(0, d - op.axis));
        b.label(dim_name(d, dy.size()), dy[d], places);
    }
    return b;
}

// --- Pooling and resampling: samples and channels are cut alike, space as the windows say ---

// `made` has the spatial dims that are cut; all inputs are read as it needs.
Signature windowed(const Types& in, const Types& out, bool spatial = true) {
    B b(in, out);
    const Shape& made = out[0].shape;
    const int rank = made.size() - 2;
    for (int d = 0; d < made.size(); ++d) {
        if (d >= 2 && !spatial) break;
        std::vector<B::At> places;
        for (size_t i = 0; i < in.size(); ++i) places.push_back(d < 2 ? B::in(i, d) : B::read(i, d));
        for (size_t o = 0; o < out.size(); ++o) places.push_back(B::out(o, d));
        b.label(d < 2 ? dim_name(d, made.size()) : spatial_name(d - 2, rank), made[d], places);
    }
    return b;
}
Signature sign(const MaxPoolOp&, const Types& in, const Types& out) { return windowed(in, out); }
Signature sign(const MaxPoolGradOp&, const Types& in, const Types& out) { return windowed(in, out); }
// Samples and channels alone: a place is counted in the whole input, which a part of the space does not see.
Signature sign(const MaxIndexOp&, const Types& in, const Types& out) { return windowed(in, out, false); }
Signature sign(const AveragePoolOp&, const Types& in, const Types& out) { return windowed(in, out); }
Signature sign(const AveragePoolGradOp& op, const Types& in, const Types& out) {
    // Without its padding in the divisor, a window that reaches past this part cannot tell padding from a neighbour's rows.
    bool padded = false;
    for (int i = 0; i < op.window.rank(); ++i)
        padded = padded || op.window.pad_lo[i] > 0 || op.window.pad_hi[i] > 0 || (!op.overflow.empty() && op.overflow[i] > 0);
    return windowed(in, out, op.count_padding || !padded);
}
Signature sign(const UpsampleOp&, const Types& in, const Types& out) { return windowed(in, out); }
Signature sign(const UpsampleGradOp&, const Types& in, const Types& out) { return windowed(in, out); }

// Each part of x gives its share of every average, so that the small result is what travels; and dx is made from all of dy.
Signature sign(const AdaptivePoolOp&, const Types& in, const Types& out) {
    B b(in, out);
    const Shape& x = in[0].shape;
    for (int d = 0; d < x.size(); ++d) {
        std::vector<B::At> places{B::in(0, d)};
        if (d < 2) places.push_back(B::out(0, d));
        b.label(dim_name(d, x.size()), x[d], places);
    }
    return b;
}
Signature sign(const AdaptivePoolGradOp&, const Types& in, const Types& out) {
    B b(in, out);
    const Shape& dx = out[0].shape;
    for (int d = 0; d < dx.size(); ++d) {
        std::vector<B::At> places{B::out(0, d)};
        if (d < 2) places.push_back(B::in(0, d));
        b.label(dim_name(d, dx.size()), dx[d], places);
    }
    return b;
}

// --- Normalisation ---

// By position, since a batch of two makes statistics [2,C] and activations [N,C] look alike: these operands are activations, cut along all dims;
// the others have one entry per channel (statistics [2,C], vectors [C]) or are scalars.
Signature per_channel(const Types& in, const Types& out, const std::vector<size_t>& in_activations, bool out_activation) {
    B b(in, out);
    const Shape& x = in[0].shape;
    const auto is_activation = [&](bool output, size_t i) {
        return output ? out_activation : std::find(in_activations.begin(), in_activations.end(), i) != in_activations.end();
    };
    for (int d = 0; d < x.size(); ++d) {
        std::vector<B::At> places;
        const auto add = [&](const Types& types, bool output) {
            for (size_t i = 0; i < types.size(); ++i) {
                const Shape& s = types[i].shape;
                if (is_activation(output, i))
                    places.push_back(place(output, i, d));
                else if (d == 1 && s[s.size() - 1] == x[1])
                    places.push_back(place(output, i, s.size() - 1));
            }
        };
        add(in, false);
        add(out, true);
        b.label(dim_name(d, x.size()), x[d], places);
    }
    return b;
}
Signature sign(const BatchStatsOp&, const Types& in, const Types& out) { return per_channel(in, out, {0}, false); }
Signature sign(const BatchNormalizeOp&, const Types& in, const Types& out) { return per_channel(in, out, {0}, true); }
Signature sign(const BatchNormGradSumsOp&, const Types& in, const Types& out) { return per_channel(in, out, {0, 1}, false); }
Signature sign(const BatchNormGradInputOp&, const Types& in, const Types& out) { return per_channel(in, out, {0, 1}, true); }
Signature sign(const BatchNormFixedGradInputOp&, const Types& in, const Types& out) { return per_channel(in, out, {0}, true); }
Signature sign(const PReluOp&, const Types& in, const Types& out) { return per_channel(in, out, {0}, true); }
Signature sign(const PReluGradInputOp&, const Types& in, const Types& out) { return per_channel(in, out, {0, 2}, true); }
Signature sign(const PReluGradSlopeOp&, const Types& in, const Types& out) { return per_channel(in, out, {0, 1}, false); }
Signature sign(const RunningStatsOp&, const Types& in, const Types& out) {
    return B(in, out).label("channel", in[0].shape[0], {B::in(0, 0), B::in(1, 0), B::out(0, 1)});
}
Signature sign(const RunningUpdateOp&, const Types& in, const Types& out) {
    return B(in, out).label("channel", in[0].shape[0], {B::in(0, 0), B::in(1, 0), B::in(2, 1), B::out(0, 0), B::out(1, 0)});
}

// What an operand of group and layer norm is, by position.
enum class CellRole { Activation, Cells, Affine };

// Along samples the cells are cut with x; along dims that lie inside a cell its statistics are partial.
Signature cells(const Cells& cells, const Types& in, const Types& out, const std::vector<CellRole>& in_roles, CellRole out_role) {
    B b(in, out);
    const Shape& x = in[0].shape;
    const int first_inner = cells.groups > 0 ? 2 : cells.axis;
    for (int d = 0; d < x.size(); ++d) {
        if (d > 0 && d < first_inner) continue;  // channels of groups, or dims that number the cells below the first
        std::vector<B::At> places;
        const auto add = [&](CellRole role, const Shape& s, bool output, size_t i) {
            if (role == CellRole::Activation)
                places.push_back(place(output, i, d));
            else if (role == CellRole::Cells && d == 0)
                places.push_back(place(output, i, 1, s[1] / x[0]));
            else if (role == CellRole::Affine && cells.groups == 0 && d >= cells.axis)
                places.push_back(place(output, i, d - cells.axis));
        };
        for (size_t i = 0; i < in.size(); ++i) add(in_roles[i], in[i].shape, false, i);
        for (size_t o = 0; o < out.size(); ++o) add(out_role, out[o].shape, true, o);
        b.label(dim_name(d, x.size()), x[d], places);
    }
    return b;
}
constexpr CellRole kX = CellRole::Activation, kCells = CellRole::Cells, kAffine = CellRole::Affine;
Signature sign(const CellStatsOp& op, const Types& in, const Types& out) { return cells(op.cells, in, out, {kX}, kCells); }
Signature sign(const CellNormalizeOp& op, const Types& in, const Types& out) {
    return cells(op.cells, in, out, {kX, kCells, kAffine, kAffine}, kX);
}
Signature sign(const CellNormGradAffineOp& op, const Types& in, const Types& out) {
    return cells(op.cells, in, out, {kX, kX, kCells}, kAffine);
}
Signature sign(const CellNormGradSumsOp& op, const Types& in, const Types& out) {
    return cells(op.cells, in, out, {kX, kX, kCells, kAffine}, kCells);
}
Signature sign(const CellNormGradInputOp& op, const Types& in, const Types& out) {
    return cells(op.cells, in, out, {kX, kX, kCells, kAffine, kCells}, kX);
}

// All dims but one.
Signature except(const Types& in, const Types& out, int axis) {
    B b(in, out);
    const Shape& x = out[0].shape;
    for (int d = 0; d < x.size(); ++d) {
        if (d == axis) continue;
        std::vector<B::At> places;
        for (size_t i = 0; i < in.size(); ++i) places.push_back(B::in(i, d));
        for (size_t o = 0; o < out.size(); ++o) places.push_back(B::out(o, d));
        b.label(dim_name(d, x.size()), x[d], places);
    }
    return b;
}
Signature sign(const LrnOp&, const Types& in, const Types& out) { return except(in, out, 1); }
Signature sign(const LrnGradOp&, const Types& in, const Types& out) { return except(in, out, 1); }
Signature sign(const SoftmaxOp& op, const Types& in, const Types& out) { return except(in, out, op.axis); }
Signature sign(const SoftmaxGradOp& op, const Types& in, const Types& out) { return except(in, out, op.axis); }

Signature sign(const LogSoftmaxOp& op, const Types& in, const Types& out) { return except(in, out, op.axis); }
Signature sign(const LogSoftmaxGradOp& op, const Types& in, const Types& out) { return except(in, out, op.axis); }

// --- Elementwise and rearranging ---

Signature passing_sums(Signature s) {
    s.linear = true;
    return s;
}
Signature sign(const UnaryOp&, const Types& in, const Types& out) { return elementwise(in, out); }
Signature sign(const UnaryGradOp&, const Types& in, const Types& out) { return elementwise(in, out); }
Signature sign(const PointwiseOp&, const Types& in, const Types& out) { return elementwise(in, out); }
Signature sign(const PointwiseGradOp&, const Types& in, const Types& out) { return elementwise(in, out); }
Signature sign(const DropoutOp&, const Types& in, const Types& out) { return passing_sums(elementwise(in, out)); }
Signature sign(const AddOp&, const Types& in, const Types& out) { return passing_sums(elementwise(in, out)); }
Signature sign(const MulOp&, const Types& in, const Types& out) { return elementwise(in, out); }
Signature sign(const ScaleOp&, const Types& in, const Types& out) { return passing_sums(elementwise(in, out)); }

Signature sign(const ExpandOp&, const Types& in, const Types& out) {
    B b(in, out);
    const Shape &x = in[0].shape, &y = out[0].shape;
    for (int d = 0; d < y.size(); ++d) {
        std::vector<B::At> places{B::out(0, d)};
        if (x[d] == y[d]) places.push_back(B::in(0, d));
        b.label(dim_name(d, y.size()), y[d], places);
    }
    return b;
}
Signature sign(const SumToOp&, const Types& in, const Types& out) {
    B b(in, out);
    const Shape &x = in[0].shape, &y = out[0].shape;
    for (int d = 0; d < x.size(); ++d) {
        std::vector<B::At> places{B::in(0, d)};
        if (x[d] == y[d]) places.push_back(B::out(0, d));
        b.label(dim_name(d, x.size()), x[d], places);
    }
    return b;
}

// Every dim of the result; the inputs are read as it needs along the dims where indices move.
Signature rearranged(const Types& in, const Types& out, const std::vector<bool>& moves) {
    B b(in, out);
    const Shape& y = out[0].shape;
    for (int d = 0; d < y.size(); ++d) {
        std::vector<B::At> places{B::out(0, d)};
        for (size_t i = 0; i < in.size(); ++i) places.push_back(moves[static_cast<size_t>(d)] ? B::read(i, d) : B::in(i, d));
        b.label(dim_name(d, y.size()), y[d], places);
    }
    return b;
}
Signature sign(const ConcatOp& op, const Types& in, const Types& out) {
    std::vector<bool> moves(static_cast<size_t>(out[0].shape.size()));
    moves[static_cast<size_t>(op.axis)] = true;
    return rearranged(in, out, moves);
}
Signature sign(const SliceOp&, const Types& in, const Types& out) {
    std::vector<bool> moves;
    for (int d = 0; d < out[0].shape.size(); ++d) moves.push_back(in[0].shape[d] != out[0].shape[d]);
    return rearranged(in, out, moves);
}
Signature sign(const PadOp&, const Types& in, const Types& out) {
    std::vector<bool> moves;
    for (int d = 0; d < out[0].shape.size(); ++d) moves.push_back(in[0].shape[d] != out[0].shape[d]);
    return rearranged(in, out, moves);
}
Signature sign(const TransposeOp& op, const Types& in, const Types& out) {
    B b(in, out);
    for (int d = 0; d < out[0].shape.size(); ++d)
        b.label(dim_name(d, out[0].shape.size()), out[0].shape[d], {B::in(0, static_cast<int>(op.order[d])), B::out(0, d)});
    return b.linear();
}

// Runs of dims with one product belong together: the leading dim of a run on either side can be cut, in units of whichever is coarser.
Signature sign(const ReshapeOp&, const Types& in, const Types& out) {
    B b(in, out);
    const Shape &x = in[0].shape, &y = out[0].shape;
    int i = 0, o = 0;
    while (i < x.size() && o < y.size()) {
        const int first_in = i, first_out = o;
        int64_t px = x[i++], py = y[o++];
        while (px != py && i <= x.size() && o <= y.size()) {
            if (px < py && i < x.size())
                px *= x[i++];
            else if (o < y.size())
                py *= y[o++];
            else
                break;
        }
        if (px != py) break;
        const int64_t a = x[first_in], c = y[first_out], units = std::min(a, c);
        if (units > 1 && a % units == 0 && c % units == 0)
            b.label(dim_name(first_out, y.size()), units, {B::in(0, first_in, a / units), B::out(0, first_out, c / units)});
    }
    return b.linear();
}

// --- Losses: logits[N,K,..] and targets[N,..] ---

Signature labelled(const Types& in, const Types& out) {
    B b(in, out);
    const Shape& logits = in[0].shape;
    for (int d = 0; d < logits.size(); ++d) {
        if (d == 1) continue;
        std::vector<B::At> places{B::in(0, d), B::in(1, d == 0 ? 0 : d - 1)};
        if (out[0].shape == logits) places.push_back(B::out(0, d));
        b.label(dim_name(d, logits.size()), logits[d], places);
    }
    return b;
}
Signature sign(const CrossEntropyOp&, const Types& in, const Types& out) { return labelled(in, out); }
Signature sign(const CrossEntropyGradOp&, const Types& in, const Types& out) { return labelled(in, out); }
Signature sign(const CorrectOp&, const Types& in, const Types& out) { return labelled(in, out); }

// The same for one loss of each target: everything but the classes is cut alike.
Signature sign(const NllOp&, const Types& in, const Types& out) {
    B b(in, out);
    const Shape& x = in[0].shape;
    for (int d = 0; d < x.size(); ++d) {
        const int t = d == 0 ? 0 : d - 1;
        if (d != 1) b.label(dim_name(d, x.size()), x[d], {B::in(0, d), B::in(1, t), B::out(0, t), B::out(1, t)});
    }
    return b;
}
Signature sign(const NllGradOp&, const Types& in, const Types& out) {
    B b(in, out);
    const Shape& dx = out[0].shape;
    for (int d = 0; d < dx.size(); ++d) {
        const int t = d == 0 ? 0 : d - 1;
        if (d != 1) b.label(dim_name(d, dx.size()), dx[d], {B::in(0, t), B::in(1, t), B::out(0, d)});
    }
    return b;
}

// All dims of the first input, on every operand of its shape; results without them are sums.
Signature reduced(const Types& in, const Types& out) {
    B b(in, out);
    const Shape& x = in[0].shape;
    for (int d = 0; d < x.size(); ++d) {
        std::vector<B::At> places;
        for (size_t i = 0; i < in.size(); ++i)
            if (i == 0 || in[i].shape == x) places.push_back(B::in(i, d));
        for (size_t o = 0; o < out.size(); ++o)
            if (out[o].shape == x && x.size() > 1) places.push_back(B::out(o, d));
        b.label(dim_name(d, x.size()), x[d], places);
    }
    return b;
}
Signature sign(const TargetWeightOp&, const Types& in, const Types& out) {
    B b(in, out);
    for (int d = 0; d < in[0].shape.size(); ++d)
        b.label(dim_name(d == 0 ? 0 : d + 1, in[0].shape.size() + 1), in[0].shape[d], {B::in(0, d)});
    return b;
}
Signature sign(const ErrorLossOp&, const Types& in, const Types& out) { return reduced(in, out); }
Signature sign(const ErrorLossGradOp&, const Types& in, const Types& out) { return elementwise(in, out); }

// --- Update ---

Signature sign(const SquaredNormOp&, const Types& in, const Types& out) {
    B b(in, out);
    for (int d = 0; d < in[0].shape.size(); ++d) b.label(dim_name(d, in[0].shape.size()), in[0].shape[d], {B::in(0, d)});
    return b;
}
Signature sign(const ClipScaleOp&, const Types& in, const Types& out) { return B(in, out); }

// Parameter, gradient and slots, by position: a scalar parameter has the shape of other operands.
Signature update(const Types& in, const Types& out, size_t slots) {
    B b(in, out);
    const Shape& w = in[0].shape;
    for (int d = 0; d < w.size(); ++d) {
        std::vector<B::At> places{B::in(0, d), B::in(1, d)};
        for (size_t s = 0; s < slots; ++s) places.push_back(B::in(3 + s, d));
        for (size_t o = 0; o < out.size(); ++o) places.push_back(B::out(o, d));
        b.label(dim_name(d, w.size()), w[d], places);
    }
    return b;
}
Signature sign(const UpdateOp& op, const Types& in, const Types& out) {
    return update(in, out, static_cast<size_t>(slots_of(op.rule.rule)));
}
Signature sign(const LambDirectionOp&, const Types& in, const Types& out) { return update(in, out, 2); }
Signature sign(const LambApplyOp&, const Types& in, const Types& out) { return update(in, out, 0); }

// What the compiler makes itself is placed by it.
Signature sign(const PackOp&, const Types& in, const Types& out) { return B(in, out); }
Signature sign(const UnpackOp&, const Types& in, const Types& out) { return B(in, out); }
Signature sign(const MergeStatsOp&, const Types& in, const Types& out) { return B(in, out); }

}  // namespace

Signature signature_of(const Op& op, const std::vector<ValueType>& inputs, const std::vector<ValueType>& outputs) {
    return std::visit([&](const auto& o) { return sign(o, inputs, outputs); }, op);
}

int dim_of(const DimRoles& roles, int label) {
    const auto at = std::find_if(roles.begin(), roles.end(), [&](const DimRole& r) { return r.label == label; });
    return at == roles.end() ? kNone : static_cast<int>(at - roles.begin());
}

std::string spatial_name(int i, int rank) {
    static const char* const names[] = {"depth", "height", "width"};
    return rank >= 1 && rank <= 3 ? names[3 - rank + i] : "dim" + std::to_string(i + 2);
}

}  // namespace convoy
