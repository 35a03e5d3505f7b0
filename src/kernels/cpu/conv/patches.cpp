#include "kernels/cpu/conv/patches.h"

#include <cstring>

#include "kernels/cpu/own.h"

namespace convoy::cpu {

namespace {

void copy_lines(float* to, int64_t to_step, const float* from, int64_t from_step, int64_t lines, int64_t lanes) {
    if (to_step == lanes && from_step == lanes) {
        std::memcpy(to, from, static_cast<size_t>(lines * lanes) * sizeof(float));
    } else if (lanes == 1) {
        for (int64_t i = 0; i < lines; ++i) to[i * to_step] = from[i * from_step];
    } else {
        for (int64_t i = 0; i < lines; ++i) std::memcpy(to + i * to_step, from + i * from_step, static_cast<size_t>(lanes) * sizeof(float));
    }
}

void clear_lines(float* to, int64_t step, int64_t lines, int64_t lanes) {
    if (step == lanes) {
        std::memset(to, 0, static_cast<size_t>(lines * lanes) * sizeof(float));
    } else {
        for (int64_t i = 0; i < lines; ++i) std::memset(to + i * step, 0, static_cast<size_t>(lanes) * sizeof(float));
    }
}

// Calls fn(plane, first row, last row) on threads: planes where there are several, else rows.
template <class Fn>
void for_parts(const CpuContext& context, int64_t planes, int64_t rows, int64_t elements, const Fn& fn) {
    const int parts = parts_for(context, elements);
    if (planes > 1)
        in_parts(parts, planes, [&](int, int64_t begin, int64_t end) {
            for (int64_t plane = begin; plane < end; ++plane) fn(plane, int64_t{0}, rows);
        });
    else
        in_parts(parts, rows, [&](int, int64_t begin, int64_t end) { fn(int64_t{0}, begin, end); });
}

}  // namespace

Planes planes_of(float* data, const ConvView& view, bool last, int64_t channels, int64_t points, int64_t n, int64_t g) {
    const int64_t all = channels * view.groups;
    if (last) return {data + n * all * points + g * channels, 1, 0, all, channels};
    return {data + (n * all + g * channels) * points, channels, points, 1, 1};
}

void gather_tap(const ConvView& v, int64_t tap, const Planes& x, const Planes& to, const CpuContext& context) {
    const Three k = v.tap(tap);
    const Range w = v.outputs(2, k[2]);
    for_parts(context, to.planes, v.out[0] * v.out[1], to.planes * to.lanes * v.out_points(),
              [&](int64_t plane, int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                      float* const line = to.data + plane * to.plane_step + row * v.out[2] * to.line_step;
                      const int64_t d = v.at(0, row / v.out[1], k[0]), h = v.at(1, row % v.out[1], k[1]);
                      if (d < 0 || d >= v.in[0] || h < 0 || h >= v.in[1] || w.size() == 0) {
                          clear_lines(line, to.line_step, v.out[2], to.lanes);
                          continue;
                      }
                      const float* const source =
                          x.data + plane * x.plane_step + ((d * v.in[1] + h) * v.in[2] + v.at(2, w.begin, k[2])) * x.line_step;
                      clear_lines(line, to.line_step, w.begin, to.lanes);
                      copy_lines(line + w.begin * to.line_step, to.line_step, source, v.stride[2] * x.line_step, w.size(), to.lanes);
                      clear_lines(line + w.end * to.line_step, to.line_step, v.out[2] - w.end, to.lanes);
                  }
              });
}

// Along rows of outputs: of one tap no two lie on the same inputs.
template <class Fn>
static void along_tap(const ConvView& v, int64_t tap, int64_t planes, int64_t lanes, const CpuContext& context, const Fn& fn) {
    const Three k = v.tap(tap);
    const Range w = v.outputs(2, k[2]);
    if (w.size() == 0) return;
    for_parts(context, planes, v.out[0] * v.out[1], planes * lanes * v.out_points(), [&](int64_t plane, int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
            const int64_t d = v.at(0, row / v.out[1], k[0]), h = v.at(1, row % v.out[1], k[1]);
            if (d < 0 || d >= v.in[0] || h < 0 || h >= v.in[1]) continue;
            fn(plane, row * v.out[2] + w.begin, (d * v.in[1] + h) * v.in[2] + v.at(2, w.begin, k[2]), w.size());
        }
    });
}

void add_to_inputs(const ConvView& v, int64_t tap, const Planes& from, const Planes& to, const CpuContext& context) {
    const auto scale_add = vector_kernels().scale_add;
    along_tap(v, tap, to.planes, to.lanes, context, [&](int64_t plane, int64_t out, int64_t in, int64_t count) {
        scale_add({.x = from.data + plane * from.plane_step + out * from.line_step,
                   .y = to.data + plane * to.plane_step + in * to.line_step,
                   .x_step = from.line_step,
                   .y_step = v.stride[2] * to.line_step,
                   .lines = count,
                   .lanes = to.lanes});
    });
}

void add_to_outputs(const ConvView& v, int64_t tap, const Planes& from, const Planes& to, const CpuContext& context) {
    const auto scale_add = vector_kernels().scale_add;
    along_tap(v, tap, to.planes, to.lanes, context, [&](int64_t plane, int64_t out, int64_t in, int64_t count) {
        scale_add({.x = from.data + plane * from.plane_step + in * from.line_step,
                   .y = to.data + plane * to.plane_step + out * to.line_step,
                   .x_step = v.stride[2] * from.line_step,
                   .y_step = to.line_step,
                   .lines = count,
                   .lanes = to.lanes});
    });
}

void clear(float* data, int64_t count, const CpuContext& context) {
    in_flat_parts(parts_for(context, count), count,
                  [&](int, int64_t begin, int64_t end) { std::memset(data + begin, 0, static_cast<size_t>(end - begin) * sizeof(float)); });
}

}  // namespace convoy::cpu
