/* isa.c - detects vector instruction sets. */
#include "isa.h"

#ifdef KERNELS_X86
#include <cpuid.h>
#include <stdatomic.h>

/* __builtin_cpu_supports() also asks whether the kernel saves the registers;
 * clang 14 has no name for F16C there. */
static unsigned detect(void)
{
    unsigned eax, ebx, ecx, edx;
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") ||
        !__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & bit_F16C))
        return 0;
    bool all = __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
    return all ? 2 : 1;
}

/* Threads that race here store the same number, so no memory order is
 * needed. */
unsigned isa_level(void)
{
    static atomic_uint known; /* one more than the level */
    unsigned level = atomic_load_explicit(&known, memory_order_relaxed);
    if (level == 0) {
        level = detect() + 1;
        atomic_store_explicit(&known, level, memory_order_relaxed);
    }
    return level - 1;
}
#endif
