// The cpu backend's own float32 kernels, as a table of functions. The same sources are compiled once per instruction set, and the table of the
// best set that the machine has is chosen at run time. Each function works on a range of a problem in the calling thread; who calls it (the
// *_impl.cpp files one folder up) shares the ranges out to threads and owns all memory.
//
// This header is read by code for different instruction sets, so it holds plain data only: an inline function here could be compiled for one
// set and then be called on a machine that lacks it.
#pragma once

#include <cstdint>

namespace convoy::cpu::vec {

// --- Kernels that know channels -------------------------------------------------------------------------------------------------
//
// Every layout of an activation is planes of contiguous elements, and in a plane the channels repeat after `period` elements:
// blocked:       a plane is one block of one sample, [s][lanes];      lanes = 8 or 16
// channels-last: there is one plane, [n*s][lanes];                    lanes = all channels
// plain:         a plane is one channel of one sample, [s];           lanes = 1
// A vector with an entry per channel is given as [blocks][stored]: channel b*lanes + l stands at b*stored + l, entries past the last channel are
// zero. Either stored == lanes and the kernel repeats it to a period, or stored == period and it has been repeated already.
struct Spans {
    int64_t planes = 0;    // samples times blocks
    int64_t blocks = 1;    // plane p belongs to block p % blocks
    int64_t elements = 0;  // of a plane
    int64_t lanes = 1;
    int64_t channels = 1;
    int64_t period = 64;  // a multiple of lanes and of 16
    int64_t stored = 1;
    int64_t unit = 64;  // elements of a unit of work: a multiple of the period
    int64_t units = 0;  // per plane
};

// The most elements of a period that a kernel makes itself out of `stored` ones.
inline constexpr int64_t kShortPeriod = 64;

// In all of these, y may lie in the place of an input; [begin, end) are units, of which there are planes*units.

struct NormalizeArgs {  // y = (x - mean)*scale + shift [+ other], then ReLU or not
    Spans spans;
    const float *x = nullptr, *other = nullptr;
    const float *mean = nullptr, *scale = nullptr, *shift = nullptr;
    float* y = nullptr;
    bool relu = false;
};

// Which elements of dy count: all; those where y > 0, being written to d; those where the normalised x is > 0.
enum class Mask : uint8_t { None, Output, Normalized };

// Sums are added to `sums`, [2][blocks*stored] of doubles (statistics: of x and of its square; gradients: of dy and of dy*(x - mean)).
// `scratch` has scratch_floats(spans) floats.
struct StatsArgs {
    Spans spans;
    const float* x = nullptr;
};
struct GradSumsArgs {
    Spans spans;
    Mask mask = Mask::None;
    const float *x = nullptr, *dy = nullptr;
    const float* y = nullptr;  // Mask::Output
    float* d = nullptr;
    const float *mean = nullptr, *scale = nullptr, *shift = nullptr;  // the last two for Mask::Normalized
};
struct SumBuffers {
    double* sums = nullptr;
    float* scratch = nullptr;
};
inline constexpr int64_t kScratchPeriods = 3;  // of floats in `scratch`

struct GradInputArgs {  // dx = scale*(dy - level - (x - mean)*slope), dy as the mask (None or Normalized) leaves it
    Spans spans;
    Mask mask = Mask::None;
    const float *x = nullptr, *dy = nullptr;
    const float *mean = nullptr, *scale = nullptr, *shift = nullptr, *level = nullptr, *slope = nullptr;
    float* dx = nullptr;
};

enum class ChannelMap : uint8_t { Bias, BiasRelu, PRelu, PReluGrad };
struct ChannelMapArgs {  // y = x + v; its ReLU; x > 0 ? x : v*x; x > 0 ? dy : v*dy
    Spans spans;
    ChannelMap kind = ChannelMap::Bias;
    const float *x = nullptr, *dy = nullptr, *vector = nullptr;
    float* y = nullptr;
};

enum class ChannelSum : uint8_t { Sum, PReluSlope };
struct ChannelSumArgs {  // [blocks*stored] of sums of x; of x > 0 ? 0 : x*dy
    Spans spans;
    ChannelSum kind = ChannelSum::Sum;
    const float *x = nullptr, *dy = nullptr;
};

// --- Kernels on flat memory -----------------------------------------------------------------------------------------------------
//
// [begin, end) are elements. Outputs may lie in the place of inputs.

enum class UnaryKind : uint8_t { Relu, Relu6, LeakyRelu, Sigmoid, Tanh, Gelu, GeluTanh, Silu };
struct UnaryArgs {
    UnaryKind kind = UnaryKind::Relu;
    float alpha = 0;
    const float *x = nullptr, *dy = nullptr;  // the gradient reads x (or the output, as the kind has it) and dy
    float* y = nullptr;
};

struct AddArgs {
    const float* const* inputs = nullptr;
    int64_t count = 0;  // of inputs
    float* y = nullptr;
    bool relu = false;
};

struct PairArgs {  // mul: a*b; scale: factor*a; errors of a against b
    const float *a = nullptr, *b = nullptr;
    float* y = nullptr;
    float factor = 1;
    bool squared = false;  // errors: squared or absolute
};

enum class UpdateKind : uint8_t { Sgd, Momentum, Nesterov, AdaGrad, RmsProp, Adam, AdamW, Lars };
struct UpdateArgs {
    UpdateKind kind = UpdateKind::Sgd;
    const float *w = nullptr, *g = nullptr, *slot0 = nullptr, *slot1 = nullptr;
    float *new_w = nullptr, *new_slot0 = nullptr, *new_slot1 = nullptr;
    float rate = 0, scale = 1, decay = 0, momentum = 0, epsilon = 0, ratio = 1;                         // scale: of g; ratio: Lars's trust
    float rho = 0, rho_rest = 0;                                                                        // RmsProp
    float beta1 = 0, rest1 = 0, beta2 = 0, rest2 = 0, correction1 = 1, root_correction2 = 1, keep = 1;  // Adam and AdamW
};

// Factors of dropout for consecutive indices of the whole tensor: `scale` where the word of the stream is at least `threshold`, else 0.
struct DropoutArgs {
    uint64_t seed = 0;
    uint32_t step = 0, stream = 0;
    uint32_t threshold = 0;
    float scale = 1;
};

// --- Kernels on lines of classes ------------------------------------------------------------------------------------------------

// logits [N, K, ..] as lines of K, numbered like the targets [N, ..]. Class k of line i stands at
// (i / inner)*inner*classes + (i % inner) + k*inner: inner is 1 for [N, K] and channels-last. [begin, end) are lines.
struct LineArgs {
    int64_t classes = 1, inner = 1;
    const float *x = nullptr, *dy = nullptr;  // softmax's gradient reads its output as x
    const int32_t* target = nullptr;
    const float* weights = nullptr;  // of the classes, or null
    double weight_sum = 0;           // of all classes
    double smoothing = 0, scale = 1;
    float* y = nullptr;
    float* buffer = nullptr;  // kLineBuffers*16*classes floats, the caller's own
};
inline constexpr int64_t kLineBuffers = 2;

// --- Pooling --------------------------------------------------------------------------------------------------------------------

// How the elements of one dim see those of the other side: element i of it sees index[first[i]], .. index[first[i + 1] - 1], as elements
// tap[..] of a window.
struct Links {
    const int32_t *first = nullptr, *index = nullptr, *tap = nullptr;
};

// Three spatial dims; planes of [here][lanes] are computed from planes of [there][lanes]: outputs from inputs, or for gradients inputs from
// outputs. Links lead from here to there, but in the last dim always from outputs to inputs. [begin, end) are rows: planes*here[0]*here[1].
struct PoolArgs {
    int64_t here[3] = {1, 1, 1}, there[3] = {1, 1, 1};
    int64_t lanes = 1;
    Links links[3];
    const float* source = nullptr;
    float* result = nullptr;
    // Maxima: elements of the window per step of a dim, and where the maximum was ([planes][out][lanes]).
    int64_t tap_stride[3] = {1, 1, 1};
    const void* where = nullptr;
    void* new_where = nullptr;
    const float* mask = nullptr;  // gradients of outputs are dropped where this is <= 0; may be null
    // Averages: one over what counts in the window of each output, per dim.
    const float* share[3] = {nullptr, nullptr, nullptr};
};

// Maxima in the plain layout: windows that slide along rows. [begin, end) are rows of outputs (forward) or planes (gradient).
struct PlainMaxArgs {
    int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
    int64_t kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, pad[3] = {0, 0, 0};
    const float *x = nullptr, *dy = nullptr, *mask = nullptr;
    int64_t x_elements = 0;  // of the whole tensor
    float *y = nullptr, *dx = nullptr;
    const void* where = nullptr;
    void* new_where = nullptr;
    const int32_t* tap_offsets = nullptr;  // in a plane of inputs, of every element of a window
};

// --- Sums of lines --------------------------------------------------------------------------------------------------------------

// A line is sixteen floats. Line i of dst, at dst + i*dst_step, becomes the sum of factor[k] times line i of src[k], plus what it was before where
// `add` says so; without sources it becomes zero. Where `last` says so, bias (if any) is added and what is then <= 0 is multiplied by slope.
inline constexpr int kMostLines = 4;
struct CombineArgs {
    int count = 0;  // of sources
    const float* src[kMostLines] = {};
    float factor[kMostLines] = {};
    int64_t src_step = 16, dst_step = 16;
    float* dst = nullptr;
    bool add = false, last = false;
    const float* bias = nullptr;  // sixteen
    float slope = 1;
};

// --- Convolutions -----------------------------------------------------------------------------------------------------------------

// y += factor*x for lines of `lanes` neighbouring floats, which are so many floats apart.
struct ScaleAddArgs {
    const float* x = nullptr;
    float* y = nullptr;
    int64_t x_step = 1, y_step = 1, lines = 0, lanes = 1;
    float factor = 1;
};

// A box of a tensor whose elements are vectors of channels: element (i0, i1, i2) stands at data + sum of i*step, where begin <= i < end. Elsewhere it is
// zero, or not stored. With a spread s the box has an element only at every s-th index, which stands at i/s*step.
struct TileBox {
    float* data = nullptr;
    int64_t step[3] = {0, 0, 0}, begin[3] = {0, 0, 0}, end[3] = {1, 1, 1}, spread[3] = {1, 1, 1};
};

// The transforms of `count` tiles, so many floats after each other: along every dim that is active, from one box to another.
struct TileArgs {
    int64_t lanes = 16;  // 8 or 16
    bool active[3] = {false, true, true};
    TileBox from, to;
    int64_t count = 1, from_step = 0, to_step = 0;
    // Fourier only. Imaginary parts stand so many floats after the real ones.
    int64_t size = 16, part_step = 0;
    float* scratch = nullptr;  // fourier_scratch floats
};

// Winograd's F(m, 3), m + 2 = t: of inputs (t to t), weights (3 to t), outputs (t to m), and the transposes of the last two.
enum class TileStep : uint8_t { Input, Weight, Output, OutputTurned, WeightTurned };

// Direct convolution in the blocked layout: `count` results, result_step floats apart, each a vector of `lanes` channels, of `results` neighbouring blocks
// (1 or 2). A tap t sees, from the first result's view, source + source_offset[t], and has the weights [lanes in][lanes out] at weight_offset[t].
struct DirectArgs {
    int64_t lanes = 16;
    const float *source = nullptr, *weights = nullptr;
    float* result = nullptr;
    int64_t count = 0, result_step = 0, source_step = 0;
    int results = 1;
    int64_t result_block = 0, result_weights = 0;              // floats between the results' blocks, and between their weights
    int64_t blocks = 0, source_block = 0, source_weights = 0;  // of the source: how many, and floats between them and between their weights
    int64_t taps = 0;
    const int64_t *source_offset = nullptr, *weight_offset = nullptr;
};

// weights [lanes of x][lanes of dy] += the sum over all rows and elements of x times dy.
struct DirectWeightArgs {
    int64_t lanes = 16;
    const float *x = nullptr, *dy = nullptr;
    float* weights = nullptr;
    int64_t rows = 0, count = 0;
    int64_t x_row = 0, x_step = 0, dy_row = 0;
};

// c[m, n] = scale a[m, k] b[k, n], or with `add` that is added to c. The columns, `blocks` blocks of `lanes`, lie in panels of two blocks each: of b and
// of c panel p begins at p*panel, and its rows are so many floats apart.
struct ProductArgs {
    int64_t lanes = 16;
    int64_t m = 0, blocks = 0, k = 0;
    const float *a = nullptr, *b = nullptr;
    float* c = nullptr;
    int64_t a_row = 0, a_column = 1;
    int64_t b_row = 0, b_panel = 0, c_row = 0, c_panel = 0;
    bool add = false;
    float scale = 1;
};

struct VectorKernels {
    const char* name;

    void (*normalize)(const NormalizeArgs&, int64_t begin, int64_t end);
    void (*stats)(const StatsArgs&, const SumBuffers&, int64_t begin, int64_t end);
    void (*grad_sums)(const GradSumsArgs&, const SumBuffers&, int64_t begin, int64_t end);
    void (*grad_input)(const GradInputArgs&, int64_t begin, int64_t end);
    void (*channel_map)(const ChannelMapArgs&, int64_t begin, int64_t end);
    void (*channel_sum)(const ChannelSumArgs&, const SumBuffers&, int64_t begin, int64_t end);

    void (*unary)(const UnaryArgs&, int64_t begin, int64_t end);
    void (*unary_grad)(const UnaryArgs&, int64_t begin, int64_t end);
    void (*add)(const AddArgs&, int64_t begin, int64_t end);
    void (*mul)(const PairArgs&, int64_t begin, int64_t end);
    void (*scale)(const PairArgs&, int64_t begin, int64_t end);
    double (*squared_norm)(const float* x, int64_t begin, int64_t end);
    double (*error_loss)(const PairArgs&, int64_t begin, int64_t end);
    void (*error_grad)(const PairArgs&, int64_t begin, int64_t end);
    void (*update)(const UpdateArgs&, int64_t begin, int64_t end);
    void (*dropout_factors)(const DropoutArgs&, uint64_t first, int64_t count, float* factors);
    // y = factor > 0 ? x*factor : 0
    void (*dropout_apply)(const float* x, const float* factors, int64_t count, float* y);

    void (*softmax)(const LineArgs&, int64_t begin, int64_t end);
    void (*softmax_grad)(const LineArgs&, int64_t begin, int64_t end);
    double (*cross_entropy)(const LineArgs&, int64_t begin, int64_t end);
    void (*cross_entropy_grad)(const LineArgs&, int64_t begin, int64_t end);
    int64_t (*correct)(const LineArgs&, int64_t begin, int64_t end);

    // Positions in windows are bytes or 32-bit integers.
    void (*max_pool_u8)(const PoolArgs&, int64_t begin, int64_t end);
    void (*max_pool_i32)(const PoolArgs&, int64_t begin, int64_t end);
    void (*max_pool_grad_u8)(const PoolArgs&, int64_t begin, int64_t end);
    void (*max_pool_grad_i32)(const PoolArgs&, int64_t begin, int64_t end);
    void (*plain_max_pool_u8)(const PlainMaxArgs&, int64_t begin, int64_t end);
    void (*plain_max_pool_i32)(const PlainMaxArgs&, int64_t begin, int64_t end);
    void (*plain_max_pool_grad_u8)(const PlainMaxArgs&, int64_t begin, int64_t end);
    void (*plain_max_pool_grad_i32)(const PlainMaxArgs&, int64_t begin, int64_t end);
    void (*average_pool)(const PoolArgs&, int64_t begin, int64_t end);
    void (*average_pool_grad)(const PoolArgs&, int64_t begin, int64_t end);
    // Of `planes` planes of `elements` each: their averages; and back, each average's share in every element.
    void (*plane_means)(const float* x, int64_t elements, float* y, int64_t begin, int64_t end);
    void (*plane_fills)(const float* y, int64_t elements, float* x, int64_t begin, int64_t end);

    void (*combine)(const CombineArgs&, int64_t lines);

    void (*scale_add)(const ScaleAddArgs&);
    // The sum of x[i]*y[i*y_step].
    float (*dot)(const float* x, const float* y, int64_t y_step, int64_t count);
    void (*winograd_tile)(int outputs, TileStep, const TileArgs&);
    // From real numbers to half their spectrum [.., size/2 + 1], and back, divided by the tile's elements. The last dim is active.
    void (*fourier_forward)(const TileArgs&);
    void (*fourier_inverse)(const TileArgs&);
    void (*direct)(const DirectArgs&);
    void (*direct_weight)(const DirectWeightArgs&);
    void (*product)(const ProductArgs&);
};

// The tables that this build has and this machine can run, the best first. `name` is that of the instruction set.
struct KernelTables {
    const VectorKernels* tables[4];
    int count;
};
KernelTables vector_kernel_tables();

}  // namespace convoy::cpu::vec
