/* reduce.c - dispatches reductions to the kernels of this CPU. */
#include "reduce.h"

#include "../base/float_env.h"
#include "isa.h"
#include "reduce_kernels.h"

const struct reduce_kernels *reduce_kernels_usable(size_t index)
{
    return ISA_VARIANT(reduce_kernels, index);
}

void reduce_apply(enum dtype type, enum redop op, void *dst, const void *a,
                  const void *b, size_t count)
{
    PCCL_ASSERT((unsigned)type < DTYPE_COUNT && (unsigned)op < REDOP_COUNT);
    struct float_env env = float_env_enter();
    reduce_kernels_usable(0)->apply[type][op](dst, a, b, count);
    float_env_leave(&env);
}

void reduce_divide(enum dtype type, void *dst, size_t count, uint32_t world)
{
    PCCL_ASSERT((unsigned)type < DTYPE_COUNT && world >= 1);
    struct float_env env = float_env_enter();
    reduce_kernels_usable(0)->divide[type](dst, count, world);
    float_env_leave(&env);
}
