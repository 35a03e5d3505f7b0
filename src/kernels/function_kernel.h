// A kernel that is a function.
#pragma once

#include <memory>
#include <utility>

#include "kernels/backend.h"

namespace convoy {

template <class Fn>
class FunctionKernel final : public Kernel {
  public:
    explicit FunctionKernel(Fn fn) : fn_(std::move(fn)) {}
    void run(const StepContext& context) override { fn_(context); }

  private:
    Fn fn_;
};

// A kernel that calls fn(context).
template <class Fn>
std::unique_ptr<Kernel> make_kernel(Fn fn) {
    return std::make_unique<FunctionKernel<Fn>>(std::move(fn));
}

}  // namespace convoy
