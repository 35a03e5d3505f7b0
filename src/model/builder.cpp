#include "model/builder.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"

namespace convoy {

namespace {

// --- Checks. `kind` and `name` are the layer's, for the texts. ---

// The spatial dims of an activation [N, C, ..].
Dims spatial_of(const char* kind, const std::string& name, const Shape& x) {
    require(x.size() >= 3, "{} \"{}\": the input is {}, expected N x C and at least one spatial dim", kind, name, to_string(x));
    return x.slice(2);
}

// A setting with one entry per spatial dim, each at least `least`; `fallback` when it is empty.
Dims per_dim(const char* kind, const std::string& name, const char* what, const Dims& given, const Dims& fallback, int64_t least) {
    const Dims dims = given.empty() ? fallback : given;
    require(dims.size() == fallback.size(), "{} \"{}\": {} {} has {} dims, but the input has {} spatial dims", kind, name, what,
            to_string(dims), dims.size(), fallback.size());
    for (const int64_t v : dims) require(v >= least, "{} \"{}\": {} {}, expected at least {}", kind, name, what, to_string(dims), least);
    return dims;
}

// The window of a spec over `rank` spatial dims.
template <class Spec>
Window window_of(const char* kind, const std::string& name, const Spec& spec, int rank) {
    require(!spec.kernel.empty(), "{} \"{}\": no kernel given", kind, name);
    const Dims ones = Dims::filled(rank, 1), zeros = Dims::filled(rank, 0);
    Window window;
    window.kernel = per_dim(kind, name, "kernel", spec.kernel, ones, 1);
    window.stride = per_dim(kind, name, "stride", spec.stride, ones, 1);
    window.dilation = per_dim(kind, name, "dilation", spec.dilation, ones, 1);
    window.pad_lo = per_dim(kind, name, "padding", spec.pad, zeros, 0);
    window.pad_hi = window.pad_lo;
    return window;
}

void check_filters(const char* kind, const std::string& name, int64_t channels, int64_t filters, int64_t groups) {
    require(filters > 0, "{} \"{}\": {} filters, expected at least 1", kind, name, filters);
    require(groups > 0 && channels % groups == 0 && filters % groups == 0,
            "{} \"{}\": {} channels and {} filters do not divide into {} groups", kind, name, channels, filters, groups);
}

Initializer weight_initializer(Init init, double fan_in, double fan_out) {
    using Kind = Initializer::Kind;
    switch (init) {
        case Init::Default: return {.kind = Kind::Uniform, .value = 1 / std::sqrt(fan_in)};
        case Init::XavierUniform: return {.kind = Kind::Uniform, .value = std::sqrt(6 / (fan_in + fan_out))};
        case Init::XavierNormal: return {.kind = Kind::Normal, .value = std::sqrt(2 / (fan_in + fan_out))};
        case Init::HeUniform: return {.kind = Kind::Uniform, .value = std::sqrt(6 / fan_in)};
        case Init::HeNormal: return {.kind = Kind::Normal, .value = std::sqrt(2 / fan_in)};
        case Init::HeNormalFanOut: return {.kind = Kind::Normal, .value = std::sqrt(2 / fan_out)};
        case Init::Normal001: return {.kind = Kind::Normal, .value = 0.01};
    }
    CONVOY_CHECK(false, "initialisation {}", static_cast<int>(init));
}

Initializer constant(double value) { return {.kind = Initializer::Kind::Constant, .value = value}; }

}  // namespace

// --- Parameters -----------------------------------------------------------------------------------------------------------------

struct Builder::Affine {
    Shape weight, bias;  // no dims: no bias
    int64_t fan_in = 1, fan_out = 1;
    Init init = Init::Default;
    bool zero_bias = false;
    std::string share;
};

ValueId Builder::parameter(const std::string& name, const Shape& shape, const Initializer& initializer, bool decays) {
    return graph_.add_state({name, shape, initializer, StateKind::Parameter, decays});
}

ValueId Builder::own_parameter(const char* kind, const std::string& layer, const char* suffix, const Shape& shape,
                               const Initializer& initializer, StateKind state, bool decays) {
    const std::string name = layer + suffix;
    // Without this check a repeated name would silently share its parameters.
    require(!graph_.find_state(name), "{} \"{}\": \"{}\" exists already; give the layer another name, or share the parameters", kind, layer,
            name);
    return graph_.add_state({name, shape, initializer, state, decays});
}

ValueId Builder::shared_parameter(const char* kind, const std::string& layer, const std::string& owner, const char* suffix,
                                  const Shape& shape) {
    const std::string name = owner + suffix;
    const auto found = graph_.find_state(name);
    require(found.has_value(), "{} \"{}\": shares \"{}\", which does not exist", kind, layer, name);
    require(graph_.shape(*found) == shape, "{} \"{}\": shares \"{}\", which is {}, expected {}", kind, layer, name,
            to_string(graph_.shape(*found)), to_string(shape));
    return *found;
}

ValueId Builder::weight(const char* kind, const std::string& name, const Affine& affine) {
    if (!affine.share.empty()) return shared_parameter(kind, name, affine.share, ".weight", affine.weight);
    const auto initializer = weight_initializer(affine.init, static_cast<double>(affine.fan_in), static_cast<double>(affine.fan_out));
    return own_parameter(kind, name, ".weight", affine.weight, initializer, StateKind::Parameter, true);
}

ValueId Builder::add_bias(const char* kind, const std::string& name, ValueId x, const Affine& affine) {
    if (affine.bias.empty()) return x;
    const auto initializer =
        affine.zero_bias ? constant(0)
                         : weight_initializer(Init::Default, static_cast<double>(affine.fan_in), static_cast<double>(affine.fan_out));
    const ValueId bias = affine.share.empty() ? own_parameter(kind, name, ".bias", affine.bias, initializer)
                                              : shared_parameter(kind, name, affine.share, ".bias", affine.bias);
    return graph_.add1(BiasOp{1}, {x, bias}, name);
}

// --- Layers with weights --------------------------------------------------------------------------------------------------------

ValueId Builder::input(const Shape& shape, const std::string& name) { return graph_.add_input(name, {shape, Element::Real}); }

ValueId Builder::conv(const std::string& name, ValueId x, const ConvSpec& spec) {
    const char* kind = "conv";
    const int rank = spatial_of(kind, name, shape(x)).size();
    const int64_t channels = shape(x)[1];
    Window window = window_of(kind, name, spec, rank);
    window.pad_hi = per_dim(kind, name, "high padding", spec.pad_hi, window.pad_lo, 0);
    check_filters(kind, name, channels, spec.filters, spec.groups);
    const int64_t taps = numel(spec.kernel);
    const Affine affine{.weight = join({spec.filters, channels / spec.groups}, spec.kernel),
                        .bias = spec.bias ? Shape{spec.filters} : Shape{},
                        .fan_in = channels / spec.groups * taps,
                        .fan_out = spec.filters * taps,
                        .init = spec.init,
                        .zero_bias = spec.zero_bias,
                        .share = spec.share};
    const ValueId y = graph_.add1(ConvOp{window, spec.groups}, {x, weight(kind, name, affine)}, name);
    return add_bias(kind, name, y, affine);
}

ValueId Builder::conv_transpose(const std::string& name, ValueId x, const ConvTransposeSpec& spec) {
    const char* kind = "conv_transpose";
    const Dims in = spatial_of(kind, name, shape(x));
    const int64_t channels = shape(x)[1];
    const Window window = window_of(kind, name, spec, in.size());
    const Dims extra = per_dim(kind, name, "output padding", spec.output_padding, Dims::filled(in.size(), 0), 0);
    check_filters(kind, name, channels, spec.filters, spec.groups);
    Dims out;
    for (int i = 0; i < in.size(); ++i) {
        require(extra[i] < window.stride[i], "{} \"{}\": output padding {}, expected less than the stride {}", kind, name, to_string(extra),
                to_string(window.stride));
        out.push_back((in[i] - 1) * window.stride[i] - 2 * window.pad_lo[i] + window.extent(i) + extra[i]);
        require(out[i] > 0, "{} \"{}\": padding {} leaves nothing of an input of {}", kind, name, to_string(window.pad_lo), to_string(in));
    }
    const int64_t taps = numel(spec.kernel);
    const Affine affine{.weight = join({channels, spec.filters / spec.groups}, spec.kernel),
                        .bias = spec.bias ? Shape{spec.filters} : Shape{},
                        .fan_in = spec.filters / spec.groups * taps,  // of the weight tensor, as PyTorch takes it, not of the layer
                        .fan_out = channels * taps,
                        .init = spec.init,
                        .zero_bias = spec.zero_bias,
                        .share = spec.share};
    const ValueId y = graph_.add1(ConvGradInputOp{window, spec.groups, out}, {x, weight(kind, name, affine)}, name);
    return add_bias(kind, name, y, affine);
}

ValueId Builder::local_conv(const std::string& name, ValueId x, const ConvSpec& spec) {
    const char* kind = "local_conv";
    const Dims in = spatial_of(kind, name, shape(x));
    const int64_t channels = shape(x)[1];
    require(spec.groups == 1, "{} \"{}\": {} groups, expected 1", kind, name, spec.groups);
    Window window = window_of(kind, name, spec, in.size());
    window.pad_hi = per_dim(kind, name, "high padding", spec.pad_hi, window.pad_lo, 0);
    check_filters(kind, name, channels, spec.filters, 1);
    const Dims out = window.output(in);
    for (const int64_t o : out)
        require(o > 0, "{} \"{}\": a window of {} does not fit into {}", kind, name, to_string(spec.kernel), to_string(in));
    const int64_t taps = numel(spec.kernel);
    const Affine affine{.weight = join(join(join({spec.filters}, out), {channels}), spec.kernel),
                        .bias = spec.bias ? join({spec.filters}, out) : Shape{},
                        .fan_in = channels * taps,
                        .fan_out = spec.filters * taps,
                        .init = spec.init,
                        .zero_bias = spec.zero_bias,
                        .share = spec.share};
    const ValueId y = graph_.add1(LocalConvOp{window}, {x, weight(kind, name, affine)}, name);
    return add_bias(kind, name, y, affine);
}

ValueId Builder::linear(const std::string& name, ValueId x, const LinearSpec& spec) {
    const char* kind = "linear";
    require(shape(x).size() == 2, "{} \"{}\": the input is {}, expected two dims (flatten first)", kind, name, to_string(shape(x)));
    require(spec.outputs > 0, "{} \"{}\": {} outputs, expected at least 1", kind, name, spec.outputs);
    const int64_t inputs = shape(x)[1];
    const Affine affine{.weight = {spec.outputs, inputs},
                        .bias = spec.bias ? Shape{spec.outputs} : Shape{},
                        .fan_in = inputs,
                        .fan_out = spec.outputs,
                        .init = spec.init,
                        .zero_bias = spec.zero_bias,
                        .share = spec.share};
    const ValueId y = graph_.add1(LinearOp{}, {x, weight(kind, name, affine)}, name);
    return add_bias(kind, name, y, affine);
}

// --- Pooling and resampling -----------------------------------------------------------------------------------------------------

namespace {

Window pool_window(const char* kind, const std::string& name, const PoolSpec& spec, int rank) {
    Window window = window_of(kind, name, spec, rank);
    if (spec.stride.empty()) window.stride = window.kernel;
    for (int i = 0; i < rank; ++i)
        require(2 * window.pad_lo[i] <= window.kernel[i], "{} \"{}\": padding {}, expected at most half of the kernel {}", kind, name,
                to_string(window.pad_lo), to_string(window.kernel));
    return window;
}

// How far the last window of ceil mode reaches past the padded input, per dim.
Dims ceil_overflow(const char* kind, const std::string& name, const Window& w, const Dims& in) {
    Dims overflow;
    for (int i = 0; i < w.rank(); ++i) {
        const int64_t padded = in[i] + w.pad_lo[i] + w.pad_hi[i], room = padded - w.extent(i) + w.stride[i] - 1;
        int64_t out = room < 0 ? 0 : room / w.stride[i] + 1;
        if ((out - 1) * w.stride[i] >= in[i] + w.pad_lo[i]) --out;
        require(out > 0, "{} \"{}\": a window of {} does not fit into {}", kind, name, to_string(w.kernel), to_string(in));
        overflow.push_back(std::max<int64_t>(0, (out - 1) * w.stride[i] + w.extent(i) - padded));
    }
    return overflow;
}

}  // namespace

ValueId Builder::max_pool(const std::string& name, ValueId x, const PoolSpec& spec) {
    const Dims in = spatial_of("max_pool", name, shape(x));
    Window window = pool_window("max_pool", name, spec, in.size());
    if (spec.ceil) {
        const Dims overflow = ceil_overflow("max_pool", name, window, in);
        for (int i = 0; i < in.size(); ++i) window.pad_hi[i] += overflow[i];  // padding never is the maximum
    }
    return graph_.add(MaxPoolOp{window}, {x}, name)[0];
}

ValueId Builder::average_pool(const std::string& name, ValueId x, const PoolSpec& spec) {
    const Dims in = spatial_of("average_pool", name, shape(x));
    const Window window = pool_window("average_pool", name, spec, in.size());
    require(window.dilation == Dims::filled(in.size(), 1), "average_pool \"{}\": dilation {}, expected none", name,
            to_string(window.dilation));
    const Dims overflow = spec.ceil ? ceil_overflow("average_pool", name, window, in) : Dims::filled(in.size(), 0);
    return graph_.add1(AveragePoolOp{window, spec.count_padding, overflow}, {x}, name);
}

ValueId Builder::adaptive_pool(const std::string& name, ValueId x, const Dims& output) {
    return graph_.add1(AdaptivePoolOp{output}, {x}, name);
}

ValueId Builder::upsample(const std::string& name, ValueId x, const Dims& output, Resample mode, bool align_corners) {
    return graph_.add1(UpsampleOp{mode, output, align_corners}, {x}, name);
}

// --- Normalisation --------------------------------------------------------------------------------------------------------------

ValueId Builder::batch_norm(const std::string& name, ValueId x, double epsilon, double momentum) {
    const char* kind = "batch_norm";
    require(shape(x).size() >= 2, "{} \"{}\": the input is {}, expected N x C ...", kind, name, to_string(shape(x)));
    const Shape cells{shape(x)[1]};
    const ValueId gamma = own_parameter(kind, name, ".weight", cells, constant(1));
    const ValueId beta = own_parameter(kind, name, ".bias", cells, constant(0));
    const ValueId mean = own_parameter(kind, name, ".running_mean", cells, constant(0), StateKind::Buffer);
    const ValueId variance = own_parameter(kind, name, ".running_var", cells, constant(1), StateKind::Buffer);
    ValueId stats = kNone;
    if (mode_ == Mode::Training) {
        const int64_t count = numel(shape(x)) / cells[0];
        require(count > 1, "{} \"{}\": training needs more than one element per channel, found an input of {}; use a larger batch or input",
                kind, name, to_string(shape(x)));
        stats = graph_.add1(BatchStatsOp{}, {x}, name);
        const auto next = graph_.add(RunningUpdateOp{momentum, count}, {mean, variance, stats}, name);
        graph_.add_store(mean, next[0]);
        graph_.add_store(variance, next[1]);
    } else {
        stats = graph_.add1(RunningStatsOp{}, {mean, variance}, name);
    }
    return graph_.add1(BatchNormalizeOp{epsilon}, {x, stats, gamma, beta}, name);
}

ValueId Builder::group_norm(const std::string& name, ValueId x, int64_t groups, double epsilon) {
    require(shape(x).size() >= 2 && groups > 0, "group_norm \"{}\": {} groups over {}, expected at least 1 over N x C ...", name, groups,
            to_string(shape(x)));
    const Cells cells{.groups = groups};
    const ValueId stats = graph_.add1(CellStatsOp{cells}, {x}, name);
    const Shape affine{shape(x)[1]};
    const ValueId gamma = own_parameter("group_norm", name, ".weight", affine, constant(1));
    const ValueId beta = own_parameter("group_norm", name, ".bias", affine, constant(0));
    return graph_.add1(CellNormalizeOp{cells, epsilon}, {x, stats, gamma, beta}, name);
}

ValueId Builder::layer_norm(const std::string& name, ValueId x, int axis, double epsilon) {
    const Cells cells{.axis = axis};
    const ValueId stats = graph_.add1(CellStatsOp{cells}, {x}, name);
    const Shape affine = shape(x).slice(axis);
    const ValueId gamma = own_parameter("layer_norm", name, ".weight", affine, constant(1));
    const ValueId beta = own_parameter("layer_norm", name, ".bias", affine, constant(0));
    return graph_.add1(CellNormalizeOp{cells, epsilon}, {x, stats, gamma, beta}, name);
}

ValueId Builder::lrn(const std::string& name, ValueId x, const LrnOp& op) { return graph_.add1(op, {x}, name); }

// --- Elementwise ----------------------------------------------------------------------------------------------------------------

ValueId Builder::unary(const std::string& name, ValueId x, Unary kind, double alpha) {
    return graph_.add1(UnaryOp{kind, alpha}, {x}, name);
}

ValueId Builder::prelu(const std::string& name, ValueId x, bool per_channel) {
    require(shape(x).size() >= 2, "prelu \"{}\": the input is {}, expected N x C ...", name, to_string(shape(x)));
    const ValueId slope = own_parameter("prelu", name, ".weight", {per_channel ? shape(x)[1] : 1}, constant(0.25));
    return graph_.add1(PReluOp{}, {x, slope}, name);
}

ValueId Builder::softmax(const std::string& name, ValueId x, int axis) { return graph_.add1(SoftmaxOp{axis}, {x}, name); }

ValueId Builder::dropout(const std::string& name, ValueId x, double p) {
    require(p >= 0 && p < 1, "dropout \"{}\": a probability of {}, expected 0 <= p < 1", name, p);
    if (mode_ == Mode::Evaluation || !dropout_) return x;
    return graph_.add1(DropoutOp{.p = p, .stream = stream_of(name)}, {x}, name);
}

ValueId Builder::add(const std::string& name, const std::vector<ValueId>& xs) { return graph_.add1(AddOp{}, xs, name); }

ValueId Builder::mul(const std::string& name, ValueId a, ValueId b) {
    const Shape left = shape(a), right = shape(b);
    require(left.size() == right.size(), "mul \"{}\": {} and {} differ in rank", name, to_string(left), to_string(right));
    Shape both = left;
    for (int i = 0; i < both.size(); ++i) both[i] = std::max(left[i], right[i]);
    const auto expanded = [&](ValueId v) { return shape(v) == both ? v : graph_.add1(ExpandOp{both}, {v}, name); };
    const ValueId wide_a = expanded(a), wide_b = expanded(b);
    return graph_.add1(MulOp{}, {wide_a, wide_b}, name);
}

// --- Rearranging ----------------------------------------------------------------------------------------------------------------

ValueId Builder::concat(const std::string& name, const std::vector<ValueId>& xs, int axis) { return graph_.add1(ConcatOp{axis}, xs, name); }

ValueId Builder::slice(const std::string& name, ValueId x, const Dims& start, const Dims& size) {
    return graph_.add1(SliceOp{start, size}, {x}, name);
}

ValueId Builder::pad(const std::string& name, ValueId x, const Dims& lo, const Dims& hi, double value) {
    return graph_.add1(PadOp{lo, hi, value}, {x}, name);
}

ValueId Builder::reshape(const std::string& name, ValueId x, const Shape& shape) { return graph_.add1(ReshapeOp{shape}, {x}, name); }

ValueId Builder::flatten(const std::string& name, ValueId x) {
    return reshape(name, x, {shape(x)[0], product(shape(x), 1, shape(x).size())});
}

ValueId Builder::transpose(const std::string& name, ValueId x, const Dims& order) { return graph_.add1(TransposeOp{order}, {x}, name); }

}  // namespace convoy
