// The table of one instruction set: compiled once for each, with CONVOY_TABLE naming the function that gives it.
#include "kernels/cpu/vector/families.h"
#include "kernels/cpu/vector/tables.h"

#define CONVOY_TEXT_OF(name) #name
#define CONVOY_TEXT(name) CONVOY_TEXT_OF(name)

namespace convoy::cpu::vec {

namespace CONVOY_ISA {

static VectorKernels all_families() {
    VectorKernels table{};
    table.name = CONVOY_TEXT(CONVOY_ISA);
    enter_norm(table);
    enter_channel(table);
    enter_flat(table);
    enter_update(table);
    enter_dropout(table);
    enter_lines(table);
    enter_pool(table);
    enter_plain_pool(table);
    enter_combine(table);
    enter_direct(table);
    enter_fourier(table);
    enter_planes(table);
    enter_product(table);
    enter_winograd(table);
    return table;
}

}  // namespace CONVOY_ISA

const VectorKernels& CONVOY_TABLE() {
    static const VectorKernels table = CONVOY_ISA::all_families();
    return table;
}

}  // namespace convoy::cpu::vec
