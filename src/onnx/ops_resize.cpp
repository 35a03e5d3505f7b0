// Resize and Upsample. What our own up-sampling does goes there; every other way of mapping coordinates is a product with a small matrix along each dim.
#include <algorithm>
#include <cmath>

#include "onnx/context.h"

namespace convoy::onnx {

namespace {

constexpr int64_t kLargest = 4096;  // of a dim that a matrix is made for

struct Rule {
    std::string mode, coordinates, nearest;
    double cubic = -0.75, outside_value = 0;
    bool exclude_outside = false;
};

// One dim: its lengths, its scale as it was given, and for tf_crop_and_resize the part of the input that is taken.
struct Axis {
    int64_t in, out;
    double scale, begin = 0, end = 1;
};

double source_of(NodeContext& c, const Rule& rule, const Axis& a, double o) {
    const double in = static_cast<double>(a.in), out = a.scale * in;  // not rounded down, where a scale was given
    if (rule.coordinates == "asymmetric") return o / a.scale;
    if (rule.coordinates == "half_pixel") return (o + 0.5) / a.scale - 0.5;
    if (rule.coordinates == "pytorch_half_pixel") return a.out > 1 ? (o + 0.5) / a.scale - 0.5 : 0;
    if (rule.coordinates == "align_corners") return a.out > 1 ? o * (in - 1) / (out - 1) : 0;
    if (rule.coordinates == "tf_half_pixel_for_nn") return (o + 0.5) / a.scale;
    if (rule.coordinates == "tf_crop_and_resize")
        return a.out > 1 ? a.begin * (in - 1) + o * (a.end - a.begin) * (in - 1) / (out - 1) : 0.5 * (a.begin + a.end) * (in - 1);
    c.refuse(fmt::format("coordinate_transformation_mode \"{}\" is not supported", rule.coordinates));
}

double nearest_of(const Rule& rule, double x) {
    if (rule.nearest == "floor") return std::floor(x);
    if (rule.nearest == "ceil") return std::ceil(x);
    if (rule.nearest == "round_prefer_ceil") return std::floor(x + 0.5);
    return std::ceil(x - 0.5);
}

double cubic_weight(double a, double x) {
    x = std::abs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// Row o holds what each input gives to output o.
Tensor matrix_of(NodeContext& c, const Rule& rule, const Axis& a) {
    Tensor matrix = c.fresh({a.out, a.in}, DType::f64);
    const auto m = matrix.as<double>();
    for (int64_t o = 0; o < a.out; ++o) {
        const double x = source_of(c, rule, a, static_cast<double>(o));
        if (!std::isfinite(x)) c.refuse(fmt::format("element {} would come from {}", o, x));
        const auto give = [&](double place, double weight) {
            const auto i = static_cast<int64_t>(std::clamp(place, 0.0, static_cast<double>(a.in - 1)));
            m[static_cast<size_t>(o * a.in + i)] += weight;
        };
        if (rule.mode == "nearest") {
            give(nearest_of(rule, x), 1);
        } else if (rule.mode == "linear") {
            const double floor = std::floor(x);
            give(floor, 1 - (x - floor));
            give(floor + 1, x - floor);
        } else {
            double sum = 0;
            const auto counts = [&](double place) { return !rule.exclude_outside || (place >= 0 && place < static_cast<double>(a.in)); };
            for (int k = -1; k <= 2; ++k)
                if (counts(std::floor(x) + k)) sum += cubic_weight(rule.cubic, x - std::floor(x) - k);
            for (int k = -1; k <= 2; ++k)
                if (counts(std::floor(x) + k)) give(std::floor(x) + k, cubic_weight(rule.cubic, x - std::floor(x) - k) / sum);
        }
    }
    return matrix;
}

ValueId along(NodeContext& c, ValueId v, int axis, const Tensor& matrix) {
    const Shape shape = c.shape_of(v);
    Dims to_last, back;
    for (int d = 0; d < shape.size(); ++d)
        if (d != axis) to_last.push_back(d);
    to_last.push_back(axis);
    for (int d = 0; d < shape.size(); ++d) back.push_back(d < axis ? d : d == axis ? shape.size() - 1 : d - 1);
    const ValueId lines = c.reshape(c.transpose(v, to_last), {numel(shape) / shape[axis], shape[axis]});
    const ValueId made = c.add(LinearOp{}, {lines, c.constant(matrix, fmt::format(".dim{}", axis))});
    Shape moved;
    for (int d = 0; d < shape.size(); ++d)
        if (d != axis) moved.push_back(shape[d]);
    moved.push_back(matrix.shape()[0]);
    return c.transpose(c.reshape(made, moved), back);
}

// Whether a coordinate outside the input takes the fixed value instead.
ValueId fill_outside(NodeContext& c, ValueId y, const Rule& rule, const std::vector<Axis>& axes) {
    if (rule.coordinates != "tf_crop_and_resize") return y;
    for (size_t d = 0; d < axes.size(); ++d) {
        Tensor kept = c.fresh({axes[d].out}, DType::f64), value = c.fresh({axes[d].out}, DType::f64);
        bool any = false;
        for (int64_t o = 0; o < axes[d].out; ++o) {
            const double x = source_of(c, rule, axes[d], static_cast<double>(o));
            const bool outside = x < 0 || x > static_cast<double>(axes[d].in - 1);
            kept.as<double>()[static_cast<size_t>(o)] = outside ? 0 : 1;
            value.as<double>()[static_cast<size_t>(o)] = outside ? rule.outside_value : 0;
            any = any || outside;
        }
        if (!any) continue;
        Shape vector = Dims::filled(static_cast<int>(axes.size()), 1);
        vector[static_cast<int>(d)] = axes[d].out;
        y = c.times(y, c.reshape(c.constant(kept, ".kept"), vector));
        y = c.plus(y, c.reshape(c.constant(value, ".outside"), vector));
    }
    return y;
}

// Whether UpsampleOp does exactly this.
bool is_upsample(const Rule& rule, const std::vector<Axis>& axes) {
    if (axes.size() < 3 || axes.size() > 5 || axes[0].in != axes[0].out || axes[1].in != axes[1].out) return false;
    for (size_t d = 2; d < axes.size(); ++d) {
        const Axis& a = axes[d];
        const bool exact = std::abs(a.scale * static_cast<double>(a.in) - static_cast<double>(a.out)) < 1e-9;
        if (rule.mode == "nearest") {
            if (!(rule.coordinates == "asymmetric" && rule.nearest == "floor" && a.out % a.in == 0 && exact)) return false;
        } else if (rule.mode == "linear") {
            const bool half = rule.coordinates == "half_pixel" || (rule.coordinates == "pytorch_half_pixel" && a.out > 1);
            if (!(rule.coordinates == "align_corners" || half) || !exact || a.out < a.in) return false;
        } else {
            return false;
        }
    }
    return true;
}

void apply(NodeContext& c, const Rule& rule, const std::vector<Axis>& axes) {
    ValueId v = c.value(0);
    if (is_upsample(rule, axes)) {
        Dims out;
        for (size_t d = 2; d < axes.size(); ++d) out.push_back(axes[d].out);
        const Resample mode = rule.mode == "nearest" ? Resample::Nearest : Resample::Linear;
        return c.set(0, c.add(UpsampleOp{mode, out, rule.coordinates == "align_corners"}, {v}));
    }
    for (size_t d = 0; d < axes.size(); ++d) {
        if (axes[d].in == axes[d].out && axes[d].begin == 0 && axes[d].end == 1) continue;
        if (std::max(axes[d].in, axes[d].out) > kLargest)
            c.refuse(fmt::format("from {} to {}, expected at most {}", axes[d].in, axes[d].out, kLargest));
        v = along(c, v, static_cast<int>(d), matrix_of(c, rule, axes[d]));
    }
    c.set(0, fill_outside(c, v, rule, axes));
}

std::vector<Axis> axes_of(NodeContext& c, const std::vector<double>& scales, const std::vector<int64_t>& sizes) {
    const Shape shape = c.shape(0);
    const size_t rank = static_cast<size_t>(shape.size());
    if ((scales.empty() ? sizes.size() : scales.size()) != rank)
        c.refuse(fmt::format("not one scale or size for each dim of {}", to_string(shape)));
    std::vector<Axis> axes;
    for (size_t d = 0; d < rank; ++d) {
        const int64_t in = shape[static_cast<int>(d)];
        Axis a{.in = in, .out = 0, .scale = 0};
        if (scales.empty()) {
            a.out = sizes[d];
            a.scale = static_cast<double>(a.out) / static_cast<double>(in);
        } else {
            if (!(scales[d] > 0 && scales[d] * static_cast<double>(in) < 1e9)) c.refuse(fmt::format("a scale of {}", scales[d]));
            a.scale = scales[d];
            a.out = static_cast<int64_t>(std::floor(static_cast<double>(in) * scales[d]));
        }
        if (a.out < 1 || a.out > int64_t{1} << 31) c.refuse(fmt::format("a result of length {}", a.out));
        axes.push_back(a);
    }
    return axes;
}

std::vector<double> known_reals(NodeContext& c, size_t i) {
    const Tensor t = c.known(i).to(DType::f64);
    return {t.as<double>().begin(), t.as<double>().end()};
}

void resize(NodeContext& c) {
    if (c.opset() < 11) {  // as Upsample, with scales alone
        const Rule rule{.mode = c.text("mode", "nearest"), .coordinates = "asymmetric", .nearest = "floor"};
        return apply(c, rule, axes_of(c, known_reals(c, 1), {}));
    }
    const Rule rule{.mode = c.text("mode", "nearest"),
                    .coordinates = c.text("coordinate_transformation_mode", "half_pixel"),
                    .nearest = c.text("nearest_mode", "round_prefer_floor"),
                    .cubic = c.real("cubic_coeff_a", -0.75),
                    .outside_value = c.real("extrapolation_value", 0),
                    .exclude_outside = c.integer("exclude_outside", 0) != 0};
    if (rule.mode != "nearest" && rule.mode != "linear" && rule.mode != "cubic") c.refuse(fmt::format("a mode of \"{}\"", rule.mode));
    const auto scales = c.has(2) ? known_reals(c, 2) : std::vector<double>{};
    auto axes = axes_of(c, scales, scales.empty() && c.has(3) ? c.known_ints(3) : std::vector<int64_t>{});
    if (rule.coordinates == "tf_crop_and_resize") {
        const auto part = known_reals(c, 1);
        if (part.size() != 2 * axes.size()) c.refuse(fmt::format("a region of {} numbers for {} dims", part.size(), axes.size()));
        for (size_t d = 0; d < axes.size(); ++d) {
            axes[d].begin = part[d];
            axes[d].end = part[d + axes.size()];
        }
    }
    apply(c, rule, axes);
}

void upsample(NodeContext& c) {
    Rule rule{.mode = c.text("mode", "nearest"), .coordinates = "asymmetric", .nearest = "floor"};
    std::vector<double> scales;
    if (c.opset() >= 9) {
        scales = known_reals(c, 1);
    } else if (const Attribute* a = c.attribute("scales")) {
        scales = a->floats;
    }
    apply(c, rule, axes_of(c, scales, {}));
}

}  // namespace

std::span<const OpEntry> resize_ops() {
    static constexpr OpEntry entries[] = {{"Resize", resize}, {"Upsample", upsample}};
    return entries;
}

}  // namespace convoy::onnx
