// From an op, as a value, to its kernel for the operands' floating type.
#include <variant>

#include "base/error.h"
#include "kernels/reference/conv.h"
#include "kernels/reference/elementwise.h"
#include "kernels/reference/linear.h"
#include "kernels/reference/local_conv.h"
#include "kernels/reference/loss.h"
#include "kernels/reference/norm.h"
#include "kernels/reference/pool.h"
#include "kernels/reference/rearrange.h"
#include "kernels/reference/reference.h"
#include "kernels/reference/update.h"
#include "kernels/reference/upsample.h"

namespace convoy {

namespace {

// The floating type of all operands; f32 when there is none (integers being moved).
DType compute_type(const Op& op, std::span<const Operand> inputs, std::span<const Operand> outputs) {
    DType type = DType::f32;
    bool found = false;
    for (const auto operands : {inputs, outputs})
        for (const auto& operand : operands) {
            if (!is_floating(operand.desc.dtype)) continue;
            CONVOY_CHECK(!found || operand.desc.dtype == type, "{} with operands of {} and {}", name_of(op), name_of(type),
                         name_of(operand.desc.dtype));
            type = operand.desc.dtype;
            found = true;
        }
    return type;
}

}  // namespace

void run_reference(const Op& op, std::span<const Operand> inputs, std::span<const Operand> outputs, void* workspace, int threads,
                   const StepContext& context) {
    const ref::KernelArgs args{inputs, outputs, workspace, threads, context};
    switch (const DType type = compute_type(op, inputs, outputs)) {
        case DType::f64: return std::visit([&](const auto& o) { ref::reference<double>(o, args); }, op);
        case DType::f32: return std::visit([&](const auto& o) { ref::reference<float>(o, args); }, op);
        default: fail("the reference backend computes in f64 or f32, not {}", name_of(type));
    }
}

int64_t reference_workspace_bytes(const Op& op, std::span<const TensorDesc> inputs, std::span<const TensorDesc> outputs, int threads) {
    const ref::WorkspaceArgs args{inputs, outputs, threads};
    return std::visit(
        [&](const auto& o) -> int64_t {
            if constexpr (requires { ref::workspace_bytes(o, args); })
                return ref::workspace_bytes(o, args);
            else
                return 0;
        },
        op);
}

}  // namespace convoy
