// Convolutions as matrix products over blocks of patches, in float64 fast enough to check large networks.
#pragma once

#include "kernels/reference/view.h"

namespace convoy::ref {

template <class T>
void reference(const ConvOp& op, const KernelArgs& args);
template <class T>
void reference(const ConvGradInputOp& op, const KernelArgs& args);
template <class T>
void reference(const ConvGradWeightOp& op, const KernelArgs& args);

int64_t workspace_bytes(const ConvOp& op, const WorkspaceArgs& args);
int64_t workspace_bytes(const ConvGradInputOp& op, const WorkspaceArgs& args);
int64_t workspace_bytes(const ConvGradWeightOp& op, const WorkspaceArgs& args);

}  // namespace convoy::ref
