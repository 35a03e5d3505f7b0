// What a step of training has beside its layers: losses, what is counted beside them, and updates.
#include "kernels/op_cases/draws.h"
#include "kernels/op_cases/families.h"

namespace convoy::op_testing {

namespace {

// --- Losses -----------------------------------------------------------------------------------------------------------------------

struct Classes {
    Tensor logits, target, weights, normaliser;
    bool weighted;
    double smoothing;
    std::vector<std::pair<Element, Tensor>> inputs() const {
        std::vector<std::pair<Element, Tensor>> list{{kReal, logits}, {Element::Index, target}};
        if (weighted) list.insert(list.end(), {{kPrecise, weights}, {kPrecise, normaliser}});
        return list;
    }
};
Classes draw_classes(Draw& d) {
    const Shape x = d.coin() ? Shape{d.between(1, 40), d.between(2, 150)} : activation(d, 12);
    return {d.normal(x), d.labels(join({x[0]}, x.slice(2)), x[1]), positive(d, {x[1]}), positive(d, {1}), d.coin(), d.coin() ? 0.1 : 0};
}
OpCase cross_entropy(Draw& d) {
    const auto c = draw_classes(d);
    return one(CrossEntropyOp{c.smoothing, 0.37}, c.inputs());
}
OpCase cross_entropy_grad(Draw& d) {
    const auto c = draw_classes(d);
    return one(CrossEntropyGradOp{c.smoothing, 0.37}, c.inputs());
}
OpCase correct(Draw& d) {
    const auto c = draw_classes(d);
    return one(CorrectOp{}, {{kReal, c.logits}, {Element::Index, c.target}});
}
OpCase nll(Draw& d) {
    const auto c = draw_classes(d);
    return one(NllOp{d.between(-1, 1)}, {{kReal, c.logits}, {Element::Index, c.target}, {kPrecise, c.weights}});
}
OpCase nll_grad(Draw& d) {
    const auto c = draw_classes(d);
    return one(NllGradOp{d.between(-1, 1)}, {{kReal, d.normal(c.target.shape())}, {Element::Index, c.target}, {kPrecise, c.weights}});
}
OpCase target_weight(Draw& d) {
    const auto c = draw_classes(d);
    return one(TargetWeightOp{}, {{Element::Index, c.target}, {kPrecise, c.weights}});
}
OpCase error_loss(Draw& d) {
    const Shape x = any_activation(d);
    return one(ErrorLossOp{d.coin() ? ErrorKind::Squared : ErrorKind::Absolute, 0.37}, {{kReal, d.normal(x)}, {kReal, d.normal(x)}});
}
OpCase error_loss_grad(Draw& d) {
    const Shape x = any_activation(d);
    return one(ErrorLossGradOp{d.coin() ? ErrorKind::Squared : ErrorKind::Absolute, 0.37}, {{kReal, d.normal(x)}, {kReal, d.normal(x)}});
}

// --- Update -----------------------------------------------------------------------------------------------------------------------

OpCase squared_norm(Draw& d) { return one(SquaredNormOp{}, {{d.coin() ? kReal : kPrecise, d.normal(any_activation(d))}}); }
OpCase clip_scale(Draw& d) { return one(ClipScaleOp{d.real(0.1, 3)}, {{kPrecise, positive(d, {1})}}); }

OpCase update(Draw& d) {
    OpCase c;
    const UpdateOp op{draw_rule(d), d.coin()};
    const int hyper = c.input(kPrecise, draw_hyper(d));
    add_update(c, d, op, any_activation(d), hyper);
    add_update_outputs(c);
    return c;
}
OpCase lamb_direction(Draw& d) {
    const Shape shape = any_activation(d);
    const bool clipped = d.coin();
    std::vector<std::pair<Element, Tensor>> in{{kPrecise, d.normal(shape)},
                                               {kPrecise, d.normal(shape)},
                                               {kPrecise, draw_hyper(d)},
                                               {kPrecise, d.normal(shape)},
                                               {kPrecise, positive(d, shape)}};
    if (clipped) in.emplace_back(kPrecise, positive(d, {1}));
    return one(LambDirectionOp{{.rule = Rule::Lamb, .weight_decay = 0.01}, clipped}, in);
}
OpCase lamb_apply(Draw& d) {
    const Shape shape = any_activation(d);
    return one(LambApplyOp{}, {{kPrecise, d.normal(shape)},
                               {kPrecise, d.normal(shape)},
                               {kPrecise, draw_hyper(d)},
                               {kPrecise, positive(d, {1})},
                               {kPrecise, positive(d, {1})}});
}

}  // namespace

std::vector<NamedCase> training_cases() {
    return {{"cross_entropy", cross_entropy},
            {"cross_entropy_grad", cross_entropy_grad},
            {"nll", nll},
            {"nll_grad", nll_grad},
            {"target_weight", target_weight},
            {"error_loss", error_loss},
            {"error_loss_grad", error_loss_grad},
            {"correct", correct},
            {"squared_norm", squared_norm},
            {"clip_scale", clip_scale},
            {"update", update},
            {"lamb_direction", lamb_direction},
            {"lamb_apply", lamb_apply}};
}

}  // namespace convoy::op_testing
