/* isa.c - detects vector instruction sets. */
#include "isa.h"

#ifdef KERNELS_X86
#include <cpuid.h>

/* __builtin_cpu_supports() also asks whether the kernel saves the registers;
 * clang 14 has no name for F16C there. */
bool isa_has_avx2(void)
{
    unsigned eax, ebx, ecx, edx;

    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") &&
           __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
}

bool isa_has_avx512(void)
{
    return isa_has_avx2() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif
