#include "program/in_place.h"

namespace convoy {

namespace {

using Pairs = std::vector<std::pair<int, int>>;

// {output, input} of an op that may share memory; none for an op that is not listed.
template <class SomeOp>
Pairs sharing(const SomeOp&, int) {
    return {};
}
Pairs sharing(const UnaryOp&, int) { return {{0, 0}}; }
Pairs sharing(const UnaryGradOp&, int) { return {{0, 0}, {0, 1}}; }
Pairs sharing(const PointwiseOp&, int) { return {{0, 0}}; }
Pairs sharing(const PointwiseGradOp&, int) { return {{0, 0}, {0, 1}}; }
Pairs sharing(const BiasOp&, int) { return {{0, 0}}; }
Pairs sharing(const AddOp&, int inputs) {
    Pairs pairs;
    for (int i = 0; i < inputs; ++i) pairs.emplace_back(0, i);
    return pairs;
}
Pairs sharing(const MulOp&, int) { return {{0, 0}, {0, 1}}; }
Pairs sharing(const ScaleOp&, int) { return {{0, 0}}; }
Pairs sharing(const DropoutOp&, int) { return {{0, 0}}; }
Pairs sharing(const BatchNormalizeOp&, int) { return {{0, 0}}; }
Pairs sharing(const RunningUpdateOp&, int) { return {{0, 0}, {1, 1}}; }
Pairs sharing(const UpdateOp& op, int) {
    Pairs pairs{{0, 0}};
    for (int i = 0; i < slots_of(op.rule.rule); ++i) pairs.emplace_back(1 + i, 3 + i);
    return pairs;
}
Pairs sharing(const LambDirectionOp&, int) { return {{1, 3}, {2, 4}}; }
Pairs sharing(const LambApplyOp&, int) { return {{0, 0}}; }

}  // namespace

Pairs in_place_of(const Op& op, int inputs) {
    return std::visit([&](const auto& each) { return sharing(each, inputs); }, op);
}

}  // namespace convoy
