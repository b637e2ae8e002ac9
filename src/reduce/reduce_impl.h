/* reduce_impl.h - all reduction kernels as plain loops. Every reduce_<isa>.c
 * compiles them for its instruction set. The including file defines KERNELS,
 * the name of the table, and KERNELS_NAME.
 *
 * The bits must not depend on the instruction set: no contraction, no
 * reassociation, and one NaN (see reduce.h). */
#ifndef PCCL_REDUCE_IMPL_H
#define PCCL_REDUCE_IMPL_H

#include <math.h>

#include "kernel_mem.h"
#include "reduce_kernels.h"

#define APPLY(op, mem, type, value)                                            \
    static void mem##_##op(void *dst, const void *a, const void *b,            \
                           size_t count)                                       \
    {                                                                          \
        mem_##mem *out = dst;                                                  \
        const mem_##mem *in_a = a, *in_b = b;                                  \
                                                                               \
        INDEPENDENT                                                            \
        for (size_t i = 0; i < count; i++) {                                   \
            const type x = in_a[i], y = in_b[i];                               \
            out[i] = (type)(value);                                            \
        }                                                                      \
    }

#define DIVIDE(mem, type, divisor_type, value)                                 \
    static void mem##_divide(void *dst, size_t count, uint32_t world)          \
    {                                                                          \
        mem_##mem *out = dst;                                                  \
        const divisor_type divisor = (divisor_type)world;                      \
                                                                               \
        for (size_t i = 0; i < count; i++) {                                   \
            const type x = out[i];                                             \
            out[i] = (type)(value);                                            \
        }                                                                      \
    }

/* Sums and products wrap alike for signed and unsigned. 1u keeps u16 * u16
 * from being an int that overflows. */
#define APPLY_INTEGER(bits)                                                    \
    APPLY(sum, u##bits, uint##bits##_t, x + y)                                 \
    APPLY(prod, u##bits, uint##bits##_t, 1u * x * y)                           \
    APPLY(max, u##bits, uint##bits##_t, x > y ? x : y)                         \
    APPLY(min, u##bits, uint##bits##_t, x < y ? x : y)                         \
    APPLY(max, i##bits, int##bits##_t, x > y ? x : y)                          \
    APPLY(min, i##bits, int##bits##_t, x < y ? x : y)

APPLY_INTEGER(8)
APPLY_INTEGER(16)
APPLY_INTEGER(32)
APPLY_INTEGER(64)

/* Vectors divide floats only. The quotient of integers that a float type holds
 * exactly lies further below the next integer than rounding can reach: that
 * distance is at least 1 / divisor, the rounding at most
 * x / divisor * 2^-24 (2^-53), and x < 2^24 (2^53). A divisor above 2^24 is
 * rounded, but exceeds every 16-bit x all the same. */
DIVIDE(u8, uint8_t, float, (int32_t)(x / divisor))
DIVIDE(i8, int8_t, float, (int32_t)(x / divisor))
DIVIDE(u16, uint16_t, float, (int32_t)(x / divisor))
DIVIDE(i16, int16_t, float, (int32_t)(x / divisor))
DIVIDE(u32, uint32_t, double, (int64_t)(x / divisor))
DIVIDE(i32, int32_t, double, (int32_t)(x / divisor))
DIVIDE(u64, uint64_t, uint64_t, x / divisor)
DIVIDE(i64, int64_t, int64_t, x / divisor)

/* A maximum is selected twice, with swapped operands. The selections differ
 * only for NaN and for zeros of different sign, which AND makes +0. A minimum
 * likewise; OR makes -0. */
#define APPLY_FLOAT(bits, type, nan_bits)                                      \
    static inline type f##bits##_one_nan(type value)                           \
    {                                                                          \
        return isunordered(value, value) ? f##bits##_from_bits(nan_bits)       \
                                         : value;                              \
    }                                                                          \
    static inline type f##bits##_max_of(type x, type y)                        \
    {                                                                          \
        uint##bits##_t p = f##bits##_bits(x > y ? x : y);                      \
        uint##bits##_t q = f##bits##_bits(y > x ? y : x);                      \
                                                                               \
        return f##bits##_from_bits(isunordered(x, y) ? nan_bits : p & q);      \
    }                                                                          \
    static inline type f##bits##_min_of(type x, type y)                        \
    {                                                                          \
        uint##bits##_t p = f##bits##_bits(x < y ? x : y);                      \
        uint##bits##_t q = f##bits##_bits(y < x ? y : x);                      \
                                                                               \
        return f##bits##_from_bits(isunordered(x, y) ? nan_bits : p | q);      \
    }                                                                          \
    APPLY(sum, f##bits, type, f##bits##_one_nan(x + y))                        \
    APPLY(prod, f##bits, type, f##bits##_one_nan(x *y))                        \
    APPLY(max, f##bits, type, f##bits##_max_of(x, y))                          \
    APPLY(min, f##bits, type, f##bits##_min_of(x, y))                          \
    DIVIDE(f##bits, type, type, f##bits##_one_nan(x / divisor))

APPLY_FLOAT(32, float, 0x7fc00000u)
APPLY_FLOAT(64, double, 0x7ff8000000000000u)

#include "reduce_half.h"

#define APPLY_BF16(op, f32_value)                                              \
    static inline uint16_t bf16_##op##_of(float x, float y)                    \
    {                                                                          \
        return bf16_from_f32(f32_value);                                       \
    }                                                                          \
    APPLY(op, bf16, uint16_t, bf16_##op##_of(bf16_to_f32(x), bf16_to_f32(y)))

APPLY_BF16(sum, f32_one_nan(x + y))
APPLY_BF16(prod, f32_one_nan(x *y))
APPLY_BF16(max, f32_max_of(x, y))
APPLY_BF16(min, f32_min_of(x, y))
DIVIDE(bf16, uint16_t, float,
       bf16_from_f32(f32_one_nan(bf16_to_f32(x) / divisor)))

/* f16 uses the f32 kernels in blocks that fit the L1 cache, because compilers
 * do not vectorize scalar conversions with F16C. */
enum { F16_BLOCK = 512 };

static inline size_t f16_block(size_t left)
{
    return left < F16_BLOCK ? left : F16_BLOCK;
}

#define APPLY_F16(op)                                                          \
    static void f16_##op(void *dst, const void *a, const void *b,              \
                         size_t count)                                         \
    {                                                                          \
        _Alignas(64) float x[F16_BLOCK], y[F16_BLOCK];                         \
        mem_f16 *out = dst;                                                    \
        const mem_f16 *in_a = a, *in_b = b;                                    \
                                                                               \
        for (size_t i = 0, n; i < count; i += n) {                             \
            n = f16_block(count - i);                                          \
            f16_widen(x, in_a + i, n);                                         \
            f16_widen(y, in_b + i, n);                                         \
            f32_##op(x, x, y, n);                                              \
            f16_narrow(out + i, x, n);                                         \
        }                                                                      \
    }

APPLY_F16(sum)
APPLY_F16(prod)
APPLY_F16(max)
APPLY_F16(min)

static void f16_divide(void *dst, size_t count, uint32_t world)
{
    _Alignas(64) float x[F16_BLOCK];
    mem_f16 *out = dst;

    for (size_t i = 0, n; i < count; i += n) {
        n = f16_block(count - i);
        f16_widen(x, out + i, n);
        f32_divide(x, n, world);
        f16_narrow(out + i, x, n);
    }
}

/* sum and prod of a signed type are those of its unsigned one. */
#define ROW(wrap, type)                                                        \
    {                                                                          \
        [REDOP_SUM] = wrap##_sum, [REDOP_AVG] = wrap##_sum,                    \
        [REDOP_PROD] = wrap##_prod, [REDOP_MAX] = type##_max,                  \
        [REDOP_MIN] = type##_min,                                              \
    }

const struct reduce_kernels KERNELS = {
    .name = KERNELS_NAME,
    .apply =
        {
            [DTYPE_U8] = ROW(u8, u8),
            [DTYPE_I8] = ROW(u8, i8),
            [DTYPE_I16] = ROW(u16, i16),
            [DTYPE_U16] = ROW(u16, u16),
            [DTYPE_U32] = ROW(u32, u32),
            [DTYPE_I32] = ROW(u32, i32),
            [DTYPE_U64] = ROW(u64, u64),
            [DTYPE_I64] = ROW(u64, i64),
            [DTYPE_F16] = ROW(f16, f16),
            [DTYPE_BF16] = ROW(bf16, bf16),
            [DTYPE_F32] = ROW(f32, f32),
            [DTYPE_F64] = ROW(f64, f64),
        },
    .divide =
        {
            [DTYPE_U8] = u8_divide,
            [DTYPE_I8] = i8_divide,
            [DTYPE_I16] = i16_divide,
            [DTYPE_U16] = u16_divide,
            [DTYPE_U32] = u32_divide,
            [DTYPE_I32] = i32_divide,
            [DTYPE_U64] = u64_divide,
            [DTYPE_I64] = i64_divide,
            [DTYPE_F16] = f16_divide,
            [DTYPE_BF16] = bf16_divide,
            [DTYPE_F32] = f32_divide,
            [DTYPE_F64] = f64_divide,
        },
};

#endif
