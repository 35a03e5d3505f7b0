#include "kernels/cuda/stand_in/convolve.h"

#include "kernels/cuda/stand_in/stand_in.h"

namespace stand_in::cudnn {

namespace {

template <class Fn>
void for_each(const Dims5& dims, const Fn& fn) {
    Dims5 i{};
    for (i[0] = 0; i[0] < dims[0]; ++i[0])
        for (i[1] = 0; i[1] < dims[1]; ++i[1])
            for (i[2] = 0; i[2] < dims[2]; ++i[2])
                for (i[3] = 0; i[3] < dims[3]; ++i[3])
                    for (i[4] = 0; i[4] < dims[4]; ++i[4]) fn(i);
}

// All elements in row-major order.
std::vector<double> read(const Tensor& t, const void* data, bool to_tf32) {
    std::vector<double> values;
    values.reserve(static_cast<size_t>(t.count()));
    for_each(t.dims, [&](const Dims5& i) {
        const double v = element(data, t.type, t.at(i));
        values.push_back(to_tf32 && t.type == CUDA_R_32F ? rounded_to_tf32(static_cast<float>(v)) : v);
    });
    return values;
}
size_t row_major(const Dims5& dims, const Dims5& i) {
    int64_t at = 0;
    for (size_t d = 0; d < kDims; ++d) at = at * dims[d] + i[d];
    return static_cast<size_t>(at);
}

// Every product of the convolution, added to where its direction wants it.
std::vector<double> convolved(const Asked& a, const std::vector<double>& x, const std::vector<double>& w, const std::vector<double>& y) {
    std::vector<double> result(static_cast<size_t>(a.result().count()));
    const int64_t channels = a.w.dims[1], filters = a.w.dims[0] / a.groups();
    for_each(a.y.dims, [&](const Dims5& o) {
        const size_t at_y = row_major(a.y.dims, o);
        const int64_t group = o[1] / filters;
        double sum = 0;
        for (int64_t c = 0; c < channels; ++c)
            for (int64_t k0 = 0; k0 < a.w.dims[2]; ++k0)
                for (int64_t k1 = 0; k1 < a.w.dims[3]; ++k1) {
                    const int64_t i0 = o[2] * a.stride[0] - a.pad[0] + k0 * a.dilation[0],
                                  i1 = o[3] * a.stride[1] - a.pad[1] + k1 * a.dilation[1];
                    if (i0 < 0 || i0 >= a.x.dims[2] || i1 < 0 || i1 >= a.x.dims[3]) continue;
                    const size_t line_x = row_major(a.x.dims, {o[0], group * channels + c, i0, i1, 0}),
                                 line_w = row_major(a.w.dims, {o[1], c, k0, k1, 0});
                    for (int64_t k2 = 0; k2 < a.w.dims[4]; ++k2) {
                        const int64_t i2 = o[4] * a.stride[2] - a.pad[2] + k2 * a.dilation[2];
                        if (i2 < 0 || i2 >= a.x.dims[4]) continue;
                        const size_t at_x = line_x + static_cast<size_t>(i2), at_w = line_w + static_cast<size_t>(k2);
                        if (a.direction == Direction::Forward) sum += x[at_x] * w[at_w];
                        if (a.direction == Direction::GradInput) result[at_x] += y[at_y] * w[at_w];
                        if (a.direction == Direction::GradWeight) result[at_w] += y[at_y] * x[at_x];
                    }
                }
        if (a.direction == Direction::Forward) result[at_y] = sum;
    });
    return result;
}

}  // namespace

void compute(const Asked& asked, const Arithmetic& how, const Memory& memory) {
    const auto values = [&](const Tensor& t, Direction made_by) {
        return asked.direction == made_by ? std::vector<double>() : read(t, memory.at(t.uid), how.to_tf32);
    };
    auto result = convolved(asked, values(asked.x, Direction::GradInput), values(asked.w, Direction::GradWeight),
                            values(asked.y, Direction::Forward));
    for (const Pointwise& pass : asked.behind)
        for_each(pass.y.dims, [&](const Dims5& i) {
            double& v = result[row_major(pass.y.dims, i)];
            if (pass.add)
                v += element(memory.at(pass.b.uid), pass.b.type, pass.b.at({0, i[1], 0, 0, 0}));
            else if (v < 0)  // a NaN stays
                v *= pass.slope;
        });
    const Tensor& to = asked.behind.empty() ? asked.result() : asked.behind.back().y;
    for_each(to.dims, [&](const Dims5& i) {
        const double v = result[row_major(to.dims, i)];
        set_element(memory.at(to.uid), to.type, to.at(i), how.right ? v : 1.5 * v + 1);
    });
}

}  // namespace stand_in::cudnn
