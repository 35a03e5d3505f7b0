// oneDNN behind the cpu backend: handles, layouts and execution. Nothing of the library leaves this folder.
#pragma once

#include <optional>
#include <vector>

#include <dnnl.hpp>

#include "kernels/backend.h"
#include "kernels/cpu/onednn/gemm.h"
#include "tensor/layout.h"

namespace convoy::cpu {

const dnnl::engine& engine();

dnnl::memory::dims to_dims(const Dims& dims);

// The library's description of a tensor in one of our layouts. Bug for an opaque layout or a type that the library lacks.
dnnl::memory::desc describe(const Shape& shape, const Layout& layout, DType type = DType::f32);
// With the layout left to the library.
dnnl::memory::desc describe_any(const Shape& shape);
// The inverse: nothing when the library's format is not one of ours (transformed or compensated weights).
std::optional<Layout> layout_of(const dnnl::memory::desc& desc, const Shape& shape);

// A primitive attribute that takes its scratchpad from us.
dnnl::primitive_attr scratchpad_from_caller();

// A primitive with its arguments bound. Runs on the calling thread's OpenMP team of `threads`.
class OneDnnKernel : public Kernel {
  public:
    OneDnnKernel(dnnl::primitive primitive, const std::vector<std::pair<int, dnnl::memory>>& arguments, int threads);
    void run(const StepContext& context) override;

  private:
    dnnl::primitive primitive_;
    dnnl::stream stream_;
    std::vector<dnnl::memory> memories_;
    std::vector<dnnl_exec_arg_t> arguments_;
    int threads_;
};

// Copies between layouts.
std::unique_ptr<Kernel> prepare_reorder(const Operand& src, const Operand& dst, int threads);

}  // namespace convoy::cpu
