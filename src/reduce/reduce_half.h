/* reduce_half.h - conversion of f16 and bf16 to f32 and back. Only
 * reduce_impl.h, quant_impl.h and weighted.c include it, so it uses the
 * instruction set of their includers.
 *
 * A NaN may get any payload in f32, because the f32 kernels produce only one
 * NaN. So this is also the only NaN that is narrowed. */
#ifndef PCCL_REDUCE_HALF_H
#define PCCL_REDUCE_HALF_H

#include "kernel_mem.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

static inline float bf16_to_f32(uint16_t h)
{
    return f32_from_bits((uint32_t)h << 16);
}

static inline uint16_t bf16_from_f32(float f)
{
    uint32_t bits = f32_bits(f);

    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* No intermediate value is subnormal in f32. */
static inline float f16_to_f32(uint16_t h)
{
    const uint32_t rebias = (uint32_t)(127 - 15) << 23;
    uint32_t magnitude = (uint32_t)(h & 0x7fff) << 13;
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t normal = magnitude + rebias;
    /* A subnormal is its mantissa with a hidden one, minus that one. */
    uint32_t subnormal = f32_bits(f32_from_bits(normal + (1u << 23)) -
                                  f32_from_bits(rebias + (1u << 23)));
    uint32_t special = normal + rebias; /* exponent 31 becomes 255 */
    uint32_t finite = magnitude < 0x400u << 13 ? subnormal : normal;

    return f32_from_bits(sign |
                         (magnitude >= 0x7c00u << 13 ? special : finite));
}

static inline uint16_t f16_from_f32(float f)
{
    const uint32_t rebias = (uint32_t)(127 - 15) << 23;
    /* The unit in the last place of 0.5f is the smallest f16, 2^-24. */
    const uint32_t half = 0x3f000000;
    uint32_t magnitude = f32_bits(f) & 0x7fffffff;
    uint32_t sign = f32_bits(f) >> 16 & 0x8000;
    /* A rounding that overflows the mantissa increments the exponent, up to
     * infinity, which is correct. */
    uint32_t normal =
        (magnitude - rebias + 0xfff + (magnitude >> 13 & 1)) >> 13;
    uint32_t subnormal =
        f32_bits(f32_from_bits(magnitude) + f32_from_bits(half)) - half;
    uint32_t special = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
    uint32_t finite = magnitude < rebias + (1u << 23) ? subnormal : normal;

    return (uint16_t)(sign |
                      (magnitude >= rebias + (31u << 23) ? special : finite));
}

static void f16_widen(float *out, const mem_f16 *in, size_t count)
{
    size_t i = 0;

#ifdef __AVX512F__
    for (; i + 16 <= count; i += 16)
        _mm512_storeu_ps(out + i, _mm512_cvtph_ps(_mm256_loadu_si256(
                                      (const void *)(in + i))));
#endif
#ifdef __F16C__
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(
            out + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(in + i))));
#endif
    for (; i < count; i++) out[i] = f16_to_f32(in[i]);
}

static void f16_narrow(mem_f16 *out, const float *in, size_t count)
{
    size_t i = 0;

#ifdef __AVX512F__
    for (; i + 16 <= count; i += 16)
        _mm256_storeu_si256((void *)(out + i),
                            _mm512_cvtps_ph(_mm512_loadu_ps(in + i),
                                            _MM_FROUND_TO_NEAREST_INT));
#endif
#ifdef __F16C__
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((void *)(out + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(in + i),
                                         _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < count; i++) out[i] = f16_from_f32(in[i]);
}

#endif
