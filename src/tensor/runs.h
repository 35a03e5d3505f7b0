// Boxes of tensors as runs of elements that lie one after the other, so that they are copied and compared many at a time.
#pragma once

#include <functional>

#include "tensor/box.h"

namespace convoy {

// Calls fn(offset in a, offset in b, length), in elements, for every run of elements that lie one after the other both in box `in_a` of a row-major tensor of
// shape `a` and in box `in_b` of one of shape `b`. Bug when the boxes differ in shape or are not inside.
void for_each_run(const Shape& a, const Box& in_a, const Shape& b, const Box& in_b,
                  const std::function<void(int64_t at_a, int64_t at_b, int64_t length)>& fn);

}  // namespace convoy
