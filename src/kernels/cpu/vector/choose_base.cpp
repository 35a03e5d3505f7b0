// On processors other than x86-64 there is one table, for what every one of them has.
#include "kernels/cpu/vector/tables.h"

namespace convoy::cpu::vec {

KernelTables vector_kernel_tables() { return {{&kernels_base()}, 1}; }

}  // namespace convoy::cpu::vec
