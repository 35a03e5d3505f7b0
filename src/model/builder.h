// Layers on top of ops: what a network is written in. A layer adds its parameters under "<name>.weight" and so on, with PyTorch's names,
// weight layouts and default initialisation, and its nodes under its name. Batch norm and dropout follow the mode. Layers with parameters
// must differ in name; an Error names the layer, what it expected and what it found.
#pragma once

#include <string>

#include "model/model.h"

namespace convoy {

// How weights begin. Fans are those of the weight tensor, as PyTorch counts them: elements behind (or before) one output (or input).
enum class Init : uint8_t {
    Default,         // U(-b, b), b = 1/sqrt(fan in); what PyTorch's layers do by themselves
    XavierUniform,   // U(-b, b), b = sqrt(6 / (fan in + fan out))
    XavierNormal,    // N(0, 2 / (fan in + fan out))
    HeUniform,       // U(-b, b), b = sqrt(6 / fan in)
    HeNormal,        // N(0, 2 / fan in)
    HeNormalFanOut,  // N(0, 2 / fan out)
    Normal001        // N(0, 0.01^2)
};

struct ConvSpec {
    int64_t filters = 0;
    Dims kernel;
    Dims stride, dilation, pad, pad_hi;  // empty: 1, 1, 0 and the same as pad
    int64_t groups = 1;
    bool bias = true;
    Init init = Init::Default;
    bool zero_bias = false;  // begin with a bias of 0 instead of U(-b, b), b = 1/sqrt(fan in)
    std::string share;       // use the parameters of the layer with this name instead of own ones
};

struct ConvTransposeSpec {
    int64_t filters = 0;
    Dims kernel, stride, dilation, pad, output_padding;
    int64_t groups = 1;
    bool bias = true;
    Init init = Init::Default;
    bool zero_bias = false;
    std::string share;
};

struct LinearSpec {
    int64_t outputs = 0;
    bool bias = true;
    Init init = Init::Default;
    bool zero_bias = false;
    std::string share;
};

struct PoolSpec {
    Dims kernel, stride, dilation, pad;  // stride empty: the kernel
    bool ceil = false;          // a last window may reach past the padded input, if it starts inside the input or the padding before it
    bool count_padding = true;  // average: whether padding counts in the divisor
};

class Builder {
  public:
    // Without dropout, dropout layers add nothing in training either.
    explicit Builder(Mode mode, bool dropout = true) : mode_(mode), dropout_(dropout) {}

    Graph& graph() { return graph_; }
    Graph take() { return std::move(graph_); }
    Mode mode() const { return mode_; }
    Shape shape(ValueId x) const { return graph_.shape(x); }  // a copy: adding nodes moves the graph's own

    ValueId input(const Shape& shape, const std::string& name = "input");
    ValueId parameter(const std::string& name, const Shape& shape, const Initializer& initializer, bool decays = true);

    // x[N,C,..] -> y[N,filters,..]; "<name>.weight" is [filters, C/groups, kernel], "<name>.bias" [filters].
    ValueId conv(const std::string& name, ValueId x, const ConvSpec& spec);
    // x[N,C,..] -> y[N,filters,(in-1)*stride - 2*pad + dilation*(kernel-1) + output_padding + 1].
    // "<name>.weight" is [C, filters/groups, kernel].
    ValueId conv_transpose(const std::string& name, ValueId x, const ConvTransposeSpec& spec);
    // The weight is [filters, out.., C, kernel], the bias [filters, out..]. No groups.
    ValueId local_conv(const std::string& name, ValueId x, const ConvSpec& spec);
    // x[N,I] -> y[N,outputs]; the weight is [outputs, I].
    ValueId linear(const std::string& name, ValueId x, const LinearSpec& spec);
    ValueId max_pool(const std::string& name, ValueId x, const PoolSpec& spec);
    ValueId average_pool(const std::string& name, ValueId x, const PoolSpec& spec);
    ValueId adaptive_pool(const std::string& name, ValueId x, const Dims& output);
    // "<name>.weight", ".bias", ".running_mean", ".running_var", all [C]. Training normalises by the batch, of which it needs more than one
    // element per channel, and stores new running statistics.
    ValueId batch_norm(const std::string& name, ValueId x, double epsilon = 1e-5, double momentum = 0.1);
    ValueId group_norm(const std::string& name, ValueId x, int64_t groups, double epsilon = 1e-5);
    ValueId layer_norm(const std::string& name, ValueId x, int axis = 1, double epsilon = 1e-5);
    ValueId lrn(const std::string& name, ValueId x, const LrnOp& op);
    ValueId unary(const std::string& name, ValueId x, Unary kind, double alpha = 0);
    ValueId relu(const std::string& name, ValueId x) { return unary(name, x, Unary::Relu); }
    ValueId prelu(const std::string& name, ValueId x, bool per_channel);
    ValueId softmax(const std::string& name, ValueId x, int axis = 1);
    ValueId dropout(const std::string& name, ValueId x, double p);
    ValueId add(const std::string& name, const std::vector<ValueId>& xs);
    ValueId mul(const std::string& name, ValueId a, ValueId b);  // dims of size 1 are repeated
    ValueId concat(const std::string& name, const std::vector<ValueId>& xs, int axis = 1);
    ValueId slice(const std::string& name, ValueId x, const Dims& start, const Dims& size);
    ValueId pad(const std::string& name, ValueId x, const Dims& lo, const Dims& hi, double value = 0);
    ValueId reshape(const std::string& name, ValueId x, const Shape& shape);
    ValueId flatten(const std::string& name, ValueId x);  // all dims but the first
    ValueId transpose(const std::string& name, ValueId x, const Dims& order);
    ValueId upsample(const std::string& name, ValueId x, const Dims& output, Resample mode, bool align_corners = false);

  private:
    struct Affine;  // the parameters of a convolution or fully connected layer
    ValueId weight(const char* kind, const std::string& name, const Affine& affine);
    ValueId add_bias(const char* kind, const std::string& name, ValueId x, const Affine& affine);
    ValueId own_parameter(const char* kind, const std::string& layer, const char* suffix, const Shape& shape,
                          const Initializer& initializer, StateKind state = StateKind::Parameter, bool decays = false);
    ValueId shared_parameter(const char* kind, const std::string& layer, const std::string& owner, const char* suffix, const Shape& shape);

    Graph graph_;
    Mode mode_;
    bool dropout_;
};

}  // namespace convoy
