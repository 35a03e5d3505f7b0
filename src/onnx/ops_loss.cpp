// Losses over classes: the negative log-likelihood, and with the logarithm of softmax before it, cross-entropy.
#include <limits>

#include "onnx/context.h"

namespace convoy::onnx {

namespace {

// Sets output 0 from log-probabilities [N,K,..].
void likelihood(NodeContext& c, ValueId log_probabilities) {
    const std::string reduction = c.text("reduction", "mean");
    const NllOp op{.ignored = c.has_attribute("ignore_index") ? c.integer("ignore_index", 0) : std::numeric_limits<int64_t>::min()};
    const Shape shape = c.shape_of(log_probabilities);
    if (shape.size() < 2) c.refuse(fmt::format("its input is {}, expected N x K ...", to_string(shape)));
    const ValueId target = c.value(1);
    if (c.graph().value(target).type.element != Element::Index) c.refuse("its targets must be an input of the network that holds classes");
    const ValueId weights = c.has(2) ? c.value(2) : c.constant(c.filled({shape[1]}, 1), ".class_weights");
    const auto made = c.add_all(op, {log_probabilities, target, weights});
    if (reduction == "none") return c.set(0, made[0]);
    std::vector<int> all;
    for (int d = 0; d < shape.size() - 1; ++d) all.push_back(d);
    const ValueId sum = c.reshape(c.sum_over(made[0], all), {});
    if (reduction == "sum") return c.set(0, sum);
    if (reduction != "mean") c.refuse(fmt::format("a reduction of \"{}\", expected none, sum or mean", reduction));
    const ValueId weight = c.reshape(c.sum_over(made[1], all), {});
    c.set(0, c.times(sum, c.map(Pointwise::Reciprocal, weight)));
}

void nll(NodeContext& c) { likelihood(c, c.value(0)); }

void cross_entropy(NodeContext& c) {
    const ValueId y = c.add(LogSoftmaxOp{1}, {c.value(0)});
    likelihood(c, y);
    if (c.wants(1)) c.set(1, y);
}

}  // namespace

std::span<const OpEntry> loss_ops() {
    static constexpr OpEntry entries[] = {{"NegativeLogLikelihoodLoss", nll}, {"SoftmaxCrossEntropyLoss", cross_entropy}};
    return entries;
}

}  // namespace convoy::onnx
