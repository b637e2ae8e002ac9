/* reduce.c - see reduce.h; chooses the kernels. */
#include "reduce.h"

#include <stdatomic.h>

#include "reduce_kernels.h"

#ifdef REDUCE_X86
#include <cpuid.h>

/* __builtin_cpu_supports() also asks whether the kernel saves the registers;
 * clang 14 has no name for F16C there. */
static bool cpu_has_avx2(void)
{
    unsigned eax, ebx, ecx, edx;

    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") &&
           __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
}

static bool cpu_has_avx512(void)
{
    return cpu_has_avx2() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

const struct reduce_kernels *reduce_kernels_usable(size_t index)
{
    const struct reduce_kernels *usable[3];
    size_t count = 0;

#ifdef REDUCE_X86
    if (cpu_has_avx512()) usable[count++] = &reduce_kernels_avx512;
    if (cpu_has_avx2()) usable[count++] = &reduce_kernels_avx2;
#endif
    usable[count++] = &reduce_kernels_base;
    return index < count ? usable[index] : NULL;
}

/* Threads that race here all store the same pointer to constant data, so no
 * order is needed. Asked once: CPUID can trap into a hypervisor. */
static const struct reduce_kernels *kernels_best(void)
{
    static const struct reduce_kernels *_Atomic best;
    const struct reduce_kernels *k =
        atomic_load_explicit(&best, memory_order_relaxed);

    if (!k) {
        k = reduce_kernels_usable(0);
        atomic_store_explicit(&best, k, memory_order_relaxed);
    }
    return k;
}

void reduce_apply(enum dtype type, enum redop op, void *dst, const void *a,
                  const void *b, size_t count)
{
    assert((unsigned)type < DTYPE_COUNT && (unsigned)op < REDOP_COUNT);
    kernels_best()->apply[type][op](dst, a, b, count);
}

void reduce_divide(enum dtype type, void *dst, size_t count, uint32_t world)
{
    assert((unsigned)type < DTYPE_COUNT && world >= 1);
    kernels_best()->divide[type](dst, count, world);
}
