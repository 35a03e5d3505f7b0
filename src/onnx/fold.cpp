// What is known when a model is read: shapes, axes, constants, and what is computed from them. Numbers are f64 or i64.
#include <algorithm>
#include <cmath>
#include <limits>

#include "data/bytes.h"
#include "onnx/context.h"

namespace convoy::onnx {

namespace {

using Fold = void (*)(NodeContext&);

bool whole(const Tensor& t) { return t.dtype() == DType::i64; }

// Element by element through a function of the place in the result.
template <class Fn>
Tensor gathered(NodeContext& c, const Tensor& from, const Shape& shape, const Fn& source) {
    Tensor to = c.fresh(shape, from.dtype());
    for (int64_t i = 0; i < to.numel(); ++i) {
        const int64_t at = source(i);
        CONVOY_CHECK(at >= 0 && at < from.numel(), "element {} of {}", at, from.numel());
        std::copy_n(from.data() + at * 8, 8, to.data() + i * 8);
    }
    return to;
}

// The index of element i of `shape`, dim by dim.
Dims index_of(int64_t i, const Shape& shape) {
    Dims index = shape;
    for (int d = shape.size() - 1; d >= 0; --d) {
        index[d] = i % shape[d];
        i /= shape[d];
    }
    return index;
}
int64_t offset_of(const Dims& index, const Shape& shape) {
    int64_t at = 0;
    for (int d = 0; d < shape.size(); ++d) at = at * shape[d] + index[d];
    return at;
}

Tensor repeated(NodeContext& c, const Tensor& from, const Shape& shape) {
    if (from.shape() == shape) return from;
    const int lead = shape.size() - from.shape().size();
    return gathered(c, from, shape, [&](int64_t i) {
        const Dims index = index_of(i, shape);
        int64_t at = 0;
        for (int d = 0; d < from.shape().size(); ++d) at = at * from.shape()[d] + (from.shape()[d] == 1 ? 0 : index[lead + d]);
        return at;
    });
}

void shape(NodeContext& c) {
    const Shape s = c.shape(0);
    const auto clip = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + s.size() : v, 0, s.size()); };
    const int64_t begin = clip(c.integer("start", 0)), end = std::max(begin, clip(c.integer("end", s.size())));
    Tensor t = c.fresh({end - begin}, DType::i64);
    for (int64_t i = begin; i < end; ++i) t.as<int64_t>()[static_cast<size_t>(i - begin)] = s[static_cast<int>(i)];
    c.set_known(0, std::move(t));
}

void size(NodeContext& c) {
    Tensor t = c.fresh({}, DType::i64);
    t.as<int64_t>()[0] = numel(c.shape(0));
    c.set_known(0, std::move(t));
}

void constant(NodeContext& c) {
    Tensor t;
    if (const Attribute* a = c.attribute("value"); a && !a->tensor.empty()) {
        t = read_tensor(a->tensor[0]);
        if (is_floating(t.dtype())) t = t.to(DType::f64);
    } else if (const Attribute* f = c.attribute("value_float")) {
        t = Tensor::of<double>({}, {f->f});
    } else if (const Attribute* i = c.attribute("value_int")) {
        t = Tensor::of<int64_t>({}, {i->i});
    } else if (const Attribute* fs = c.attribute("value_floats")) {
        t = Tensor::of<double>({static_cast<int64_t>(fs->floats.size())}, fs->floats);
    } else if (const Attribute* is = c.attribute("value_ints")) {
        t = Tensor::of<int64_t>({static_cast<int64_t>(is->ints.size())}, is->ints);
    } else {
        c.refuse("it holds no numbers");
    }
    c.set_known(0, std::move(t));
}

Shape sizes(NodeContext& c, const std::vector<int64_t>& values) {
    if (values.size() > static_cast<size_t>(Dims::kMost)) c.refuse(fmt::format("{} dims, expected at most {}", values.size(), Dims::kMost));
    Shape shape;
    for (const int64_t v : values) {
        if (v < 0 || v > int64_t{1} << 31) c.refuse(fmt::format("a dim of {}", v));
        shape.push_back(v);
    }
    return shape;
}

void constant_of_shape(NodeContext& c) {
    const Attribute* a = c.attribute("value");
    const Tensor value = a && !a->tensor.empty() ? read_tensor(a->tensor[0]) : Tensor::of<double>({1}, {0});
    if (value.numel() != 1) c.refuse(fmt::format("a value of {}, expected one number", to_string(value.shape())));
    Tensor t = c.filled(sizes(c, c.known_ints(0)), element(value, 0));
    c.set_known(0, is_floating(value.dtype()) ? std::move(t) : t.to(DType::i64));
}

void range(NodeContext& c) {
    const double start = c.known_number(0), limit = c.known_number(1), delta = c.known_number(2);
    const double count = std::max(0.0, std::ceil((limit - start) / delta));
    if (!(count < 1e9)) c.refuse(fmt::format("from {} to {} by {}", start, limit, delta));
    Tensor t = c.fresh({static_cast<int64_t>(count)}, DType::f64);
    for (size_t i = 0; i < t.as<double>().size(); ++i) t.as<double>()[i] = start + static_cast<double>(i) * delta;
    c.set_known(0, whole(c.known(0)) ? t.to(DType::i64) : std::move(t));
}

void cast(NodeContext& c) {
    const auto to = static_cast<DataType>(std::clamp<int64_t>(c.integer("to", 0), 0, 16));
    const Tensor from = c.known(0);
    c.count(from.shape());
    if (is_real(to)) return c.set_known(0, from.to(to == DataType::Float ? DType::f32 : DType::f64).to(DType::f64));
    if (!is_integer(to)) c.refuse(fmt::format("to {} is not supported", name_of(to)));
    Tensor made(from.shape(), DType::i64);
    for (int64_t i = 0; i < from.numel(); ++i) {
        const double v = std::clamp(element(from, i), -9e18, 9e18);
        made.as<int64_t>()[static_cast<size_t>(i)] = to == DataType::Bool ? v != 0
                                                     : whole(from)        ? from.as<int64_t>()[static_cast<size_t>(i)]
                                                     : v == v             ? static_cast<int64_t>(v)
                                                                          : 0;
    }
    c.set_known(0, std::move(made));
}

void identity(NodeContext& c) {
    c.count(c.shape(0));
    c.set_known(0, c.known(0));
}

void reshape(NodeContext& c) {
    const Shape to = result_shape(c);
    c.count(to);
    c.set_known(0, c.known(0).reshaped(to));
}

void transpose(NodeContext& c) {
    const Shape from = c.shape(0);
    const auto perm = c.integers("perm");
    if (!perm.empty() && static_cast<int>(perm.size()) != from.size()) c.refuse("perm does not fit");
    const auto checked = c.axes_in(perm, std::max(1, from.size()));
    Shape to = from;
    const auto source = [&](int d) { return perm.empty() ? from.size() - 1 - d : c.axis_in(perm[static_cast<size_t>(d)], from.size()); };
    for (int d = 0; d < to.size(); ++d) to[d] = from[source(d)];
    c.set_known(0, gathered(c, c.known(0), to, [&](int64_t i) {
                    const Dims index = index_of(i, to);
                    Dims at = from;
                    for (int d = 0; d < to.size(); ++d) at[source(d)] = index[d];
                    return offset_of(at, from);
                }));
}

void gather(NodeContext& c) {
    const Shape from = c.shape(0), by = c.shape(1);
    const int axis = c.axis_in(c.integer("axis", 0), from.size());
    auto places = c.known_ints(1);
    for (int64_t& p : places) {
        if (p < -from[axis] || p >= from[axis]) c.refuse(fmt::format("place {} of a dim of {}", p, from[axis]));
        if (p < 0) p += from[axis];
    }
    if (from.size() - 1 + by.size() > Dims::kMost) c.refuse("its result has too many dims");
    const int64_t inner = product(from, axis + 1, from.size()), count = static_cast<int64_t>(places.size());
    const Shape to = join(join(from.slice(0, axis), by), from.slice(axis + 1));
    c.set_known(0, gathered(c, c.known(0), to, [&](int64_t i) {
                    const int64_t before = i / (count * inner), place = places[static_cast<size_t>(i / inner % count)];
                    return (before * from[axis] + place) * inner + i % inner;
                }));
}

void concat(NodeContext& c) {
    const Shape first = c.shape(0);
    const int axis = c.axis_in(c.integer("axis", 1), first.size());
    Shape to = first;
    to[axis] = 0;
    bool real = false;
    for (size_t i = 0; i < c.inputs(); ++i) {
        Shape s = c.shape(i);
        if (s.size() != first.size()) c.refuse(fmt::format("{} beside {}", to_string(s), to_string(first)));
        to[axis] += s[axis];
        s[axis] = first[axis];
        if (s != first) c.refuse(fmt::format("{} beside {}", to_string(c.shape(i)), to_string(first)));
        real = real || !whole(c.known(i));
    }
    Tensor made = c.fresh(to, real ? DType::f64 : DType::i64);
    const int64_t outer = product(to, 0, axis), inner = product(to, axis + 1, to.size());
    int64_t start = 0;
    for (size_t i = 0; i < c.inputs(); ++i) {
        const Tensor part = c.known(i).to(made.dtype());
        const int64_t run = part.shape()[axis] * inner;
        for (int64_t o = 0; o < outer; ++o)
            std::copy_n(part.data() + o * run * 8, run * 8, made.data() + (o * to[axis] * inner + start) * 8);
        start += run;
    }
    c.set_known(0, std::move(made));
}

void slice(NodeContext& c) {
    Tensor t = c.known(0);
    for (const SlicePart& part : slice_parts(c)) {
        const Shape from = t.shape();
        Shape to = from;
        to[part.axis] = part.count;
        t = gathered(c, t, to, [&](int64_t i) {
            Dims index = index_of(i, to);
            index[part.axis] = part.start + index[part.axis] * part.step;
            return offset_of(index, from);
        });
    }
    c.set_known(0, std::move(t));
}

void expand(NodeContext& c) { c.set_known(0, repeated(c, c.known(0), broadcast_shape(c.shape(0), sizes(c, c.known_ints(1))))); }

// --- Arithmetic: in whole numbers when both are, else in doubles ---

constexpr auto kWrap = [](int64_t v) { return static_cast<uint64_t>(v); };
struct Plus {
    static int64_t of(int64_t a, int64_t b) { return static_cast<int64_t>(kWrap(a) + kWrap(b)); }
    static double of(double a, double b) { return a + b; }
};
struct Minus {
    static int64_t of(int64_t a, int64_t b) { return static_cast<int64_t>(kWrap(a) - kWrap(b)); }
    static double of(double a, double b) { return a - b; }
};
struct Times {
    static int64_t of(int64_t a, int64_t b) { return static_cast<int64_t>(kWrap(a) * kWrap(b)); }
    static double of(double a, double b) { return a * b; }
};
struct Over {
    static int64_t of(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? Minus::of(int64_t{0}, a) : a / b; }
    static double of(double a, double b) { return a / b; }
};
struct Largest {
    template <class T>
    static T of(T a, T b) {
        return std::max(a, b);
    }
};
struct Smallest {
    template <class T>
    static T of(T a, T b) {
        return std::min(a, b);
    }
};
struct Equal {
    template <class T>
    static T of(T a, T b) {
        return a == b ? T{1} : T{0};
    }
};
struct Less {
    template <class T>
    static T of(T a, T b) {
        return a < b ? T{1} : T{0};
    }
};
struct Greater {
    template <class T>
    static T of(T a, T b) {
        return a > b ? T{1} : T{0};
    }
};

template <class Rule>
Tensor combined(NodeContext& c, const Tensor& x, const Tensor& y) {
    const Shape shape = broadcast_shape(x.shape(), y.shape());
    const DType type = whole(x) && whole(y) ? DType::i64 : DType::f64;
    const Tensor a = repeated(c, x.to(type), shape), b = repeated(c, y.to(type), shape);
    Tensor made = c.fresh(shape, type);
    const auto each = [&](auto zero) {
        using T = decltype(zero);
        for (size_t i = 0; i < made.as<T>().size(); ++i) made.as<T>()[i] = Rule::of(a.as<T>()[i], b.as<T>()[i]);
    };
    if (type == DType::i64)
        each(int64_t{0});
    else
        each(0.0);
    return made;
}
template <class Rule>
void binary(NodeContext& c) {
    if (c.opset() < 7 && c.has_attribute("axis")) c.refuse("numbers are not combined along an axis");
    c.integer("broadcast", 0);
    Tensor made = c.known(0);
    for (size_t i = 1; i < c.inputs(); ++i) made = combined<Rule>(c, made, c.known(i));
    c.set_known(0, std::move(made));
}
template <class Rule>
void compare(NodeContext& c) {
    c.set_known(0, combined<Rule>(c, c.known(0), c.known(1)).to(DType::i64));
}

template <class Fn>
void mapped(NodeContext& c, const Fn& fn) {
    Tensor t = c.known(0);
    const bool was_whole = whole(t);
    t = t.to(DType::f64);
    c.count(t.shape());
    for (double& v : t.as<double>()) v = fn(v);
    c.set_known(0, was_whole ? t.to(DType::i64) : std::move(t));
}
void negative(NodeContext& c) {
    mapped(c, [](double v) { return -v; });
}
void absolute(NodeContext& c) {
    mapped(c, [](double v) { return std::abs(v); });
}
void floor(NodeContext& c) {
    mapped(c, [](double v) { return std::floor(v); });
}
void ceil(NodeContext& c) {
    mapped(c, [](double v) { return std::ceil(v); });
}
void root(NodeContext& c) {
    mapped(c, [](double v) { return std::sqrt(v); });
}
void inverse(NodeContext& c) {
    mapped(c, [](double v) { return v == 0 ? 1.0 : 0.0; });
}

void where(NodeContext& c) {
    const Tensor x = c.known(1), y = c.known(2);
    const Shape shape = broadcast_shape(broadcast_shape(c.shape(0), x.shape()), y.shape());
    const DType type = whole(x) && whole(y) ? DType::i64 : DType::f64;
    const Tensor which = repeated(c, c.known(0).to(DType::f64), shape), a = repeated(c, x.to(type), shape),
                 b = repeated(c, y.to(type), shape);
    Tensor made = c.fresh(shape, type);
    for (int64_t i = 0; i < made.numel(); ++i) std::copy_n((element(which, i) != 0 ? a : b).data() + i * 8, 8, made.data() + i * 8);
    c.set_known(0, std::move(made));
}

// Over all elements, or along a vector.
template <class Rule>
void reduce(NodeContext& c) {
    const Tensor t = c.known(0);
    const bool keep = c.integer("keepdims", 1) != 0;
    auto axes = c.integers("axes");
    if (c.has(1)) axes = c.known_ints(1);
    if (static_cast<int>(c.axes_in(axes, std::max(1, t.shape().size())).size()) != t.shape().size() && !axes.empty())
        c.refuse("numbers are reduced along all dims or none");
    if (t.numel() == 0) c.refuse("of nothing");
    const auto at = [&](int64_t i) {
        Tensor one(Shape{}, t.dtype());
        std::copy_n(t.data() + i * 8, 8, one.data());
        return one;
    };
    Tensor made = at(0);
    for (int64_t i = 1; i < t.numel(); ++i) made = combined<Rule>(c, made, at(i));
    c.set_known(0, keep ? made.reshaped(Dims::filled(t.shape().size(), 1)) : std::move(made));
}

struct Entry {
    std::string_view op;
    Fold fold;
};
// These need the shape of what they read, not its numbers.
constexpr Entry kOfShapes[] = {{"Shape", shape}, {"Size", size}};
constexpr Entry kOfNumbers[] = {{"Constant", constant},
                                {"ConstantOfShape", constant_of_shape},
                                {"Range", range},
                                {"Cast", cast},
                                {"Identity", identity},
                                {"Reshape", reshape},
                                {"Flatten", reshape},
                                {"Squeeze", reshape},
                                {"Unsqueeze", reshape},
                                {"Transpose", transpose},
                                {"Gather", gather},
                                {"Concat", concat},
                                {"Slice", slice},
                                {"Expand", expand},
                                {"Add", binary<Plus>},
                                {"Sub", binary<Minus>},
                                {"Mul", binary<Times>},
                                {"Div", binary<Over>},
                                {"Max", binary<Largest>},
                                {"Min", binary<Smallest>},
                                {"Equal", compare<Equal>},
                                {"Less", compare<Less>},
                                {"Greater", compare<Greater>},
                                {"Neg", negative},
                                {"Abs", absolute},
                                {"Floor", floor},
                                {"Ceil", ceil},
                                {"Sqrt", root},
                                {"Not", inverse},
                                {"Where", where},
                                {"ReduceSum", reduce<Plus>},
                                {"ReduceProd", reduce<Times>},
                                {"ReduceMax", reduce<Largest>},
                                {"ReduceMin", reduce<Smallest>}};

}  // namespace

bool fold(NodeContext& c) {
    if (!c.node().domain.empty() && c.node().domain != "ai.onnx") return false;
    if (c.node().op == "Identity" && c.alias_stored()) return true;
    const auto run = [&](const Entry& entry) {
        if (entry.op != c.node().op) return false;
        entry.fold(c);
        c.require_all_attributes_known();
        return true;
    };
    for (const Entry& entry : kOfShapes)
        if (run(entry)) return true;
    for (size_t i = 0; i < c.inputs(); ++i)
        if (c.has(i) && !c.is_known(i)) return false;
    return std::any_of(std::begin(kOfNumbers), std::end(kOfNumbers), run);
}

}  // namespace convoy::onnx
