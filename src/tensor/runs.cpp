#include "tensor/runs.h"

#include "base/error.h"

namespace convoy {

void for_each_run(const Shape& a, const Box& in_a, const Shape& b, const Box& in_b,
                  const std::function<void(int64_t, int64_t, int64_t)>& fn) {
    CONVOY_CHECK(in_a.shape == in_b.shape && contains(Box::whole(a), in_a) && contains(Box::whole(b), in_b),
                 "boxes {} of {} and {} of {} do not go together", to_string(in_a), to_string(a), to_string(in_b), to_string(b));
    const Shape& box = in_a.shape;
    if (in_a.empty()) return;
    // A run takes in the dims from `first` on; behind that one the box is as wide as both tensors.
    int first = box.size();
    int64_t length = 1;
    while (first > 0) {
        length *= box[--first];
        if (box[first] != a[first] || box[first] != b[first]) break;
    }
    const Dims strides_a = row_major_strides(a), strides_b = row_major_strides(b);
    for (int64_t run = 0; run < numel(box) / length; ++run) {
        int64_t at_a = 0, at_b = 0, rest = run;
        for (int d = box.size() - 1; d >= 0; --d) {
            const int64_t within = d < first ? rest % box[d] : 0;
            if (d < first) rest /= box[d];
            at_a += (in_a.origin[d] + within) * strides_a[d];
            at_b += (in_b.origin[d] + within) * strides_b[d];
        }
        fn(at_a, at_b, length);
    }
}

}  // namespace convoy
