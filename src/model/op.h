// The operations of a graph, as plain values. Dims are positions: activations are [N, C, spatial...], convolution weights
// [F, C/groups, kernel...]. An op says what is computed from which inputs; what the inputs and outputs are stands beside each one.
// The backward pass and the update are ops too. Nothing here knows of memory, ranks or devices.
//
// Inputs in [] are optional. "K.." stands for the spatial dims of a kernel, ".." for those of an activation.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/window.h"
#include "tensor/box.h"

namespace convoy {

// --- Convolution and fully connected layers -------------------------------------------------------------------------------------

struct ConvOp {  // x[N,C,..], w[F,C/groups,K..] -> y[N,F,..]
    Window window;
    int64_t groups = 1;
    bool operator==(const ConvOp&) const = default;
};
struct ConvGradInputOp {  // dy[N,F,..], w[F,C/groups,K..] -> dx[N,C,input]; also the forward pass of a transposed convolution
    Window window;
    int64_t groups = 1;
    Dims input;  // spatial dims of dx
    bool operator==(const ConvGradInputOp&) const = default;
};
struct ConvGradWeightOp {  // x[N,C,..], dy[N,F,..] -> dw[F,C/groups,K..]
    Window window;
    int64_t groups = 1;
    bool operator==(const ConvGradWeightOp&) const = default;
};

struct LinearOp {  // x[N,I], w[O,I] -> y[N,O]
    bool operator==(const LinearOp&) const = default;
};
struct LinearGradInputOp {  // dy[N,O], w[O,I] -> dx[N,I]
    bool operator==(const LinearGradInputOp&) const = default;
};
struct LinearGradWeightOp {  // x[N,I], dy[N,O] -> dw[O,I]
    bool operator==(const LinearGradWeightOp&) const = default;
};

struct LocalConvOp {  // a convolution with its own weights at every output position: x[N,C,..], w[F,out..,C,K..] -> y[N,F,out..]
    Window window;
    bool operator==(const LocalConvOp&) const = default;
};
struct LocalConvGradInputOp {  // dy, w -> dx[N,C,input]
    Window window;
    Dims input;
    bool operator==(const LocalConvGradInputOp&) const = default;
};
struct LocalConvGradWeightOp {  // x, dy -> dw[F,out..,C,K..]
    Window window;
    bool operator==(const LocalConvGradWeightOp&) const = default;
};

struct BiasOp {  // x, b -> x + b; b has the dims of x from `axis` on, as many as it has itself
    int axis = 1;
    bool operator==(const BiasOp&) const = default;
};
struct BiasGradOp {  // dy -> db: the sum over all dims but [axis, axis + rank)
    int axis = 1, rank = 1;
    bool operator==(const BiasGradOp&) const = default;
};

// --- Pooling and resampling -----------------------------------------------------------------------------------------------------

struct MaxPoolOp {  // x -> y, where: the position inside its window (row-major) of each maximum, the first one on a tie
    Window window;
    bool operator==(const MaxPoolOp&) const = default;
};
struct MaxPoolGradOp {  // dy, where -> dx[N,C,input]
    Window window;
    Dims input;
    bool operator==(const MaxPoolGradOp&) const = default;
};
struct MaxIndexOp {  // where (of a max pooling) -> the place of each maximum in the whole input, row-major over [N,C,input]
    Window window;
    Dims input;
    bool columns_first = false;  // the spatial dims of a place count the other way round: the first one fastest
    bool operator==(const MaxIndexOp&) const = default;
};
struct AveragePoolOp {  // x -> y
    Window window;
    bool count_padding = true;  // whether padding counts in the divisor
    Dims overflow;              // rows past pad_hi that the last window may reach (ceil mode); they never count
    bool operator==(const AveragePoolOp&) const = default;
};
struct AveragePoolGradOp {  // dy -> dx[N,C,input]
    Window window;
    bool count_padding = true;
    Dims overflow;
    Dims input;
    bool operator==(const AveragePoolGradOp&) const = default;
};
struct AdaptivePoolOp {  // x -> y[N,C,output]: averages over [floor(i*in/out), ceil((i+1)*in/out)); output of ones is the global average
    Dims output;
    bool operator==(const AdaptivePoolOp&) const = default;
};
struct AdaptivePoolGradOp {  // dy[N,C,output] -> dx[N,C,input]
    Dims input;
    bool operator==(const AdaptivePoolGradOp&) const = default;
};

enum class Resample : uint8_t { Nearest, Linear };
struct UpsampleOp {  // x -> y[N,C,output]
    Resample mode = Resample::Nearest;
    Dims output;
    bool align_corners = false;  // linear only: corners map to corners; otherwise half-pixel centres
    bool operator==(const UpsampleOp&) const = default;
};
struct UpsampleGradOp {  // dy -> dx[N,C,input]
    Resample mode = Resample::Nearest;
    Dims input;
    bool align_corners = false;
    bool operator==(const UpsampleGradOp&) const = default;
};

// --- Normalisation. Batch norm is three steps: statistics, (their merge over ranks), normalise. Statistics are [2, cells]: mean, variance. ---

struct BatchStatsOp {  // x[N,C,..] -> stats[2,C] (biased variance)
    bool operator==(const BatchStatsOp&) const = default;
};
struct RunningStatsOp {  // running_mean[C], running_var[C] -> stats[2,C]
    bool operator==(const RunningStatsOp&) const = default;
};
struct RunningUpdateOp {  // running_mean[C], running_var[C], stats[2,C] -> new running_mean, new running_var (unbiased)
    double momentum = 0.1;
    int64_t count = 1;  // elements behind each statistic
    bool operator==(const RunningUpdateOp&) const = default;
};
struct BatchNormalizeOp {  // x, stats[2,C], gamma[C], beta[C] -> y
    double epsilon = 1e-5;
    bool operator==(const BatchNormalizeOp&) const = default;
};
struct BatchNormGradSumsOp {  // x, dy, stats -> dgamma[C], dbeta[C]
    double epsilon = 1e-5;
    bool operator==(const BatchNormGradSumsOp&) const = default;
};
struct BatchNormGradInputOp {  // x, dy, stats, gamma, dgamma, dbeta -> dx, where stats were computed from x
    double epsilon = 1e-5;
    int64_t count = 1;  // elements behind each statistic
    bool operator==(const BatchNormGradInputOp&) const = default;
};
struct BatchNormFixedGradInputOp {  // dy, stats, gamma -> dx, where stats do not depend on x
    double epsilon = 1e-5;
    bool operator==(const BatchNormFixedGradInputOp&) const = default;
};

// Group norm (groups > 0): a cell is one group of channels of one sample; gamma and beta are [C].
// Layer norm (groups == 0): a cell is one index of the dims before `axis`; gamma and beta have the dims from `axis` on.
struct Cells {
    int64_t groups = 0;
    int axis = 1;
    bool operator==(const Cells&) const = default;
};
struct CellStatsOp {  // x -> stats[2,cells]
    Cells cells;
    bool operator==(const CellStatsOp&) const = default;
};
struct CellNormalizeOp {  // x, stats, gamma, beta -> y
    Cells cells;
    double epsilon = 1e-5;
    bool operator==(const CellNormalizeOp&) const = default;
};
struct CellNormGradAffineOp {  // x, dy, stats -> dgamma, dbeta
    Cells cells;
    double epsilon = 1e-5;
    bool operator==(const CellNormGradAffineOp&) const = default;
};
struct CellNormGradSumsOp {  // x, dy, stats, gamma -> sums[2,cells]: of gamma*dy, and of gamma*dy*xhat
    Cells cells;
    double epsilon = 1e-5;
    bool operator==(const CellNormGradSumsOp&) const = default;
};
struct CellNormGradInputOp {  // x, dy, stats, gamma, sums -> dx
    Cells cells;
    double epsilon = 1e-5;
    bool operator==(const CellNormGradInputOp&) const = default;
};

struct LrnOp {  // x -> x / (k + alpha/size * sum of squares over `size` neighbouring channels)^beta
    int64_t size = 5;
    double alpha = 1e-4, beta = 0.75, k = 1;
    bool operator==(const LrnOp&) const = default;
};
struct LrnGradOp {  // x, dy -> dx
    int64_t size = 5;
    double alpha = 1e-4, beta = 0.75, k = 1;
    bool operator==(const LrnGradOp&) const = default;
};

// --- Elementwise ----------------------------------------------------------------------------------------------------------------

enum class Unary : uint8_t { Relu, Relu6, LeakyRelu, Sigmoid, Tanh, Gelu, GeluTanh, Silu };
struct UnaryOp {  // x -> y
    Unary kind = Unary::Relu;
    double alpha = 0;  // slope of the leaky ReLU
    bool operator==(const UnaryOp&) const = default;
};
struct UnaryGradOp {  // saved, dy -> dx, where saved is y when grad_reads_output(kind), else x
    Unary kind = Unary::Relu;
    double alpha = 0;
    bool operator==(const UnaryGradOp&) const = default;
};
bool grad_reads_output(Unary kind);
std::string_view name_of(Unary kind);

// Functions of one number that models from other tools use. The activations that networks are mostly made of are Unary, above.
enum class Pointwise : uint8_t {
    Elu,              // x > 0 ? x : a*(exp(x) - 1)
    Softplus,         // log(1 + exp(x))
    Softsign,         // x / (1 + |x|)
    HardSigmoid,      // a*x + b, kept within 0..1
    HardSwish,        // x * (x/6 + 1/2, kept within 0..1)
    ThresholdedRelu,  // x > a ? x : 0
    Shrink,           // x < -a ? x + b : x > a ? x - b : 0
    Clip,             // x, kept within a..b
    Shift,            // x + a
    Power,            // x^a
    Exp,
    Log,
    Sqrt,
    Reciprocal,
    Abs,
    Erf,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Asinh,
    Acosh,
    Atanh,
    Sign,
    Floor,
    Ceil,
    Round  // these have no slope
};
struct PointwiseOp {  // x -> y
    Pointwise kind = Pointwise::Exp;
    double a = 0, b = 0;
    bool operator==(const PointwiseOp&) const = default;
};
struct PointwiseGradOp {  // x, dy -> dx
    Pointwise kind = Pointwise::Exp;
    double a = 0, b = 0;
    bool operator==(const PointwiseGradOp&) const = default;
};
std::string_view name_of(Pointwise kind);

struct PReluOp {  // x[N,C,..], slope[C or 1] -> y
    bool operator==(const PReluOp&) const = default;
};
struct PReluGradInputOp {  // x, slope, dy -> dx
    bool operator==(const PReluGradInputOp&) const = default;
};
struct PReluGradSlopeOp {  // x, dy -> dslope[slopes]
    int64_t slopes = 1;
    bool operator==(const PReluGradSlopeOp&) const = default;
};

struct SoftmaxOp {  // x -> y
    int axis = 1;
    bool operator==(const SoftmaxOp&) const = default;
};
struct SoftmaxGradOp {  // y, dy -> dx
    int axis = 1;
    bool operator==(const SoftmaxGradOp&) const = default;
};

struct LogSoftmaxOp {  // x -> y
    int axis = 1;
    bool operator==(const LogSoftmaxOp&) const = default;
};
struct LogSoftmaxGradOp {  // y, dy -> dx
    int axis = 1;
    bool operator==(const LogSoftmaxGradOp&) const = default;
};

// Keeps an element with probability 1 - p and scales it by 1/(1-p). The mask is a function of (seed, step, stream, global index), so the
// same op on dy is the gradient, and no mask is stored. `first_sample` is the place of this micro-batch in the batch.
struct DropoutOp {  // x -> y
    double p = 0.5;
    uint32_t stream = 0;
    int64_t first_sample = 0;
    bool operator==(const DropoutOp&) const = default;
};

struct AddOp {  // two or more tensors of one shape -> their sum
    bool operator==(const AddOp&) const = default;
};
struct MulOp {  // a, b of one shape -> a*b
    bool operator==(const MulOp&) const = default;
};
struct ScaleOp {  // x -> factor*x
    double factor = 1;
    bool operator==(const ScaleOp&) const = default;
};
struct ExpandOp {  // x -> x repeated along its dims of size 1 to `shape`
    Shape shape;
    bool operator==(const ExpandOp&) const = default;
};
struct SumToOp {  // x -> x summed over the dims that are 1 in `shape`
    Shape shape;
    bool operator==(const SumToOp&) const = default;
};

// --- Rearranging ----------------------------------------------------------------------------------------------------------------

struct ConcatOp {  // two or more tensors -> one, joined along `axis`
    int axis = 1;
    bool operator==(const ConcatOp&) const = default;
};
struct SliceOp {  // x -> x[start, start + size)
    Dims start, size;
    bool operator==(const SliceOp&) const = default;
};
struct PadOp {  // x -> x with lo and hi elements of `value` around it
    Dims lo, hi;
    double value = 0;
    bool operator==(const PadOp&) const = default;
};
struct ReshapeOp {  // x -> the same elements, in row-major order, under another shape
    Shape shape;
    bool operator==(const ReshapeOp&) const = default;
};
struct TransposeOp {  // x -> y with dim i of y being dim order[i] of x
    Dims order;
    bool operator==(const TransposeOp&) const = default;
};

// --- Losses. Each gives scale * sum, [1]; with a normaliser, divided by it. The scale holds the loss's weight and 1/(global count). ------

struct CrossEntropyOp {  // logits[N,K,..], target[N,..], [class_weights[K], normaliser[1]] -> loss[1]
    double label_smoothing = 0;
    double scale = 1;
    bool operator==(const CrossEntropyOp&) const = default;
};
struct CrossEntropyGradOp {  // the same inputs -> dlogits
    double label_smoothing = 0;
    double scale = 1;
    bool operator==(const CrossEntropyGradOp&) const = default;
};
// The negative log-likelihood of each target by itself: -w*x at the target's class, with the class's weight w. A target equal to `ignored` counts for nothing.
struct NllOp {  // log-probabilities x[N,K,..], target[N,..], class_weights[K] -> loss[N,..], weight[N,..]
    int64_t ignored = -1;
    bool operator==(const NllOp&) const = default;
};
struct NllGradOp {  // dy[N,..], target[N,..], class_weights[K] -> dx[N,K,..]
    int64_t ignored = -1;
    bool operator==(const NllGradOp&) const = default;
};
struct TargetWeightOp {  // target, class_weights[K] -> [1]: the sum of the weights of all targets
    bool operator==(const TargetWeightOp&) const = default;
};
enum class ErrorKind : uint8_t { Squared, Absolute };
struct ErrorLossOp {  // x, target of one shape -> loss[1]
    ErrorKind kind = ErrorKind::Squared;
    double scale = 1;
    bool operator==(const ErrorLossOp&) const = default;
};
struct ErrorLossGradOp {  // x, target -> dx
    ErrorKind kind = ErrorKind::Squared;
    double scale = 1;
    bool operator==(const ErrorLossGradOp&) const = default;
};
struct CorrectOp {  // logits[N,K,..], target[N,..] -> [1]: how many targets are the largest logit (the first one on a tie)
    bool operator==(const CorrectOp&) const = default;
};

// --- Update. `hyper` is [2]: the learning rate and the number of this step, from 1. ---------------------------------------------

struct SquaredNormOp {  // x -> [1]
    bool operator==(const SquaredNormOp&) const = default;
};
struct ClipScaleOp {  // squared norm of all gradients[1] -> [1]: min(1, limit / (norm + 1e-6))
    double limit = 1;
    bool operator==(const ClipScaleOp&) const = default;
};

enum class Rule : uint8_t { Sgd, Momentum, Nesterov, AdaGrad, RmsProp, Adam, AdamW, Lars, Lamb };
std::string_view name_of(Rule rule);
// The settings of an optimizer. Which ones a rule reads: momentum (Momentum, Nesterov, RmsProp, Lars), beta1/beta2 (Adam*, Lamb),
// rho (RmsProp's decay), epsilon (all adaptive ones), trust (Lars), weight_decay (all).
struct UpdateRule {
    Rule rule = Rule::Sgd;
    double momentum = 0.9, beta1 = 0.9, beta2 = 0.999, rho = 0.99, epsilon = 1e-8, trust = 1e-3, weight_decay = 0;
    bool operator==(const UpdateRule&) const = default;
};
// How many tensors of the parameter's shape the rule keeps from step to step.
int slots_of(Rule rule);

struct UpdateOp {  // w, g, hyper, slots.., [|w|^2, |g|^2 (Lars)], [gradient scale (clipped)] -> new w, new slots..
    UpdateRule rule;
    bool clipped = false;
    bool operator==(const UpdateOp&) const = default;
};
struct LambDirectionOp {  // w, g, hyper, m, v, [gradient scale (clipped)] -> r, new m, new v
    UpdateRule rule;
    bool clipped = false;
    bool operator==(const LambDirectionOp&) const = default;
};
struct LambApplyOp {  // w, r, hyper, |w|^2, |r|^2 -> new w
    bool operator==(const LambApplyOp&) const = default;
};

// --- Between ranks: what the compiler puts around traffic. A wire is a flat tensor: boxes one after the other, each dense and row-major. -------

struct PackOp {  // x -> wire: these boxes of x
    std::vector<Box> boxes;
    bool operator==(const PackOp&) const = default;
};
struct UnpackOp {  // wire, [x] -> y: the wire's boxes at their places in y, and a box of x (when it is not empty) at `kept_at`
    std::vector<Box> boxes;
    Box kept;
    Dims kept_at;
    bool operator==(const UnpackOp&) const = default;
};
struct MergeStatsOp {             // parts[P,2,cells] -> stats[2,cells] of all elements together
    std::vector<int64_t> counts;  // elements behind the statistics of each part; 0 is no part at all
    bool operator==(const MergeStatsOp&) const = default;
};

using Op =
    std::variant<ConvOp, ConvGradInputOp, ConvGradWeightOp, LinearOp, LinearGradInputOp, LinearGradWeightOp, LocalConvOp,
                 LocalConvGradInputOp, LocalConvGradWeightOp, BiasOp, BiasGradOp, MaxPoolOp, MaxPoolGradOp, MaxIndexOp, AveragePoolOp,
                 AveragePoolGradOp, AdaptivePoolOp, AdaptivePoolGradOp, UpsampleOp, UpsampleGradOp, BatchStatsOp, RunningStatsOp,
                 RunningUpdateOp, BatchNormalizeOp, BatchNormGradSumsOp, BatchNormGradInputOp, BatchNormFixedGradInputOp, CellStatsOp,
                 CellNormalizeOp, CellNormGradAffineOp, CellNormGradSumsOp, CellNormGradInputOp, LrnOp, LrnGradOp, UnaryOp, UnaryGradOp,
                 PointwiseOp, PointwiseGradOp, PReluOp, PReluGradInputOp, PReluGradSlopeOp, SoftmaxOp, SoftmaxGradOp, LogSoftmaxOp,
                 LogSoftmaxGradOp, DropoutOp, AddOp, MulOp, ScaleOp, ExpandOp, SumToOp, ConcatOp, SliceOp, PadOp, ReshapeOp, TransposeOp,
                 CrossEntropyOp, CrossEntropyGradOp, NllOp, NllGradOp, TargetWeightOp, ErrorLossOp, ErrorLossGradOp, CorrectOp,
                 SquaredNormOp, ClipScaleOp, UpdateOp, LambDirectionOp, LambApplyOp, PackOp, UnpackOp, MergeStatsOp>;

// "conv", "conv_grad_input", ...: one lower-case word per op.
std::string_view name_of(const Op& op);
// The name with what a reader wants to know: "conv 3x3 /2 pad 1", "relu".
std::string text_of(const Op& op);

// --- Types and shape inference --------------------------------------------------------------------------------------------------

// What an element is for; the program's dtype decides how it is stored. Real follows the compute type (f64, f32, bf16); Precise (parameters,
// statistics, losses, optimizer state) is never narrower than f32; Index is i32; Byte is u8.
enum class Element : uint8_t { Real, Precise, Index, Byte };
std::string_view name_of(Element element);

struct ValueType {
    Shape shape;
    Element element = Element::Real;
    bool operator==(const ValueType&) const = default;
};

// The types of the outputs. Error says what does not fit when the inputs are wrong for the op.
std::vector<ValueType> infer(const Op& op, const std::vector<ValueType>& inputs);

}  // namespace convoy
