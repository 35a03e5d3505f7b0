// Shifted planes: scaling and adding one, and the product of two.
#include "kernels/cpu/vector/families.h"
#include "kernels/cpu/vector/vec.h"

namespace convoy::cpu::vec::CONVOY_ISA {

namespace {

void add_line(const float* x, float* y, float factor, int64_t count) {
    const Vec<16> f = broadcast<16>(factor);
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) store(y + i, load<16>(y + i) + load<16>(x + i) * f);
    for (; i < count; ++i) y[i] += factor * x[i];
}

void scale_add(const ScaleAddArgs& a) {
    if (a.x_step == a.lanes && a.y_step == a.lanes) return add_line(a.x, a.y, a.factor, a.lines * a.lanes);
    if (a.lanes == 1) {
        for (int64_t i = 0; i < a.lines; ++i) a.y[i * a.y_step] += a.factor * a.x[i * a.x_step];
        return;
    }
    for (int64_t i = 0; i < a.lines; ++i) add_line(a.x + i * a.x_step, a.y + i * a.y_step, a.factor, a.lanes);
}

float dot(const float* x, const float* y, int64_t y_step, int64_t count) {
    float sum = 0;
    int64_t i = 0;
    if (y_step == 1) {
        Vec<16> lanes = broadcast<16>(0);
        for (; i + 16 <= count; i += 16) lanes = lanes + load<16>(x + i) * load<16>(y + i);
        alignas(64) float parts[16];
        store(parts, lanes);
        for (const float part : parts) sum += part;
    }
    for (; i < count; ++i) sum += x[i] * y[i * y_step];
    return sum;
}

}  // namespace

void enter_planes(VectorKernels& table) {
    table.scale_add = scale_add;
    table.dot = dot;
}

}  // namespace convoy::cpu::vec::CONVOY_ISA
