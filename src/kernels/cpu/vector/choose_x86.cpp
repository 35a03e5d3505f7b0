// What an x86-64 machine can run. Compiled for any x86-64.
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernels/cpu/vector/amx.h"
#include "kernels/cpu/vector/tables.h"

namespace convoy::cpu::vec {

namespace {

bool ask_for_tiles() {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512bf16")) return false;
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned kBf16 = 1u << 22, kTiles = 1u << 24;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kBf16) == 0 || (d & kTiles) == 0) return false;
    constexpr long kAskForLeave = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM of the kernel's asm/prctl.h
    return syscall(SYS_arch_prctl, kAskForLeave, kTileData) == 0;
}

}  // namespace

bool amx_ready() {
    static const bool ready = ask_for_tiles();
    return ready;
}

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
