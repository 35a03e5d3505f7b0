// Normalisation: over the batch, over cells (groups, layers), over neighbouring channels; and merging statistics.
#include "kernels/op_cases/draws.h"
#include "kernels/op_cases/families.h"

namespace convoy::op_testing {

namespace {

OpCase batch_stats(Draw& d) { return one(BatchStatsOp{}, {{kReal, spread(d, any_activation(d))}}); }
OpCase running_stats(Draw& d) {
    const int64_t c = d.between(1, 300);
    return one(RunningStatsOp{}, {{kPrecise, d.normal({c})}, {kPrecise, positive(d, {c})}});
}
OpCase running_update(Draw& d) {
    const int64_t c = d.between(1, 300);
    return one(RunningUpdateOp{.momentum = 0.1, .count = d.between(1, 50)},
               {{kPrecise, d.normal({c})}, {kPrecise, positive(d, {c})}, {kPrecise, positive(d, {2, c})}});
}
OpCase batch_normalize(Draw& d) {
    const auto n = draw_norm(d);
    return one(BatchNormalizeOp{}, {{kReal, n.x}, {kPrecise, n.stats}, {kPrecise, n.gamma}, {kPrecise, n.beta}});
}
OpCase batch_norm_grad_sums(Draw& d) {
    const auto n = draw_norm(d);
    return one(BatchNormGradSumsOp{}, {{kReal, n.x}, {kReal, n.dy}, {kPrecise, n.stats}});
}
OpCase batch_norm_grad_input(Draw& d) {
    const auto n = draw_norm(d);
    return one(BatchNormGradInputOp{.count = n.count()},
               {{kReal, n.x}, {kReal, n.dy}, {kPrecise, n.stats}, {kPrecise, n.gamma}, {kPrecise, n.dgamma}, {kPrecise, n.dbeta}});
}
OpCase batch_norm_fixed_grad_input(Draw& d) {
    const auto n = draw_norm(d);
    return one(BatchNormFixedGradInputOp{}, {{kReal, n.dy}, {kPrecise, n.stats}, {kPrecise, n.gamma}});
}

struct CellInputs {
    Cells cells;
    Tensor x, dy, stats, gamma, beta, sums;
};
CellInputs draw_cells(Draw& d) {
    CellInputs c;
    Shape shape = activation(d, 24);
    if (d.coin()) {
        c.cells.groups = d.between(1, 3);
        shape[1] = c.cells.groups * d.between(1, 6);
    } else {
        c.cells.axis = static_cast<int>(d.between(1, shape.size() - 1));
        if (shape.back() < 8) shape[shape.size() - 1] = 8;
    }
    c.x = spread(d, shape);
    c.dy = d.normal(shape);
    const Shape stats = infer(CellStatsOp{c.cells}, {{shape, kReal}})[0].shape;
    c.stats = by_reference(CellStatsOp{c.cells}, {c.x}, stats);
    const Shape affine = c.cells.groups > 0 ? Shape{shape[1]} : shape.slice(c.cells.axis);
    c.gamma = positive(d, affine);
    c.beta = d.normal(affine);
    c.sums = by_reference(CellNormGradSumsOp{c.cells}, {c.x, c.dy, c.stats, c.gamma}, stats);
    return c;
}
OpCase cell_stats(Draw& d) {
    const auto c = draw_cells(d);
    return one(CellStatsOp{c.cells}, {{kReal, c.x}});
}
OpCase cell_normalize(Draw& d) {
    const auto c = draw_cells(d);
    return one(CellNormalizeOp{c.cells}, {{kReal, c.x}, {kPrecise, c.stats}, {kPrecise, c.gamma}, {kPrecise, c.beta}});
}
OpCase cell_norm_grad_affine(Draw& d) {
    const auto c = draw_cells(d);
    return one(CellNormGradAffineOp{c.cells}, {{kReal, c.x}, {kReal, c.dy}, {kPrecise, c.stats}});
}
OpCase cell_norm_grad_sums(Draw& d) {
    const auto c = draw_cells(d);
    return one(CellNormGradSumsOp{c.cells}, {{kReal, c.x}, {kReal, c.dy}, {kPrecise, c.stats}, {kPrecise, c.gamma}});
}
OpCase cell_norm_grad_input(Draw& d) {
    const auto c = draw_cells(d);
    return one(CellNormGradInputOp{c.cells}, {{kReal, c.x}, {kReal, c.dy}, {kPrecise, c.stats}, {kPrecise, c.gamma}, {kPrecise, c.sums}});
}
OpCase lrn(Draw& d) {
    return one(LrnOp{.size = d.between(1, 6), .alpha = 0.3, .beta = 0.75, .k = 1.5}, {{kReal, d.normal(activation(d))}});
}
OpCase lrn_grad(Draw& d) {
    const Shape x = activation(d);
    return one(LrnGradOp{.size = d.between(1, 6), .alpha = 0.3, .beta = 0.75, .k = 1.5}, {{kReal, d.normal(x)}, {kReal, d.normal(x)}});
}
OpCase merge_stats(Draw& d) {
    const bool many = d.between(0, 3) == 0;  // as many as a large cluster has ranks
    const int64_t parts = many ? d.between(200, 900) : d.between(1, 5), cells = d.between(1, many ? 20 : 300);
    MergeStatsOp op;
    for (int64_t p = 0; p < parts; ++p) op.counts.push_back(p > 0 && d.between(0, 3) == 0 ? 0 : d.between(1, 50));
    return one(op, {{kPrecise, positive(d, {parts, 2, cells})}});
}

}  // namespace

std::vector<NamedCase> norm_cases() {
    return {{"batch_stats", batch_stats},
            {"running_stats", running_stats},
            {"running_update", running_update},
            {"batch_normalize", batch_normalize},
            {"batch_norm_grad_sums", batch_norm_grad_sums},
            {"batch_norm_grad_input", batch_norm_grad_input},
            {"batch_norm_fixed_grad_input", batch_norm_fixed_grad_input},
            {"cell_stats", cell_stats},
            {"cell_normalize", cell_normalize},
            {"cell_norm_grad_affine", cell_norm_grad_affine},
            {"cell_norm_grad_sums", cell_norm_grad_sums},
            {"cell_norm_grad_input", cell_norm_grad_input},
            {"lrn", lrn},
            {"lrn_grad", lrn_grad},
            {"merge_stats", merge_stats}};
}

}  // namespace convoy::op_testing
