/* weighted.c - see weighted.h. */
#include "weighted.h"

#include "../base/float_env.h"
#include "reduce.h"
#include "reduce_half.h"

enum { BLOCK = 512 }; /* elements whose sums are in the cache at a time */

bool reduce_has_weighted(enum dtype type, enum redop op)
{
    bool is_float = type == DTYPE_F16 || type == DTYPE_BF16 ||
                    type == DTYPE_F32 || type == DTYPE_F64;
    return op == REDOP_SUM || (op == REDOP_AVG && is_float);
}

static void widen(enum dtype type, double *out, const void *in, size_t count)
{
    float wide[BLOCK];
    switch (type) {
    case DTYPE_F64:
        memcpy(out, in, count * sizeof *out);
        return;
    case DTYPE_F16:
        f16_widen(wide, in, count);
        break;
    case DTYPE_BF16:
        for (size_t i = 0; i < count; i++)
            wide[i] = bf16_to_f32(((const mem_bf16 *)in)[i]);
        break;
    default:
        memcpy(wide, in, count * sizeof *wide);
        break;
    }
    for (size_t i = 0; i < count; i++) out[i] = wide[i];
}

/* NaN is one (reduce.h). */
static void narrow(enum dtype type, void *out, const double *in, size_t count)
{
    float wide[BLOCK];
    for (size_t i = 0; i < count; i++) {
        bool number = in[i] == in[i];
        wide[i] = number ? (float)in[i] : f32_from_bits(0x7fc00000);
        if (type == DTYPE_F64)
            ((mem_f64 *)out)[i] =
                number ? in[i] : f64_from_bits((uint64_t)0x7ff8 << 48);
    }
    if (type == DTYPE_F16) f16_narrow(out, wide, count);
    if (type == DTYPE_F32) memcpy(out, wide, count * sizeof *wide);
    for (size_t i = 0; type == DTYPE_BF16 && i < count; i++)
        ((mem_bf16 *)out)[i] = bf16_from_f32(wide[i]);
}

static void average(enum dtype type, uint8_t *dst, const void *const *inputs,
                    const double *weights, uint32_t n, size_t count)
{
    double sum[BLOCK];
    double x[BLOCK];
    double total = 0;
    size_t element = dtype_size(type);
    for (uint32_t k = 0; k < n; k++) total += weights[k];
    for (size_t at = 0; at < count; at += BLOCK) {
        size_t size = count - at < BLOCK ? count - at : BLOCK;
        memset(sum, 0, sizeof sum);
        for (uint32_t k = 0; k < n; k++) {
            widen(type, x, (const uint8_t *)inputs[k] + at * element, size);
            for (size_t i = 0; i < size; i++) sum[i] += weights[k] * x[i];
        }
        for (size_t i = 0; i < size; i++) sum[i] /= total;
        narrow(type, dst + at * element, sum, size);
    }
}

void reduce_weighted(enum dtype type, enum redop op, void *dst,
                     const void *const *inputs, const double *weights,
                     uint32_t n, size_t count)
{
    PCCL_ASSERT(n > 0 && reduce_has_weighted(type, op));
    if (op == REDOP_AVG) {
        struct float_env env = float_env_enter();
        average(type, dst, inputs, weights, n, count);
        float_env_leave(&env);
        return;
    }
    if (count > 0) memcpy(dst, inputs[0], count * dtype_size(type));
    for (uint32_t k = 1; k < n; k++)
        reduce_apply(type, REDOP_SUM, dst, dst, inputs[k], count);
}
