// Rearranging: what only moves elements. Constants of shapes have been computed before (fold.cpp); here data moves.
#include <algorithm>
#include <numeric>

#include "data/bytes.h"
#include "onnx/context.h"

namespace convoy::onnx {

namespace {

constexpr int64_t kLargest = int64_t{1} << 31;

Shape shape_from(NodeContext& c, const std::vector<int64_t>& sizes) {
    if (sizes.size() > static_cast<size_t>(Dims::kMost)) c.refuse(fmt::format("{} dims, expected at most {}", sizes.size(), Dims::kMost));
    Shape shape;
    for (const int64_t s : sizes) {
        if (s < -1 || s > kLargest) c.refuse(fmt::format("a dim of {}", s));
        shape.push_back(s);
    }
    return shape;
}

void identity(NodeContext& c) { c.set(0, c.value(0)); }

// Between real types only: how numbers are stored is decided when the model is compiled.
void cast(NodeContext& c) {
    const auto to = static_cast<DataType>(c.integer("to", 0));
    if (!is_real(to)) c.refuse(fmt::format("to {} is not supported for what the network computes", c.integer("to", 0)));
    const ValueId x = c.value(0);
    if (c.graph().value(x).type.element != Element::Real && c.graph().value(x).type.element != Element::Precise)
        c.refuse("from whole numbers that the network computes is not supported");
    c.set(0, x);
}

}  // namespace

Shape reshaped(NodeContext& c, const Shape& from, const std::vector<int64_t>& sizes, bool zero_is_size) {
    Shape to = shape_from(c, sizes);
    int open = -1;
    for (int d = 0; d < to.size(); ++d) {
        if (to[d] == 0 && !zero_is_size) {
            if (d >= from.size()) c.refuse(fmt::format("dim {} is to stay, but the input is {}", d, to_string(from)));
            to[d] = from[d];
        }
        if (to[d] == -1 && open >= 0) c.refuse("two dims are left open");
        if (to[d] == -1) open = d;
    }
    Shape rest = to;
    if (open >= 0) rest[open] = 1;
    if (!checked_bytes(rest, 8)) c.refuse(fmt::format("a shape of {}", to_string(rest)));
    const int64_t whole = numel(from), part = numel(rest);
    if (open >= 0 && part > 0 && whole % part == 0) to[open] = whole / part;
    // A file written for one batch names it where a flattening was meant: another batch then does not fit, but does with that dim left open.
    if (open < 0 && part != whole && part > 0 && !to.empty() && whole % (part / to[0]) == 0 && !from.empty() &&
        whole / (part / to[0]) == from[0])
        to[0] = from[0];
    if ((open >= 0 && to[open] == -1) || numel(to) != whole)
        c.refuse(fmt::format("{} has {} elements and cannot become {}", to_string(from), whole, to_string(to)));
    return to;
}

Shape squeezed(NodeContext& c, const Shape& from, const std::vector<int64_t>& given) {
    std::vector<int> axes = c.axes_in(given, from.size());
    Shape to;
    for (int d = 0; d < from.size(); ++d) {
        const bool named = std::find(axes.begin(), axes.end(), d) != axes.end();
        if (named && from[d] != 1) c.refuse(fmt::format("dim {} of {} is not 1", d, to_string(from)));
        if (!(named || (axes.empty() && from[d] == 1))) to.push_back(from[d]);
    }
    return to;
}

Shape unsqueezed(NodeContext& c, const Shape& from, const std::vector<int64_t>& given) {
    const int rank = from.size() + static_cast<int>(std::min<size_t>(given.size(), 99));
    if (rank > Dims::kMost) c.refuse(fmt::format("{} dims, expected at most {}", rank, Dims::kMost));
    const auto axes = c.axes_in(given, rank);
    Shape to;
    for (int d = 0, next = 0; d < rank; ++d) to.push_back(std::find(axes.begin(), axes.end(), d) != axes.end() ? 1 : from[next++]);
    return to;
}

std::vector<int64_t> axes_of(NodeContext& c) {
    if (c.opset() < 13) return c.integers("axes");
    return c.has(1) ? c.known_ints(1) : std::vector<int64_t>{};
}

Shape result_shape(NodeContext& c) {
    const Shape from = c.shape(0);
    const std::string_view op = c.node().op;
    if (op == "Squeeze") return squeezed(c, from, axes_of(c));
    if (op == "Unsqueeze") return unsqueezed(c, from, axes_of(c));
    if (op == "Flatten") {
        const int64_t axis = c.integer("axis", 1);
        if (axis < -from.size() || axis > from.size()) c.refuse(fmt::format("there is no dim {} in {}", axis, to_string(from)));
        const int at = static_cast<int>(axis < 0 ? axis + from.size() : axis);
        return {product(from, 0, at), product(from, at, from.size())};
    }
    if (c.opset() < 5) return reshaped(c, from, c.integers("shape"), false);
    return reshaped(c, from, c.known_ints(1), c.integer("allowzero", 0) != 0);
}

std::vector<SlicePart> slice_parts(NodeContext& c) {
    const Shape shape = c.shape(0);
    std::vector<int64_t> starts, ends, axes, steps;
    if (c.opset() < 10) {
        starts = c.integers("starts");
        ends = c.integers("ends");
        axes = c.integers("axes");
    } else {
        starts = c.known_ints(1);
        ends = c.known_ints(2);
        if (c.has(3)) axes = c.known_ints(3);
        if (c.has(4)) steps = c.known_ints(4);
    }
    if (axes.empty()) {
        axes.resize(std::min<size_t>(starts.size(), static_cast<size_t>(shape.size())));
        std::iota(axes.begin(), axes.end(), 0);
    }
    if (steps.empty()) steps.assign(starts.size(), 1);
    if (starts.size() != ends.size() || starts.size() != axes.size() || starts.size() != steps.size())
        c.refuse(fmt::format("{} starts, {} ends, {} axes, {} steps", starts.size(), ends.size(), axes.size(), steps.size()));
    c.axes_in(axes, shape.size());
    std::vector<SlicePart> parts;
    for (size_t i = 0; i < axes.size(); ++i) {
        const int axis = c.axis_in(axes[i], shape.size());
        const int64_t length = shape[axis], step = std::clamp<int64_t>(steps[i], -kLargest, kLargest);
        if (step == 0) c.refuse("a step of 0");
        if (length == 0) {
            parts.push_back({axis, 0, step, 0});
            continue;
        }
        const auto from_end = [&](int64_t v) { return v < 0 ? std::max(v, -kLargest) + length : std::min(v, kLargest); };
        const int64_t first = std::clamp<int64_t>(from_end(starts[i]), 0, step > 0 ? length : length - 1);
        const int64_t last = std::clamp<int64_t>(from_end(ends[i]), step > 0 ? 0 : -1, length);
        const int64_t count = step > 0 ? (last - first + step - 1) / step : (first - last - step - 1) / -step;
        parts.push_back({axis, first, step, std::max<int64_t>(0, count)});
    }
    return parts;
}

namespace {

void reshape_like(NodeContext& c) {
    const Shape to = result_shape(c);
    c.set(0, c.reshape(c.value(0), to));
}

Dims order_of(NodeContext& c) {
    const int rank = c.shape(0).size();
    const auto given = c.integers("perm");
    Dims order;
    for (int d = 0; d < rank; ++d)
        order.push_back(given.empty() ? rank - 1 - d : d < static_cast<int>(given.size()) ? given[static_cast<size_t>(d)] : -1);
    if (!given.empty() && static_cast<int>(given.size()) != rank)
        c.refuse(fmt::format("perm has {} entries for {} dims", given.size(), rank));
    return order;
}
void transpose(NodeContext& c) { c.set(0, c.transpose(c.value(0), order_of(c))); }

void concat(NodeContext& c) {
    if (c.inputs() == 0) c.refuse("it has no input");
    const int axis = c.axis_in(c.integer("axis", 1), c.shape(0).size());
    std::vector<ValueId> parts;
    for (size_t i = 0; i < c.inputs(); ++i)
        if (numel(c.shape(i)) > 0) parts.push_back(c.value(i));
    if (parts.empty()) c.refuse("its result is empty");
    c.set(0, parts.size() == 1 ? parts[0] : c.add(ConcatOp{axis}, parts));
}

void split(NodeContext& c) {
    const Shape shape = c.shape(0);
    const int axis = c.axis_in(c.integer("axis", 0), shape.size());
    auto sizes = c.opset() < 13 ? c.integers("split") : c.has(1) ? c.known_ints(1) : std::vector<int64_t>{};
    if (sizes.empty()) {
        const auto parts = static_cast<int64_t>(c.outputs());
        if (parts == 0 || shape[axis] % parts != 0) c.refuse(fmt::format("{} does not divide into {} parts", shape[axis], parts));
        sizes.assign(c.outputs(), shape[axis] / parts);
    }
    if (sizes.size() < c.outputs()) c.refuse(fmt::format("{} sizes for {} outputs", sizes.size(), c.outputs()));
    int64_t start = 0;
    for (size_t o = 0; o < sizes.size(); ++o) {
        if (sizes[o] <= 0 || sizes[o] > shape[axis] - start) c.refuse(fmt::format("parts of {} do not fit into {}", sizes[o], shape[axis]));
        c.set(o, c.slice(c.value(0), axis, start, sizes[o]));
        start += sizes[o];
    }
    if (start != shape[axis]) c.refuse(fmt::format("its parts take {} of {}", start, shape[axis]));
}

// Every step-th element: padded to whole steps, the first of each is kept.
ValueId stepped(NodeContext& c, ValueId v, const SlicePart& part) {
    const Shape shape = c.shape_of(v);
    const int axis = part.axis;
    const int64_t span = part.count * part.step, left = shape[axis] - part.start - span;
    Dims lo = Dims::filled(shape.size(), 0), hi = lo;
    lo[axis] = -part.start;
    hi[axis] = -left;
    const ValueId whole = part.start == 0 && left == 0 ? v : c.add(PadOp{lo, hi, 0}, {v});
    const Shape head = shape.slice(0, axis), tail = shape.slice(axis + 1);
    if (shape.size() == Dims::kMost) c.refuse("steps along one of eight dims");
    const ValueId folded = c.reshape(whole, join(join(head, {part.count, part.step}), tail));
    return c.reshape(c.slice(folded, axis + 1, 0, 1), join(join(head, {part.count}), tail));
}

void slice(NodeContext& c) {
    const auto parts = slice_parts(c);
    ValueId v = c.value(0);
    for (const SlicePart& part : parts) {
        if (part.count == 0) c.refuse("its result is empty");
        if (part.step == 1 || part.count == 1) {
            v = c.slice(v, part.axis, part.start, part.count);
        } else if (part.step > 0) {
            v = stepped(c, v, part);
        } else {
            std::vector<int64_t> places;
            for (int64_t i = 0; i < std::min<int64_t>(part.count, 5000); ++i) places.push_back(part.start + i * part.step);
            v = c.select(v, part.axis, places);
        }
    }
    c.set(0, v);
}

void pad(NodeContext& c) {
    const Shape shape = c.shape(0);
    const int rank = shape.size();
    const std::string mode = c.text("mode", "constant");
    const auto pads = c.opset() < 11 ? c.integers(c.opset() < 2 ? "paddings" : "pads") : c.known_ints(1);
    const double value = c.opset() < 11 ? c.real("value", 0) : c.has(2) ? c.known_number(2) : 0;
    if (static_cast<int>(pads.size()) != 2 * rank) c.refuse(fmt::format("{} pads for {} dims", pads.size(), rank));
    Dims lo, hi;
    for (int d = 0; d < rank; ++d) {
        for (const auto& [list, at] : {std::pair{&lo, d}, std::pair{&hi, d + rank}}) {
            const int64_t p = pads[static_cast<size_t>(at)];
            if (p > kLargest || p < -shape[d]) c.refuse(fmt::format("a padding of {}", p));
            list->push_back(p);
        }
    }
    if (mode == "constant") return c.set(0, c.add(PadOp{lo, hi, value}, {c.value(0)}));
    if (mode != "reflect" && mode != "edge") c.refuse(fmt::format("a mode of \"{}\"", mode));
    ValueId v = c.value(0);
    for (int d = 0; d < rank; ++d) {
        const int64_t length = shape[d];
        if (lo[d] == 0 && hi[d] == 0) continue;
        if (lo[d] + hi[d] > 4096 || lo[d] < 0 || hi[d] < 0 || (mode == "reflect" && std::max(lo[d], hi[d]) >= length))
            c.refuse(fmt::format("a padding of {} and {} for {}", lo[d], hi[d], length));
        std::vector<int64_t> places;
        for (int64_t i = -lo[d]; i < length + hi[d]; ++i) {
            const int64_t mirrored = i < 0 ? -i : i >= length ? 2 * (length - 1) - i : i;
            places.push_back(mode == "edge" ? std::clamp<int64_t>(i, 0, length - 1) : mirrored);
        }
        v = c.select(v, d, places);
    }
    c.set(0, v);
}

void expand(NodeContext& c) {
    const Shape to = broadcast_shape(c.shape(0), shape_from(c, c.known_ints(1)));
    c.set(0, c.broadcast(c.value(0), to));
}

void tile(NodeContext& c) {
    if (c.opset() < 6) c.refuse("operator sets before 6 are not supported");
    const auto times = c.known_ints(1);
    const Shape shape = c.shape(0);
    if (static_cast<int>(times.size()) != shape.size()) c.refuse(fmt::format("{} repeats for {} dims", times.size(), shape.size()));
    ValueId v = c.value(0);
    for (int d = 0; d < shape.size(); ++d) {
        const int64_t n = times[static_cast<size_t>(d)];
        if (n < 1 || n > 4096) c.refuse(fmt::format("{} repeats", n));
        if (n > 1) v = c.add(ConcatOp{d}, std::vector<ValueId>(static_cast<size_t>(n), v));
    }
    c.set(0, v);
}

// The places must be known: picking by what the network computes is not supported.
void gather(NodeContext& c) {
    const Shape shape = c.shape(0), by = c.shape(1);
    const int axis = c.axis_in(c.integer("axis", 0), shape.size());
    auto places = c.known_ints(1);
    for (int64_t& p : places) {
        if (p < -shape[axis] || p >= shape[axis]) c.refuse(fmt::format("place {} of a dim of {}", p, shape[axis]));
        if (p < 0) p += shape[axis];
    }
    if (shape.size() - 1 + by.size() > Dims::kMost) c.refuse("its result has too many dims");
    c.set(0, c.reshape(c.select(c.value(0), axis, places), join(join(shape.slice(0, axis), by), shape.slice(axis + 1))));
}

Shape image_of(NodeContext& c) {
    const Shape shape = c.shape(0);
    const int64_t block = c.integer("blocksize", 0);
    if (shape.size() != 4 || block < 1 || block > 4096)
        c.refuse(fmt::format("blocks of {} of {}, expected four dims", block, to_string(shape)));
    return shape;
}
void depth_to_space(NodeContext& c) {
    const Shape x = image_of(c);
    const int64_t b = c.integer("blocksize", 0), depth = x[1] / (b * b);
    if (x[1] % (b * b) != 0) c.refuse(fmt::format("{} channels do not divide into blocks of {}", x[1], b));
    const std::string mode = c.text("mode", "DCR");
    const bool first = mode == "DCR";
    const Shape apart = first ? Shape{x[0], b, b, depth, x[2], x[3]} : Shape{x[0], depth, b, b, x[2], x[3]};
    const Dims order = first ? Dims{0, 3, 4, 1, 5, 2} : Dims{0, 1, 4, 2, 5, 3};
    c.set(0, c.reshape(c.transpose(c.reshape(c.value(0), apart), order), {x[0], depth, x[2] * b, x[3] * b}));
}
void space_to_depth(NodeContext& c) {
    const Shape x = image_of(c);
    const int64_t b = c.integer("blocksize", 0);
    if (x[2] % b != 0 || x[3] % b != 0) c.refuse(fmt::format("{} does not divide into blocks of {}", to_string(x), b));
    const ValueId apart = c.reshape(c.value(0), {x[0], x[1], x[2] / b, b, x[3] / b, b});
    c.set(0, c.reshape(c.transpose(apart, {0, 3, 5, 1, 2, 4}), {x[0], x[1] * b * b, x[2] / b, x[3] / b}));
}

}  // namespace

std::span<const OpEntry> shape_ops() {
    static constexpr OpEntry entries[] = {{"Identity", identity},
                                          {"Cast", cast},
                                          {"Reshape", reshape_like},
                                          {"Flatten", reshape_like},
                                          {"Squeeze", reshape_like},
                                          {"Unsqueeze", reshape_like},
                                          {"Transpose", transpose},
                                          {"Concat", concat},
                                          {"Split", split},
                                          {"Slice", slice},
                                          {"Pad", pad},
                                          {"Expand", expand},
                                          {"Tile", tile},
                                          {"Gather", gather},
                                          {"DepthToSpace", depth_to_space},
                                          {"SpaceToDepth", space_to_depth}};
    return entries;
}

}  // namespace convoy::onnx
