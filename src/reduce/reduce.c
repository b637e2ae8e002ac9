/* reduce.c - dispatches reductions to the kernels of this CPU. */
#include "reduce.h"

#include <stdatomic.h>

#include "../base/float_env.h"
#include "isa.h"
#include "reduce_kernels.h"

const struct reduce_kernels *reduce_kernels_usable(size_t index)
{
    const struct reduce_kernels *usable[3];
    size_t count = 0;

#ifdef KERNELS_X86
    if (isa_has_avx512()) usable[count++] = &reduce_kernels_avx512;
    if (isa_has_avx2()) usable[count++] = &reduce_kernels_avx2;
#endif
    usable[count++] = &reduce_kernels_base;
    return index < count ? usable[index] : NULL;
}

/* Threads that race here store the same pointer to constant data, so no memory
 * order is needed. Selected once: CPUID can trap into a hypervisor. */
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
    PCCL_ASSERT((unsigned)type < DTYPE_COUNT && (unsigned)op < REDOP_COUNT);
    struct float_env env = float_env_enter();
    kernels_best()->apply[type][op](dst, a, b, count);
    float_env_leave(&env);
}

void reduce_divide(enum dtype type, void *dst, size_t count, uint32_t world)
{
    PCCL_ASSERT((unsigned)type < DTYPE_COUNT && world >= 1);
    struct float_env env = float_env_enter();
    kernels_best()->divide[type](dst, count, world);
    float_env_leave(&env);
}
