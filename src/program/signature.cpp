// Which labelling each op has.
#include "program/signature.h"

#include <algorithm>

#include "program/labelling.h"

namespace convoy {

namespace {

using namespace labelling;

// --- Convolution and fully connected layers ---

Signature sign(const ConvOp& op, const Types& in, const Types& out) { return convolution(in, out, kForward, op.groups); }
Signature sign(const ConvGradInputOp& op, const Types& in, const Types& out) { return convolution(in, out, kGradInput, op.groups); }
Signature sign(const ConvGradWeightOp& op, const Types& in, const Types& out) { return convolution(in, out, kGradWeight, op.groups); }
Signature sign(const LinearOp&, const Types& in, const Types& out) { return fully_connected(in, out, kForward); }
Signature sign(const LinearGradInputOp&, const Types& in, const Types& out) { return fully_connected(in, out, kGradInput); }
Signature sign(const LinearGradWeightOp&, const Types& in, const Types& out) { return fully_connected(in, out, kGradWeight); }
Signature sign(const LocalConvOp&, const Types& in, const Types& out) { return local_convolution(in, out, kForward); }
Signature sign(const LocalConvGradInputOp&, const Types& in, const Types& out) { return local_convolution(in, out, kGradInput); }
Signature sign(const LocalConvGradWeightOp&, const Types& in, const Types& out) { return local_convolution(in, out, kGradWeight); }

Signature sign(const BiasOp& op, const Types& in, const Types& out) {
    return by_dim(in, out, in[0].shape, [&](int d) {
        Places places{At::in(0, d), At::out(0, d)};
        if (d >= op.axis && d < op.axis + in[1].shape.size()) places.push_back(At::in(1, d - op.axis));
        return places;
    });
}
Signature sign(const BiasGradOp& op, const Types& in, const Types& out) {
    return by_dim(in, out, in[0].shape, [&](int d) {
        Places places{At::in(0, d)};
        if (d >= op.axis && d < op.axis + op.rank) places.push_back(At::out(0, d - op.axis));
        return places;
    });
}

// --- Pooling and resampling ---

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
    return by_dim(in, out, in[0].shape, [](int d) { return d < 2 ? Places{At::in(0, d), At::out(0, d)} : Places{At::in(0, d)}; });
}
Signature sign(const AdaptivePoolGradOp&, const Types& in, const Types& out) {
    return by_dim(in, out, out[0].shape, [](int d) { return d < 2 ? Places{At::in(0, d), At::out(0, d)} : Places{At::out(0, d)}; });
}

// --- Normalisation ---

Signature sign(const BatchStatsOp&, const Types& in, const Types& out) { return per_channel(in, out, {0}, false); }
Signature sign(const BatchNormalizeOp&, const Types& in, const Types& out) { return per_channel(in, out, {0}, true); }
Signature sign(const BatchNormGradSumsOp&, const Types& in, const Types& out) { return per_channel(in, out, {0, 1}, false); }
Signature sign(const BatchNormGradInputOp&, const Types& in, const Types& out) { return per_channel(in, out, {0, 1}, true); }
Signature sign(const BatchNormFixedGradInputOp&, const Types& in, const Types& out) { return per_channel(in, out, {0}, true); }
Signature sign(const RunningStatsOp&, const Types& in, const Types& out) {
    return Builder(in, out).label("channel", in[0].shape[0], {At::in(0, 0), At::in(1, 0), At::out(0, 1)});
}
Signature sign(const RunningUpdateOp&, const Types& in, const Types& out) {
    return Builder(in, out).label("channel", in[0].shape[0], {At::in(0, 0), At::in(1, 0), At::in(2, 1), At::out(0, 0), At::out(1, 0)});
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

Signature sign(const LrnOp&, const Types& in, const Types& out) { return all_but(in, out, 1); }
Signature sign(const LrnGradOp&, const Types& in, const Types& out) { return all_but(in, out, 1); }
Signature sign(const SoftmaxOp& op, const Types& in, const Types& out) { return all_but(in, out, op.axis); }
Signature sign(const SoftmaxGradOp& op, const Types& in, const Types& out) { return all_but(in, out, op.axis); }
Signature sign(const LogSoftmaxOp& op, const Types& in, const Types& out) { return all_but(in, out, op.axis); }
Signature sign(const LogSoftmaxGradOp& op, const Types& in, const Types& out) { return all_but(in, out, op.axis); }

// --- Elementwise and rearranging ---

Signature sign(const UnaryOp&, const Types& in, const Types& out) { return elementwise(in, out); }
Signature sign(const UnaryGradOp&, const Types& in, const Types& out) { return elementwise(in, out); }
Signature sign(const PointwiseOp&, const Types& in, const Types& out) { return elementwise(in, out); }
Signature sign(const PointwiseGradOp&, const Types& in, const Types& out) { return elementwise(in, out); }
Signature sign(const PReluOp&, const Types& in, const Types& out) { return per_channel(in, out, {0}, true); }
Signature sign(const PReluGradInputOp&, const Types& in, const Types& out) { return per_channel(in, out, {0, 2}, true); }
Signature sign(const PReluGradSlopeOp&, const Types& in, const Types& out) { return per_channel(in, out, {0, 1}, false); }
Signature sign(const DropoutOp&, const Types& in, const Types& out) { return passing_sums(elementwise(in, out)); }
Signature sign(const AddOp&, const Types& in, const Types& out) { return passing_sums(elementwise(in, out)); }
Signature sign(const MulOp&, const Types& in, const Types& out) { return elementwise(in, out); }
Signature sign(const ScaleOp&, const Types& in, const Types& out) { return passing_sums(elementwise(in, out)); }

Signature sign(const ExpandOp&, const Types& in, const Types& out) {
    const Shape &x = in[0].shape, &y = out[0].shape;
    return by_dim(in, out, y, [&](int d) { return x[d] == y[d] ? Places{At::in(0, d), At::out(0, d)} : Places{At::out(0, d)}; });
}
Signature sign(const SumToOp&, const Types& in, const Types& out) {
    const Shape &x = in[0].shape, &y = out[0].shape;
    return by_dim(in, out, x, [&](int d) { return x[d] == y[d] ? Places{At::in(0, d), At::out(0, d)} : Places{At::in(0, d)}; });
}

Signature sign(const ConcatOp& op, const Types& in, const Types& out) {
    std::vector<bool> moves(static_cast<size_t>(out[0].shape.size()));
    moves[static_cast<size_t>(op.axis)] = true;
    return rearranged(in, out, moves);
}
Signature moved_where_lengths_differ(const Types& in, const Types& out) {
    std::vector<bool> moves;
    for (int d = 0; d < out[0].shape.size(); ++d) moves.push_back(in[0].shape[d] != out[0].shape[d]);
    return rearranged(in, out, moves);
}
Signature sign(const SliceOp&, const Types& in, const Types& out) { return moved_where_lengths_differ(in, out); }
Signature sign(const PadOp&, const Types& in, const Types& out) { return moved_where_lengths_differ(in, out); }
Signature sign(const TransposeOp& op, const Types& in, const Types& out) {
    const auto places = [&](int d) { return Places{At::in(0, static_cast<int>(op.order[d])), At::out(0, d)}; };
    return passing_sums(by_dim(in, out, out[0].shape, places));
}

// Runs of dims with one product belong together: the leading dim of a run on either side can be cut, in units of whichever is coarser.
Signature sign(const ReshapeOp&, const Types& in, const Types& out) {
    Builder b(in, out);
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
            b.label(dim_name(first_out, y.size()), units, {At::in(0, first_in, a / units), At::out(0, first_out, c / units)});
    }
    return passing_sums(b);
}

// --- Losses: logits[N,K,..] and targets[N,..] ---

Signature sign(const CrossEntropyOp&, const Types& in, const Types& out) { return logits_and_targets(in, out); }
Signature sign(const CrossEntropyGradOp&, const Types& in, const Types& out) { return logits_and_targets(in, out); }
Signature sign(const CorrectOp&, const Types& in, const Types& out) { return logits_and_targets(in, out); }

// The same for one loss of each target: everything but the classes is cut alike.
Signature sign(const NllOp&, const Types& in, const Types& out) {
    return by_dim(in, out, in[0].shape, [](int d) {
        const int t = d == 0 ? 0 : d - 1;
        return d == 1 ? Places{} : Places{At::in(0, d), At::in(1, t), At::out(0, t), At::out(1, t)};
    });
}
Signature sign(const NllGradOp&, const Types& in, const Types& out) {
    return by_dim(in, out, out[0].shape, [](int d) {
        const int t = d == 0 ? 0 : d - 1;
        return d == 1 ? Places{} : Places{At::in(0, t), At::in(1, t), At::out(0, d)};
    });
}
Signature sign(const TargetWeightOp&, const Types& in, const Types& out) {
    const Shape& target = in[0].shape;
    Builder b(in, out);
    for (int d = 0; d < target.size(); ++d) b.label(dim_name(d == 0 ? 0 : d + 1, target.size() + 1), target[d], {At::in(0, d)});
    return b;
}
Signature sign(const ErrorLossOp&, const Types& in, const Types& out) {
    return by_dim(in, out, in[0].shape, [](int d) { return Places{At::in(0, d), At::in(1, d)}; });
}
Signature sign(const ErrorLossGradOp&, const Types& in, const Types& out) { return elementwise(in, out); }

// --- Update ---

Signature sign(const SquaredNormOp&, const Types& in, const Types& out) {
    return by_dim(in, out, in[0].shape, [](int d) { return Places{At::in(0, d)}; });
}
Signature sign(const ClipScaleOp&, const Types& in, const Types& out) { return Builder(in, out); }
Signature sign(const UpdateOp& op, const Types& in, const Types& out) {
    return update(in, out, static_cast<size_t>(slots_of(op.rule.rule)));
}
Signature sign(const LambDirectionOp&, const Types& in, const Types& out) { return update(in, out, 2); }
Signature sign(const LambApplyOp&, const Types& in, const Types& out) { return update(in, out, 0); }

// What the compiler makes itself is placed by it.
Signature sign(const PackOp&, const Types& in, const Types& out) { return Builder(in, out); }
Signature sign(const UnpackOp&, const Types& in, const Types& out) { return Builder(in, out); }
Signature sign(const MergeStatsOp&, const Types& in, const Types& out) { return Builder(in, out); }

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
