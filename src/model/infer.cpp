// Shape inference: what each op requires of its inputs, and the types of its outputs.
#include "base/error.h"
#include "model/infer_rules.h"

namespace convoy {

namespace infer_rules {

void expect_count(const Types& in, size_t least, size_t most) {
    require(least <= in.size() && in.size() <= most, "expected {} inputs, found {}",
            least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most), in.size());
}

void expect_shape(const ValueType& type, const Shape& shape, const char* what) {
    require(type.shape == shape, "{} is {}, expected {}", what, to_string(type.shape), to_string(shape));
}

void expect_same(const Types& in) {
    for (const auto& t : in) expect_shape(t, in[0].shape, "an input");
}

void expect_rank2(const Types& in) { require(in[0].shape.size() >= 2, "the input is {}, expected N x C ...", to_string(in[0].shape)); }

Types pair_of_one_shape(const Types& in) {
    expect_count(in, 2);
    expect_same(in);
    return {real(in[0].shape)};
}

}  // namespace infer_rules

std::vector<ValueType> infer(const Op& op, const std::vector<ValueType>& inputs) {
    return std::visit([&](const auto& o) { return infer_rules::infer_op(o, inputs); }, op);
}

}  // namespace convoy
