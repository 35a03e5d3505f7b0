#include "tensor/box.h"

#include <algorithm>

namespace convoy {

Box Box::with(int dim, int64_t begin, int64_t end) const {
    Box box = *this;
    box.origin[dim] = begin;
    box.shape[dim] = end - begin;
    return box;
}

Box Box::within(const Box& outer) const {
    Box box = *this;
    for (int i = 0; i < origin.size(); ++i) box.origin[i] -= outer.origin[i];
    return box;
}

Box intersection(const Box& a, const Box& b) {
    Box box = a;
    for (int i = 0; i < a.origin.size(); ++i) {
        box.origin[i] = std::max(a.origin[i], b.origin[i]);
        box.shape[i] = std::max<int64_t>(0, std::min(a.origin[i] + a.shape[i], b.origin[i] + b.shape[i]) - box.origin[i]);
    }
    return box;
}

bool contains(const Box& outer, const Box& inner) { return inner.empty() || intersection(outer, inner) == inner; }

std::string to_string(const Box& box) { return to_string(box.shape) + " at " + to_string(box.origin); }

}  // namespace convoy
