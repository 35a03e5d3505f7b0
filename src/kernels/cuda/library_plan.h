// A convolution as cuDNN is asked for it, and the plan that runs it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "kernels/cuda/cudnn_graph.h"
#include "kernels/cuda/scratch.h"

namespace convoy::cuda {

enum Uid : int64_t { kX = 1, kW, kY, kBias, kSum, kShifted };

// What follows a convolution.
struct Follow {
    void* bias = nullptr;
    std::optional<UnaryOp> activation;

    explicit operator bool() const { return bias || activation; }
    std::string text() const;
};

// Whether engines are of use that use Winograd's or Fourier's transforms. In bf16 they would gain nothing and lose digits.
constexpr bool library_transforms(DType compute) { return compute != DType::bf16; }

struct Asked {
    Direction direction;
    Window window;
    DType compute;
    Operand x, w, y;
    bool transforms = library_transforms(compute);  // whether engines that transform may be taken
    Follow at_once = {};                            // what the same kernel does with the result
};
// It in words.
std::string text_of(const Asked& asked);

// The fastest of the library's engines, bound to the operands, with memory of the scratch; nothing when there is none. `hopeless` as in TuneRequest,
// `failures` as in tune().
std::shared_ptr<ExecutionPlan> library_plan(Device& device, const Asked& asked, const Scratch& scratch, double hopeless,
                                            Failures& failures);

}  // namespace convoy::cuda
