#include "model/window.h"

#include <algorithm>

#include "base/error.h"

namespace convoy {

Window Window::of(Dims kernel) {
    const int rank = kernel.size();
    return {kernel, Dims::filled(rank, 1), Dims::filled(rank, 1), Dims::filled(rank, 0), Dims::filled(rank, 0)};
}

int64_t Window::output(int i, int64_t length) const {
    const int64_t room = length + pad_lo[i] + pad_hi[i] - extent(i);
    return room < 0 ? 0 : room / stride[i] + 1;
}

Dims Window::output(const Dims& input) const {
    CONVOY_CHECK(input.size() == rank(), "window of rank {} over {}", rank(), to_string(input));
    Dims result;
    for (int i = 0; i < rank(); ++i) result.push_back(output(i, input[i]));
    return result;
}

}  // namespace convoy
