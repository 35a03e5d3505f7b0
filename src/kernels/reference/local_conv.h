// Locally connected layers: convolutions with weights of their own, w[F, out.., C, K..], at every output position.
#pragma once

#include "kernels/reference/view.h"

namespace convoy::ref {

template <class T>
void reference(const LocalConvOp& op, const KernelArgs& args);
template <class T>
void reference(const LocalConvGradInputOp& op, const KernelArgs& args);
template <class T>
void reference(const LocalConvGradWeightOp& op, const KernelArgs& args);

}  // namespace convoy::ref
