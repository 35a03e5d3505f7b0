// Which tables an x86-64 machine can run. Compiled for any x86-64.
#include "kernels/cpu/vector/tables.h"

namespace convoy::cpu::vec {

KernelTables vector_kernel_tables() {
    KernelTables result{};
    __builtin_cpu_init();
    const bool v3 =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (v4) result.tables[result.count++] = &kernels_v4();
    if (v3) result.tables[result.count++] = &kernels_v3();
    result.tables[result.count++] = &kernels_base();
    return result;
}

}  // namespace convoy::cpu::vec
