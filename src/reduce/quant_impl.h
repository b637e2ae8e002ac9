/* quant_impl.h - all quantization kernels as plain loops. Every quant_<isa>.c
 * compiles them for its instruction set, with the flags of reduce_impl.h. The
 * including file defines KERNELS, the name of the table, and KERNELS_NAME. */
#ifndef PCCL_QUANT_IMPL_H
#define PCCL_QUANT_IMPL_H

#include "kernel_mem.h"
#include "quant_core.h"
#include "quant_kernels.h"

#include "reduce_half.h"

/* The finite extremes of a block, 0 if there are none; true if it has special
 * elements. Extremes are computed on integers, which vector instructions can
 * compare. */
#define EXTREMES(real, type, key_type)                                         \
    static bool extremes_##real(const mem_##real *x, size_t count,             \
                                type *lo_out, type *hi_out)                    \
    {                                                                          \
        const key_type infinite = quant_key_##real((type)INFINITY);            \
        key_type lo = quant_key_##real(x[0]), hi = lo;                         \
        for (size_t i = 0; i < count; i++) {                                   \
            const key_type key = quant_key_##real(x[i]);                       \
            lo = key < lo ? key : lo;                                          \
            hi = key > hi ? key : hi;                                          \
        }                                                                      \
        const bool special = lo <= ~infinite || hi >= infinite;                \
        if (special) {                                                         \
            lo = infinite;                                                     \
            hi = ~infinite;                                                    \
            for (size_t i = 0; i < count; i++) {                               \
                const key_type key = quant_key_##real(x[i]);                   \
                if (key <= ~infinite || key >= infinite) continue;             \
                lo = key < lo ? key : lo;                                      \
                hi = key > hi ? key : hi;                                      \
            }                                                                  \
            if (lo > hi) lo = hi = 0;                                          \
        }                                                                      \
        *lo_out = quant_from_key_##real(lo);                                   \
        *hi_out = quant_from_key_##real(hi);                                   \
        return special;                                                        \
    }

EXTREMES(f32, float, int32_t)
EXTREMES(f64, double, int64_t)

#define BLOCK(real, type, bits)                                                \
    static void encode_##real##_##bits(int algorithm, void *to,                \
                                       const void *from, size_t count)         \
    {                                                                          \
        const type top = (type)UINT##bits##_MAX;                               \
        const mem_##real *x = from;                                            \
        type header[2], lo, hi;                                                \
        mem_u##bits *codes = (void *)((uint8_t *)to + sizeof header);          \
        const bool special = extremes_##real(x, count, &lo, &hi);              \
        quant_header_##real(algorithm, lo, hi, special, top, header);          \
        memcpy(to, header, sizeof header);                                     \
        const struct quant_scale_##real s =                                    \
            quant_scale_of_##real(algorithm, header, top);                     \
        if (special) {                                                         \
            for (size_t i = 0; i < count; i++)                                 \
                codes[i] = (uint##bits##_t)quant_code_any_##real(x[i], &s);    \
            return;                                                            \
        }                                                                      \
        INDEPENDENT                                                            \
        for (size_t i = 0; i < count; i++)                                     \
            codes[i] = (uint##bits##_t)quant_code_##real(x[i], &s);            \
    }                                                                          \
    static void decode_##real##_##bits(int algorithm, void *to,                \
                                       const void *from, size_t count)         \
    {                                                                          \
        type header[2];                                                        \
        const mem_u##bits *codes =                                             \
            (const void *)((const uint8_t *)from + sizeof header);             \
        mem_##real *x = to;                                                    \
        memcpy(header, from, sizeof header);                                   \
        const struct quant_scale_##real s =                                    \
            quant_scale_of_##real(algorithm, header, (type)UINT##bits##_MAX);  \
        if (s.special) {                                                       \
            for (size_t i = 0; i < count; i++)                                 \
                x[i] = quant_value_any_##real(codes[i], &s);                   \
            return;                                                            \
        }                                                                      \
        INDEPENDENT                                                            \
        for (size_t i = 0; i < count; i++)                                     \
            x[i] = quant_value_##real(codes[i], &s);                           \
    }

BLOCK(f32, float, 8)
BLOCK(f32, float, 16)
BLOCK(f64, double, 8)
BLOCK(f64, double, 16)
BLOCK(f64, double, 32)

static void widen_f16(void *to, const void *from, size_t count)
{
    f16_widen(to, from, count);
}

static void narrow_f16(void *to, const void *from, size_t count)
{
    f16_narrow(to, from, count);
}

static void widen_bf16(void *to, const void *from, size_t count)
{
    float *out = to;
    const mem_bf16 *in = from;
    for (size_t i = 0; i < count; i++) out[i] = bf16_to_f32(in[i]);
}

static void narrow_bf16(void *to, const void *from, size_t count)
{
    mem_bf16 *out = to;
    const float *in = from;
    for (size_t i = 0; i < count; i++) out[i] = bf16_from_f32(in[i]);
}

/* Limits finite numbers to `most`; others are unchanged. */
static void saturate(float *x, size_t count, float most)
{
    for (size_t i = 0; i < count; i++) {
        const float size = fabsf(x[i]);
        const float sign = x[i] < 0 ? -most : most;
        x[i] = ((size > most) & (size <= FLT_MAX)) ? sign : x[i];
    }
}

static void saturate_f16(float *x, size_t count)
{
    saturate(x, count, f16_to_f32(0x7bff));
}

static void saturate_bf16(float *x, size_t count)
{
    saturate(x, count, bf16_to_f32(0x7f7f));
}

const struct quant_kernels KERNELS = {
    .name = KERNELS_NAME,
    .encode =
        {
            [QUANT_F32] = {encode_f32_8, encode_f32_16},
            [QUANT_F64] = {encode_f64_8, encode_f64_16, encode_f64_32},
        },
    .decode =
        {
            [QUANT_F32] = {decode_f32_8, decode_f32_16},
            [QUANT_F64] = {decode_f64_8, decode_f64_16, decode_f64_32},
        },
    .widen = {[DTYPE_F16] = widen_f16, [DTYPE_BF16] = widen_bf16},
    .narrow = {[DTYPE_F16] = narrow_f16, [DTYPE_BF16] = narrow_bf16},
    .saturate = {[DTYPE_F16] = saturate_f16, [DTYPE_BF16] = saturate_bf16},
};

#endif
