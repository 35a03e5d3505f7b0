#include "onnx/context.h"

#include <algorithm>
#include <numeric>

#include "data/bytes.h"

namespace convoy::onnx {

namespace {

constexpr int64_t kLargest = int64_t{1} << 31;   // of a size or setting
constexpr int64_t kElements = int64_t{1} << 40;  // of a value
constexpr size_t kRuns = 1024;                   // pieces that a dim is put together from

std::string plain(std::string_view text) {
    std::string result(text.substr(0, 200));
    std::replace_if(
        result.begin(), result.end(), [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; }, '?');
    return result;
}

// A layer is named after its weight ("layer1.0.conv1" of "layer1.0.conv1.weight"), else as its node, else as its result.
std::string base_name(const Import& import, const Node& node) {
    for (size_t i = 1; i < node.inputs.size(); ++i) {
        const auto at = import.items.find(node.inputs[i]);
        const std::string_view name = node.inputs[i];
        constexpr std::string_view kSuffix = ".weight";
        if (at != import.items.end() && at->second.stored && name.size() > kSuffix.size() &&
            name.substr(name.size() - kSuffix.size()) == kSuffix)
            return plain(name.substr(0, name.size() - kSuffix.size()));
    }
    if (!node.name.empty()) return plain(node.name);
    return node.outputs.empty() ? plain(node.op) : plain(node.outputs[0]);
}

bool is_integer(const Graph& graph, ValueId v) {
    const Element element = graph.value(v).type.element;
    return element == Element::Index || element == Element::Byte;
}

// Targets and places may be moved about and read by what they are for.
bool takes_integers(const Op& op) {
    return std::holds_alternative<ReshapeOp>(op) || std::holds_alternative<TransposeOp>(op) || std::holds_alternative<SliceOp>(op) ||
           std::holds_alternative<ConcatOp>(op) || std::holds_alternative<NllOp>(op) || std::holds_alternative<MaxIndexOp>(op);
}

}  // namespace

Shape Item::shape(const Graph& graph) const {
    if (known) return known->shape();
    if (stored) return stored->shape;
    return graph.shape(id);
}

void Import::count_folded(int64_t elements) {
    folded += elements;
    const int64_t most = (1 << 15) + 4 * static_cast<int64_t>(bytes.size());
    require(folded <= most, "its constants have {} elements, more than {} for a file of {} bytes", folded, most, bytes.size());
}

NodeContext::NodeContext(Import& import, const Node& node) : import_(import), node_(node) {
    const std::string base = base_name(import, node);
    layer_ = base;
    while (import.layers[layer_]++ > 0) layer_ = fmt::format("{}#{}", base, import.layers[base]);
}

void NodeContext::refuse(const std::string& why) const {
    fail("{} {}: {}", plain(node_.op), in_quotes(node_.name.empty() && !node_.outputs.empty() ? node_.outputs[0] : node_.name), why);
}

// --- Inputs ---

Item& NodeContext::item(size_t i) {
    if (!has(i)) refuse(fmt::format("input {} is missing", i + 1));
    const auto at = import_.items.find(node_.inputs[i]);
    if (at == import_.items.end()) refuse(fmt::format("it reads {}, which nothing before it makes", in_quotes(node_.inputs[i])));
    return at->second;
}

Shape NodeContext::shape(size_t i) { return item(i).shape(import_.graph); }

bool NodeContext::is_known(size_t i) {
    const Item& it = item(i);
    return it.known || (it.stored && numel(it.stored->shape) == 1);
}

Tensor NodeContext::known(size_t i) {
    const Item& it = item(i);
    if (it.known) return *it.known;
    if (it.stored) return read_tensor(*it.stored).to(DType::f64);
    const std::string name(node_.inputs[i]);
    const std::string text =
        fmt::format("{} {}: the numbers of its input {} must be known when the model is read, but {}", plain(node_.op), in_quotes(layer_),
                    in_quotes(name), it.graph_input ? "it is an input of the network" : "they depend on the network's input");
    if (it.graph_input) throw NeedsConstant(text, name);
    fail("{}", text);
}

std::vector<int64_t> NodeContext::known_ints(size_t i) {
    const Tensor t = known(i).to(DType::f64);
    std::vector<int64_t> values;
    for (int64_t k = 0; k < t.numel(); ++k) {
        const double v = element(t, k);
        if (!(std::abs(v) <= 9e15)) refuse(fmt::format("input {} holds {}, expected whole numbers", i + 1, v));
        values.push_back(static_cast<int64_t>(v));
    }
    // Beyond 2^53 doubles are not exact: "to the end" is written so, and any large number will do.
    if (const Tensor exact = known(i); exact.dtype() == DType::i64) values.assign(exact.as<int64_t>().begin(), exact.as<int64_t>().end());
    return values;
}

double NodeContext::known_number(size_t i) {
    const Tensor t = known(i);
    if (t.numel() != 1) refuse(fmt::format("input {} is {}, expected one number", i + 1, to_string(t.shape())));
    return element(t, 0);
}

ValueId NodeContext::state(size_t i, StateKind kind) {
    Item& it = item(i);
    if (it.id != kNone) return it.id;
    const std::string name(node_.inputs[i]);
    StateSpec spec{.name = name, .shape = it.shape(import_.graph), .kind = kind, .decays = kind == StateKind::Parameter};
    if (spec.shape.size() < 2) spec.decays = false;
    if (numel(spec.shape) == 0) refuse(fmt::format("{} is empty", in_quotes(name)));
    const bool in_file = it.stored && it.stored->whole_bytes && is_real(it.stored->type) && !import_.options.path.empty();
    const Tensor numbers = in_file ? Tensor() : known(i).to(DType::f64);
    if (in_file) {
        const DType type = it.stored->type == DataType::Double ? DType::f64 : DType::f32;
        const int64_t bytes = numel(spec.shape) * size_of(type);
        if (it.stored->external || static_cast<int64_t>(it.stored->raw.size()) != bytes)
            read_tensor(*it.stored);  // which says what is wrong
        spec.initializer = {.kind = Initializer::Kind::File,
                            .file = {import_.options.path, it.stored->raw.data() - import_.bytes.data(), type}};
    } else {
        spec.initializer = {.kind = Initializer::Kind::Values, .values = {numbers.as<double>().begin(), numbers.as<double>().end()}};
    }
    return it.id = import_.graph.add_state(spec);
}

ValueId NodeContext::value(size_t i) {
    const Item& it = item(i);
    return state(i, it.stored ? StateKind::Parameter : StateKind::Buffer);
}

ValueId NodeContext::named(std::string_view name) const {
    const auto at = import_.items.find(name);
    if (at == import_.items.end() || at->second.id == kNone) refuse(fmt::format("the graph does not compute {}", in_quotes(name)));
    return at->second.id;
}

ValueId NodeContext::buffer(size_t i) { return state(i, StateKind::Buffer); }

void NodeContext::count(const Shape& shape) {
    const auto elements = checked_bytes(shape, 1);
    if (!elements || *elements > kElements) refuse(fmt::format("a constant of {}", to_string(shape)));
    import_.count_folded(*elements);
}

Tensor NodeContext::fresh(const Shape& shape, DType type) {
    count(shape);
    return {shape, type};
}

Tensor NodeContext::filled(const Shape& shape, double value) {
    Tensor tensor = fresh(shape, DType::f64);
    for (auto& v : tensor.as<double>()) v = value;
    return tensor;
}

ValueId NodeContext::constant(const Tensor& numbers, const std::string& suffix) {
    const Tensor t = numbers.to(DType::f64);
    StateSpec spec{.name = layer_ + suffix, .shape = t.shape(), .kind = StateKind::Buffer, .decays = false};
    for (int n = 2; import_.graph.find_state(spec.name); ++n) spec.name = fmt::format("{}{}#{}", layer_, suffix, n);
    spec.initializer = {.kind = Initializer::Kind::Values, .values = {t.as<double>().begin(), t.as<double>().end()}};
    return import_.graph.add_state(spec);
}

// --- Attributes ---

const Attribute* NodeContext::find(std::string_view name) const {
    const auto at = std::find_if(node_.attributes.begin(), node_.attributes.end(), [&](const Attribute& a) { return a.name == name; });
    return at == node_.attributes.end() ? nullptr : &*at;
}
const Attribute* NodeContext::attribute(std::string_view name) {
    used_.insert(name);
    return find(name);
}
int64_t NodeContext::integer(std::string_view name, int64_t fallback) {
    const Attribute* a = attribute(name);
    return a ? a->i : fallback;
}
double NodeContext::real(std::string_view name, double fallback) {
    const Attribute* a = attribute(name);
    if (!a) return fallback;
    // What was written as a decimal of few digits is meant as that number, not as the float nearest to it.
    double value = 0;
    std::sscanf(fmt::format("{}", a->f).c_str(), "%lf", &value);
    return value;
}
std::string NodeContext::text(std::string_view name, std::string_view fallback) {
    const Attribute* a = attribute(name);
    return std::string(a ? a->s : fallback);
}
std::vector<int64_t> NodeContext::integers(std::string_view name) {
    const Attribute* a = attribute(name);
    return a ? a->ints : std::vector<int64_t>{};
}

void NodeContext::require_all_attributes_known() const {
    for (const Attribute& a : node_.attributes)
        if (!used_.count(a.name)) refuse(fmt::format("attribute {} is not supported in operator set {}", in_quotes(a.name), opset()));
}

Dims NodeContext::window_setting(std::string_view name, int rank, int64_t fallback, int64_t low) {
    const auto values = integers(name);
    if (values.empty()) return Dims::filled(rank, fallback);
    if (static_cast<int>(values.size()) != rank) refuse(fmt::format("{} has {} entries, expected {}", name, values.size(), rank));
    Dims dims;
    for (const int64_t v : values) {
        if (v < low || v > kLargest) refuse(fmt::format("{} holds {}, expected {}..{}", name, v, low, kLargest));
        dims.push_back(v);
    }
    return dims;
}

// --- Outputs ---

void NodeContext::set(size_t o, ValueId value) {
    if (!wants(o)) return;
    Item made;
    made.id = value;
    if (!import_.items.emplace(node_.outputs[o], std::move(made)).second)
        refuse(fmt::format("{} is made twice", in_quotes(node_.outputs[o])));
}

void NodeContext::set_known(size_t o, Tensor numbers) {
    if (!wants(o)) return;
    Item made;
    made.known = std::move(numbers);
    if (!import_.items.emplace(node_.outputs[o], std::move(made)).second)
        refuse(fmt::format("{} is made twice", in_quotes(node_.outputs[o])));
}

bool NodeContext::alias_stored() {
    const Item& it = item(0);
    if (!it.stored || !wants(0)) return false;
    Item alias;
    alias.stored = it.stored;
    if (!import_.items.emplace(node_.outputs[0], std::move(alias)).second)
        refuse(fmt::format("{} is made twice", in_quotes(node_.outputs[0])));
    return true;
}

// --- Nodes of the graph ---

std::vector<ValueId> NodeContext::add_all(const Op& op, const std::vector<ValueId>& inputs) {
    if (!takes_integers(op))
        for (const ValueId v : inputs)
            if (is_integer(import_.graph, v)) refuse("it would compute with whole numbers, which networks here do not");
    std::vector<ValueId> made;
    try {
        made = import_.graph.add(op, inputs, layer_);
    } catch (const Error& e) {
        refuse(e.what());
    }
    // A node of the file becomes a few of ours; a small file that becomes very many means to take memory.
    const size_t nodes = import_.graph.nodes().size(), most = 400 + import_.bytes.size() / 8;
    if (nodes > most)
        refuse(fmt::format("with it the graph has {} nodes, more than {} for a file of {} bytes", nodes, most, import_.bytes.size()));
    for (const ValueId v : made) {
        const Shape& shape = import_.graph.shape(v);
        const auto bytes = checked_bytes(shape, 1);
        bool small = bytes && *bytes <= kElements && *bytes > 0;
        for (const int64_t size : shape) small = small && size <= kLargest;
        if (!small) refuse(fmt::format("its result would be {}", to_string(shape)));
    }
    return made;
}

ValueId NodeContext::add(const Op& op, const std::vector<ValueId>& inputs) { return add_all(op, inputs)[0]; }

ValueId NodeContext::reshape(ValueId v, const Shape& shape) { return shape_of(v) == shape ? v : add(ReshapeOp{shape}, {v}); }

ValueId NodeContext::transpose(ValueId v, const Dims& order) {
    for (int d = 0; d < order.size(); ++d)
        if (order[d] != d) return add(TransposeOp{order}, {v});
    return v;
}

ValueId NodeContext::scale(ValueId v, double factor) { return factor == 1 ? v : add(ScaleOp{factor}, {v}); }
ValueId NodeContext::shift(ValueId v, double by) { return by == 0 ? v : map(Pointwise::Shift, v, by); }

ValueId NodeContext::broadcast(ValueId v, const Shape& shape) {
    const Shape from = shape_of(v);
    if (from == shape) return v;
    if (from.size() > shape.size()) refuse(fmt::format("{} does not repeat to {}", to_string(from), to_string(shape)));
    const Shape filled = join(Dims::filled(shape.size() - from.size(), 1), from);
    const ValueId same_rank = reshape(v, filled);
    return filled == shape ? same_rank : add(ExpandOp{shape}, {same_rank});
}

Shape broadcast_shape(const Shape& a, const Shape& b) {
    Shape result = a.size() >= b.size() ? a : b;
    const Shape& shorter = a.size() >= b.size() ? b : a;
    const int lead = result.size() - shorter.size();
    for (int d = 0; d < shorter.size(); ++d) {
        int64_t& size = result[lead + d];
        require(size == shorter[d] || size == 1 || shorter[d] == 1, "shapes {} and {} do not fit", to_string(a), to_string(b));
        if (size == 1) size = shorter[d];
    }
    return result;
}

// A vector along one or several neighbouring dims is a bias, which needs no copy of it as large as the other operand.
ValueId NodeContext::plus(ValueId a, ValueId b) {
    for (const auto& [x, y] : {std::pair{a, b}, std::pair{b, a}}) {
        const Shape xs = shape_of(x), ys = shape_of(y);
        if (xs == ys || ys.size() > xs.size() || numel(ys) == 1) continue;
        const Shape full = join(Dims::filled(xs.size() - ys.size(), 1), ys);
        int first = 0, last = full.size();
        while (first < last && full[first] == 1) ++first;
        while (last > first && full[last - 1] == 1) --last;
        bool fits = first < last;
        for (int d = first; d < last; ++d) fits = fits && full[d] == xs[d];
        if (fits) return add(BiasOp{first}, {x, reshape(y, full.slice(first, last))});
    }
    const Shape shape = broadcast_shape(shape_of(a), shape_of(b));
    return add(AddOp{}, {broadcast(a, shape), broadcast(b, shape)});
}

ValueId NodeContext::times(ValueId a, ValueId b) {
    const Shape shape = broadcast_shape(shape_of(a), shape_of(b));
    return add(MulOp{}, {broadcast(a, shape), broadcast(b, shape)});
}

ValueId NodeContext::slice(ValueId v, int axis, int64_t start, int64_t size) {
    const Shape shape = shape_of(v);
    if (start == 0 && size == shape[axis]) return v;
    Dims starts = Dims::filled(shape.size(), 0), sizes = shape;
    starts[axis] = start;
    sizes[axis] = size;
    return add(SliceOp{starts, sizes}, {v});
}

ValueId NodeContext::select(ValueId v, int axis, const std::vector<int64_t>& places) {
    std::vector<ValueId> runs;
    for (size_t i = 0; i < places.size();) {
        size_t end = i + 1;
        while (end < places.size() && places[end] == places[end - 1] + 1) ++end;
        if (runs.size() >= kRuns) refuse(fmt::format("it picks more than {} pieces", kRuns));
        runs.push_back(slice(v, axis, places[i], static_cast<int64_t>(end - i)));
        i = end;
    }
    if (runs.empty()) refuse("its result is empty");
    return runs.size() == 1 ? runs[0] : add(ConcatOp{axis}, runs);
}

ValueId NodeContext::sum_over(ValueId v, const std::vector<int>& axes) {
    Shape shape = shape_of(v);
    for (const int d : axes) shape[d] = 1;
    return shape == shape_of(v) ? v : add(SumToOp{shape}, {v});
}

// A maximum over dims is a pooling with a window over all of them.
ValueId NodeContext::max_over(ValueId v, const std::vector<int>& axes) {
    const Shape shape = shape_of(v);
    Shape kept = shape;
    Dims order;
    for (const int d : axes) kept[d] = 1;
    int64_t count = 1;
    for (int d = 0; d < shape.size(); ++d)
        if (std::find(axes.begin(), axes.end(), d) == axes.end()) order.push_back(d);
    for (const int d : axes) {
        order.push_back(d);
        count *= shape[d];
    }
    const ValueId lines = reshape(transpose(v, order), {1, numel(kept), count});
    return reshape(add_all(MaxPoolOp{Window::of({count})}, {lines})[0], kept);
}

int NodeContext::axis_in(int64_t axis, int rank) const {
    if (axis < -rank || axis >= rank) refuse(fmt::format("there is no dim {} among {}", axis, rank));
    return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::vector<int> NodeContext::axes_in(const std::vector<int64_t>& axes, int rank) const {
    std::vector<int> result;
    for (const int64_t a : axes) result.push_back(axis_in(a, rank));
    std::sort(result.begin(), result.end());
    if (std::adjacent_find(result.begin(), result.end()) != result.end()) refuse("a dim is named twice");
    return result;
}

}  // namespace convoy::onnx
