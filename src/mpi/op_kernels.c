/* op_kernels.c - predefined operators on predefined elements. One macro
 * generates a loop, one table finds it. */
#include "mpi_op.h"

#include <complex.h>

#define LOOP(name, type, expression)                                           \
    static void name(const void *in, void *inout, size_t count)                \
    {                                                                          \
        const type *a = in;                                                    \
        type *b = inout;                                                       \
        for (size_t i = 0; i < count; i++) b[i] = (type)(expression);          \
    }

/* Signed sums and products wrap: computed as unsigned. */
#define ARITHMETIC(name, type, wide)                                           \
    LOOP(name##_sum, type, (wide)a[i] + (wide)b[i])                            \
    LOOP(name##_prod, type, (wide)a[i] * (wide)b[i])
#define ORDER(name, type)                                                      \
    LOOP(name##_max, type, a[i] > b[i] ? a[i] : b[i])                          \
    LOOP(name##_min, type, a[i] < b[i] ? a[i] : b[i])
#define LOGICAL(name, type)                                                    \
    LOOP(name##_land, type, a[i] != 0 && b[i] != 0)                            \
    LOOP(name##_lor, type, a[i] != 0 || b[i] != 0)                             \
    LOOP(name##_lxor, type, (a[i] != 0) != (b[i] != 0))
#define BITWISE(name, type)                                                    \
    LOOP(name##_band, type, a[i] & b[i])                                       \
    LOOP(name##_bor, type, a[i] | b[i])                                        \
    LOOP(name##_bxor, type, a[i] ^ b[i])
#define INTEGER(name, type, wide)                                              \
    ARITHMETIC(name, type, wide)                                               \
    ORDER(name, type) LOGICAL(name, type) BITWISE(name, type)
#define FLOATING(name, type)                                                   \
    ARITHMETIC(name, type, type) ORDER(name, type) LOGICAL(name, type)

INTEGER(i8, int8_t, uint32_t)
INTEGER(i16, int16_t, uint32_t)
INTEGER(i32, int32_t, uint32_t)
INTEGER(i64, int64_t, uint64_t)
INTEGER(u8, uint8_t, uint32_t)
INTEGER(u16, uint16_t, uint32_t)
INTEGER(u32, uint32_t, uint32_t)
INTEGER(u64, uint64_t, uint64_t)
FLOATING(float, float)
FLOATING(double, double)
FLOATING(ld, long double)
ARITHMETIC(cfloat, float complex, float complex)
ARITHMETIC(cdouble, double complex, double complex)
ARITHMETIC(cld, long double complex, long double complex)

/* At equal values the smaller index wins (MPI-4 §6.9.4). */
#define PAIR(name, value_type, index_type)                                     \
    struct name {                                                              \
        value_type value;                                                      \
        index_type index;                                                      \
    };                                                                         \
    static void name##_maxloc(const void *in, void *inout, size_t count)       \
    {                                                                          \
        const struct name *a = in;                                             \
        struct name *b = inout;                                                \
        for (size_t i = 0; i < count; i++)                                     \
            if (a[i].value > b[i].value ||                                     \
                (!(a[i].value < b[i].value) && a[i].index < b[i].index))       \
                b[i] = a[i];                                                   \
    }                                                                          \
    static void name##_minloc(const void *in, void *inout, size_t count)       \
    {                                                                          \
        const struct name *a = in;                                             \
        struct name *b = inout;                                                \
        for (size_t i = 0; i < count; i++)                                     \
            if (a[i].value < b[i].value ||                                     \
                (!(a[i].value > b[i].value) && a[i].index < b[i].index))       \
                b[i] = a[i];                                                   \
    }

PAIR(float_int, float, int)
PAIR(double_int, double, int)
PAIR(long_int, long, int)
PAIR(short_int, short, int)
PAIR(ld_int, long double, int)
PAIR(int_int, int, int)
PAIR(float_float, float, float)
PAIR(double_double, double, double)

#define ROW_ARITHMETIC(name) [OP_SUM] = name##_sum, [OP_PROD] = name##_prod
#define ROW_ORDER(name) [OP_MAX] = name##_max, [OP_MIN] = name##_min
#define ROW_LOGICAL(name)                                                      \
    [OP_LAND] = name##_land, [OP_LOR] = name##_lor, [OP_LXOR] = name##_lxor
#define ROW_BITWISE(name)                                                      \
    [OP_BAND] = name##_band, [OP_BOR] = name##_bor, [OP_BXOR] = name##_bxor
#define ROW_FLOATING(name)                                                     \
    {                                                                          \
        ROW_ARITHMETIC(name), ROW_ORDER(name), ROW_LOGICAL(name)               \
    }
#define ROW_INTEGER(name)                                                      \
    {                                                                          \
        ROW_ARITHMETIC(name), ROW_ORDER(name), ROW_LOGICAL(name),              \
            ROW_BITWISE(name)                                                  \
    }
#define ROW_PAIR(name)                                                         \
    {                                                                          \
        [OP_MAXLOC] = name##_maxloc, [OP_MINLOC] = name##_minloc               \
    }

static op_kernel *const kernels[ELEMENT_COUNT][OP_NUMBERS] = {
    [ELEMENT_BYTE] = {ROW_BITWISE(u8)},
    [ELEMENT_I8] = ROW_INTEGER(i8),
    [ELEMENT_I16] = ROW_INTEGER(i16),
    [ELEMENT_I32] = ROW_INTEGER(i32),
    [ELEMENT_I64] = ROW_INTEGER(i64),
    [ELEMENT_U8] = ROW_INTEGER(u8),
    [ELEMENT_U16] = ROW_INTEGER(u16),
    [ELEMENT_U32] = ROW_INTEGER(u32),
    [ELEMENT_U64] = ROW_INTEGER(u64),
    [ELEMENT_FLOAT] = ROW_FLOATING(float),
    [ELEMENT_DOUBLE] = ROW_FLOATING(double),
    [ELEMENT_LONG_DOUBLE] = ROW_FLOATING(ld),
    [ELEMENT_FLOAT_COMPLEX] = {ROW_ARITHMETIC(cfloat)},
    [ELEMENT_DOUBLE_COMPLEX] = {ROW_ARITHMETIC(cdouble)},
    [ELEMENT_LONG_DOUBLE_COMPLEX] = {ROW_ARITHMETIC(cld)},
    [ELEMENT_BOOL] = {ROW_LOGICAL(u8)},
    [ELEMENT_LOGICAL] = {ROW_LOGICAL(i32)},
    [ELEMENT_LOGICAL2] = {ROW_LOGICAL(i16)},
    [ELEMENT_LOGICAL8] = {ROW_LOGICAL(i64)},
    [ELEMENT_FLOAT_INT] = ROW_PAIR(float_int),
    [ELEMENT_DOUBLE_INT] = ROW_PAIR(double_int),
    [ELEMENT_LONG_INT] = ROW_PAIR(long_int),
    [ELEMENT_SHORT_INT] = ROW_PAIR(short_int),
    [ELEMENT_LONG_DOUBLE_INT] = ROW_PAIR(ld_int),
    [ELEMENT_2INT] = ROW_PAIR(int_int),
    [ELEMENT_2FLOAT] = ROW_PAIR(float_float),
    [ELEMENT_2DOUBLE] = ROW_PAIR(double_double),
};

op_kernel *op_kernel_find(enum op_number number, enum element element)
{
    return kernels[element][number];
}
