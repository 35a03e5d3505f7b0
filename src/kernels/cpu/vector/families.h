// The families of kernels of one instruction set; each enters its functions into the table. Internal to this folder.
#pragma once

#include "kernels/cpu/vector/kernels.h"

namespace convoy::cpu::vec::CONVOY_ISA {

void enter_norm(VectorKernels& table);
void enter_channel(VectorKernels& table);
void enter_flat(VectorKernels& table);
void enter_update(VectorKernels& table);
void enter_dropout(VectorKernels& table);
void enter_lines(VectorKernels& table);
void enter_pool(VectorKernels& table);
void enter_plain_pool(VectorKernels& table);
void enter_combine(VectorKernels& table);
void enter_direct(VectorKernels& table);
void enter_fourier(VectorKernels& table);
void enter_planes(VectorKernels& table);
void enter_product(VectorKernels& table);
void enter_winograd(VectorKernels& table);

}  // namespace convoy::cpu::vec::CONVOY_ISA
