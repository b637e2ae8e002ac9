/* dtype.h - the only table of data types and operators. */
#ifndef PCCL_DTYPE_H
#define PCCL_DTYPE_H

#include "base.h"

/* Values are those of pcclDataType_t; a test compares them. */
enum dtype {
    DTYPE_U8,
    DTYPE_I8,
    DTYPE_I16,
    DTYPE_U16,
    DTYPE_U32,
    DTYPE_I32,
    DTYPE_U64,
    DTYPE_I64,
    DTYPE_F16,
    DTYPE_BF16,
    DTYPE_F32,
    DTYPE_F64,
    DTYPE_COUNT,
};

/* Values are those of pcclRedOp_t. */
enum redop {
    REDOP_SUM,
    REDOP_AVG,
    REDOP_PROD,
    REDOP_MAX,
    REDOP_MIN,
    REDOP_COUNT,
};

size_t dtype_size(enum dtype type); /* bytes of one element, a power of two */
const char *dtype_name(enum dtype type);
const char *redop_name(enum redop op);

#endif
