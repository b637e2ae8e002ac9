/* kernel_mem.h - shared by the kernel files: access to callers' memory, and
 * floats as bits. */
#ifndef PCCL_KERNEL_MEM_H
#define PCCL_KERNEL_MEM_H

#include <stdint.h>
#include <string.h>

/* Memory of a caller: any alignment, any stored type. */
#define MEM __attribute__((aligned(1), may_alias))
typedef uint8_t mem_u8 MEM;
typedef int8_t mem_i8 MEM;
typedef uint16_t mem_u16 MEM;
typedef int16_t mem_i16 MEM;
typedef uint32_t mem_u32 MEM;
typedef int32_t mem_i32 MEM;
typedef uint64_t mem_u64 MEM;
typedef int64_t mem_i64 MEM;
typedef uint16_t mem_f16 MEM;
typedef uint16_t mem_bf16 MEM;
typedef float mem_f32 MEM;
typedef double mem_f64 MEM;

/* dst is one of the operands or overlaps none, so iterations are independent;
 * without this hint a reduction in place would not be vectorized. */
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#define FLOAT_BITS(bits, type)                                                 \
    static inline uint##bits##_t f##bits##_bits(type value)                    \
    {                                                                          \
        uint##bits##_t pattern;                                                \
                                                                               \
        memcpy(&pattern, &value, sizeof(value));                               \
        return pattern;                                                        \
    }                                                                          \
    static inline type f##bits##_from_bits(uint##bits##_t pattern)             \
    {                                                                          \
        type value;                                                            \
                                                                               \
        memcpy(&value, &pattern, sizeof(value));                               \
        return value;                                                          \
    }

FLOAT_BITS(32, float)
FLOAT_BITS(64, double)

#endif
