// What the own implementations share: recognising problems, offering candidates, one view of all layouts, scratch memory, threads. Internal to
// this folder.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/cpu/implementation.h"
#include "kernels/cpu/own_implementations.h"
#include "kernels/cpu/vector/kernels.h"
#include "kernels/function_kernel.h"
#include "kernels/patterns.h"

namespace convoy::cpu {

// --- Implementations as lists of cases ------------------------------------------------------------------------------------------

// One kind of problem. The other two functions may rely on `accepts`.
struct Case {
    bool (*accepts)(const Problem& problem);
    std::vector<Candidate> (*candidates)(const Problem& problem, const CpuContext& context);
    std::unique_ptr<Kernel> (*prepare)(const KernelRequest& request, const CpuContext& context, const vec::VectorKernels& kernels);
};

// Offers the candidates of the first case that accepts the problem, all under `name`. Only float32 problems reach the cases.
std::unique_ptr<Implementation> implementation_of(std::string name, std::vector<Case> cases, const vec::VectorKernels& kernels);

// Cases of the elementwise implementation that stand in files of their own.
std::vector<Case> channel_cases();  // bias and PReLU
Case dropout_case();

// The best table of kernels for this machine.
const vec::VectorKernels& vector_kernels();

// --- Reading problems: kernels/patterns.h, and -------------------------------------------------------------------------------------

inline float* floats(const KernelRequest& request, int tensor) { return static_cast<float*>(operand(request, tensor).data); }

// --- Offering candidates --------------------------------------------------------------------------------------------------------

struct Offer {
    Layout layout;                              // of the activations; all other operands are plain
    std::vector<int> activations;               // numbers of tensors
    std::vector<std::pair<int, int>> in_place;  // {output, input}, numbers of tensors
    int64_t workspace_bytes = 0;
    double slowness = 1;  // against the speed of memory
};
Candidate candidate_of(const Problem& problem, const CpuContext& context, const Offer& offer);

// Blocked, channels-last and plain; for a tensor with no spatial dims only plain.
std::vector<Layout> activation_layouts(const Shape& shape, const CpuContext& context);

// --- One view of all layouts ----------------------------------------------------------------------------------------------------

// An activation as [n][blocks][s][lanes], lanes being contiguous: blocked has ceil(C/block) blocks; channels-last has one block of C lanes;
// plain has C blocks of one lane.
struct Blocks {
    int64_t n, blocks, s, lanes, channels;
    int64_t elements() const { return n * blocks * s * lanes; }
};
// Bug for a layout that is none of the three.
Blocks blocks_of(const Shape& shape, const Layout& layout);
// The same for kernels with a number per channel: samples are joined where channels are last (as in [N, C]).
vec::Spans spans_of(const Blocks& blocks);
inline vec::Spans spans_of(const Shape& shape, const Layout& layout) { return spans_of(blocks_of(shape, layout)); }
// A plain tensor as rows whose elements are `lanes` channels.
vec::Spans spans_of_rows(int64_t rows, int64_t lanes);

// Elements of memory that an operand takes, padding included.
int64_t memory_elements(const Operand& operand);

// --- Scratch memory and threads -------------------------------------------------------------------------------------------------

// Hands out pieces of a workspace; without one, only counts their bytes.
class Scratch {
  public:
    explicit Scratch(void* workspace = nullptr) : base_(static_cast<std::byte*>(workspace)) {}
    template <class T>
    T* take(int64_t count) {
        const int64_t at = bytes_;
        bytes_ += (count * static_cast<int64_t>(sizeof(T)) + kLine - 1) / kLine * kLine;
        return base_ ? reinterpret_cast<T*>(base_ + at) : nullptr;
    }
    int64_t bytes() const { return bytes_; }

  private:
    static constexpr int64_t kLine = 64;
    std::byte* base_;
    int64_t bytes_ = 0;
};

// How many threads are worth starting for so many elements.
inline int parts_for(const CpuContext& context, int64_t elements) {
    constexpr int64_t kGrain = 8192;
    return static_cast<int>(std::clamp<int64_t>(elements / kGrain, 1, std::max(context.threads, 1)));
}

// Calls fn(part, begin, end) for `parts` contiguous ranges that cover [0, count), each on its own thread. fn may not throw.
template <class Fn>
void in_parts(int parts, int64_t count, const Fn& fn) {
    if (parts == 1) return fn(0, int64_t{0}, count);
#pragma omp parallel for num_threads(parts) schedule(static, 1)
    for (int part = 0; part < parts; ++part) fn(part, count * part / parts, count * (part + 1) / parts);
}

// The same for flat memory: ranges begin at cache lines.
template <class Fn>
void in_flat_parts(int parts, int64_t elements, const Fn& fn) {
    constexpr int64_t kLine = 64;
    in_parts(parts, (elements + kLine - 1) / kLine,
             [&](int part, int64_t begin, int64_t end) { fn(part, begin * kLine, std::min(end * kLine, elements)); });
}

// --- Numbers per channel --------------------------------------------------------------------------------------------------------

// Memory for one number per channel, as kernels read it.
inline float* take_channels(Scratch& scratch, const vec::Spans& spans) { return scratch.take<float>(spans.blocks * spans.stored); }
// Fills it with value(channel).
template <class Fn>
void fill_channels(const vec::Spans& s, float* out, const Fn& value) {
    for (int64_t b = 0; b < s.blocks; ++b) {
        float* const block = out + b * s.stored;
        for (int64_t l = 0; l < s.lanes; ++l) block[l] = b * s.lanes + l < s.channels ? value(b * s.lanes + l) : 0.0f;
        for (int64_t l = s.lanes; l < s.stored; ++l) block[l] = block[l - s.lanes];
    }
}

// Sums per channel by several threads, `kinds` of them at once.
struct ChannelSums {
    vec::Spans spans;
    int parts, kinds;
    int64_t stride;  // doubles of one part
    double* sums;
    float* scratch;

    ChannelSums(Scratch& memory, const vec::Spans& s, const CpuContext& context, int kinds_of_sums);
    // Calls fn(buffers, begin, end) for ranges of units, on threads; the buffers' sums are zero at first.
    template <class Fn>
    void run(const Fn& fn) const {
        in_parts(parts, spans.planes * spans.units, [&](int part, int64_t begin, int64_t end) {
            const vec::SumBuffers buffers{sums + part * stride, scratch + part * vec::kScratchPeriods * spans.period};
            std::fill_n(buffers.sums, stride, 0.0);
            fn(buffers, begin, end);
        });
    }
    double total(int kind, int64_t channel) const;
};

}  // namespace convoy::cpu
