/* dtype.c - sizes of the data types. */
#include "dtype.h"

static const struct {
    const char *name;
    size_t size;
} types[DTYPE_COUNT] = {
    [DTYPE_U8] = {"u8", 1},   [DTYPE_I8] = {"i8", 1},
    [DTYPE_I16] = {"i16", 2}, [DTYPE_U16] = {"u16", 2},
    [DTYPE_U32] = {"u32", 4}, [DTYPE_I32] = {"i32", 4},
    [DTYPE_U64] = {"u64", 8}, [DTYPE_I64] = {"i64", 8},
    [DTYPE_F16] = {"f16", 2}, [DTYPE_BF16] = {"bf16", 2},
    [DTYPE_F32] = {"f32", 4}, [DTYPE_F64] = {"f64", 8},
};

static const char *const ops[REDOP_COUNT] = {
    [REDOP_SUM] = "sum", [REDOP_AVG] = "avg", [REDOP_PROD] = "prod",
    [REDOP_MAX] = "max", [REDOP_MIN] = "min",
};

size_t dtype_size(enum dtype type)
{
    PCCL_ASSERT((unsigned)type < DTYPE_COUNT);
    return types[type].size;
}

const char *dtype_name(enum dtype type)
{
    PCCL_ASSERT((unsigned)type < DTYPE_COUNT);
    return types[type].name;
}

const char *redop_name(enum redop op)
{
    PCCL_ASSERT((unsigned)op < REDOP_COUNT);
    return ops[op];
}
