/* bench_data.c - see bench_data.h. */
#include "bench_data.h"

#include <assert.h>
#include <string.h>

enum {
    PERIOD = 48,       /* of the values: of 3 and of 16 */
    RUN = 64 * PERIOD, /* elements compared at once */
    ELEMENT_MAX = 8,   /* bytes */
};

static const struct {
    const char *name;
    size_t size;
} types[] = {
    [pcclUint8] = {"uint8", 1},     [pcclInt8] = {"int8", 1},
    [pcclInt16] = {"int16", 2},     [pcclUint16] = {"uint16", 2},
    [pcclUint32] = {"uint32", 4},   [pcclInt32] = {"int32", 4},
    [pcclUint64] = {"uint64", 8},   [pcclInt64] = {"int64", 8},
    [pcclFloat16] = {"float16", 2}, [pcclBFloat16] = {"bfloat16", 2},
    [pcclFloat] = {"float", 4},     [pcclDouble] = {"double", 8},
};

static const char *const ops[BENCH_OP_COUNT] = {
    [BENCH_ALLREDUCE] = "allreduce", [BENCH_BROADCAST] = "bcast",
    [BENCH_ALLGATHER] = "allgather", [BENCH_ALLTOALL] = "alltoall",
    [BENCH_BARRIER] = "barrier",
};

static const struct {
    const char *name;
    pcclRedOp_t redop;
} reductions[] = {
    {"sum", pcclSum}, {"prod", pcclProd}, {"max", pcclMax},
    {"min", pcclMin}, {"avg", pcclAvg},
};

bool bench_op_named(const char *name, enum bench_op *op)
{
    if (strcmp(name, "broadcast") == 0) name = "bcast";
    for (int i = 0; i < BENCH_OP_COUNT; i++) {
        if (strcmp(name, ops[i]) != 0) continue;
        *op = (enum bench_op)i;
        return true;
    }
    return false;
}

const char *bench_op_name(enum bench_op op)
{
    return ops[op];
}

bool bench_type_named(const char *name, pcclDataType_t *type)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(name, types[i].name) != 0) continue;
        *type = (pcclDataType_t)i;
        return true;
    }
    return false;
}

const char *bench_type_name(pcclDataType_t type)
{
    return types[type].name;
}

size_t bench_type_size(pcclDataType_t type)
{
    return types[type].size;
}

bool bench_reduce_named(const char *name, pcclRedOp_t *redop)
{
    for (size_t i = 0; i < sizeof reductions / sizeof reductions[0]; i++) {
        if (strcmp(name, reductions[i].name) != 0) continue;
        *redop = reductions[i].redop;
        return true;
    }
    return false;
}

/* ----------------------------------------------------------------- values */

static double value(pcclRedOp_t redop, size_t rank, size_t i)
{
    if (redop == pcclProd) return (rank + i) % 16 == 0 ? 2 : 1;
    return (double)((rank + i) % 3);
}

static double reduced(const struct bench_vector *v, size_t i)
{
    double result = value(v->redop, 0, i);
    for (int r = 1; r < v->ranks; r++) {
        double x = value(v->redop, (size_t)r, i);
        if (v->redop == pcclProd) result *= x;
        if (v->redop == pcclSum || v->redop == pcclAvg) result += x;
        if (v->redop == pcclMax && x > result) result = x;
        if (v->redop == pcclMin && x < result) result = x;
    }
    return v->redop == pcclAvg ? result / v->ranks : result;
}

/* The upper half of a float's bits, rounded to nearest even. */
static uint16_t to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* For zero and for numbers from 2^-14 to 65504, as all here are. */
static uint16_t to_f16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (bits == 0) return 0;
    bits += 0xfff + (bits >> 13 & 1);
    return (uint16_t)((bits >> 13) - ((127 - 15) << 10));
}

/* Integers that do not fit wrap, and averages of them are cut, as the library
 * does. */
static void put(pcclDataType_t type, double x, uint8_t *to)
{
    float single = (float)x;
    uint16_t half = type == pcclFloat16 ? to_f16(single) : to_bf16(single);
    uint64_t whole = (uint64_t)x;
    switch (type) {
    case pcclDouble:
        memcpy(to, &x, sizeof x);
        break;
    case pcclFloat:
        memcpy(to, &single, sizeof single);
        break;
    case pcclFloat16:
    case pcclBFloat16:
        memcpy(to, &half, sizeof half);
        break;
    default:
        /* Only for little-endian machines, as the library is. */
        memcpy(to, &whole, types[type].size);
    }
}

/* ---------------------------------------------------------------- patterns */

/* RUN elements, from element 0: of rank `rank`, or (-1) of the result. */
static void pattern(const struct bench_vector *v, int rank, size_t shift,
                    uint8_t *run)
{
    size_t one = types[v->type].size;
    for (size_t i = 0; i < PERIOD; i++) {
        size_t at = i + shift + (size_t)v->variant;
        double x =
            rank < 0 ? reduced(v, at) : value(v->redop, (size_t)rank, at);
        put(v->type, x, run + i * one);
    }
    for (size_t i = PERIOD; i < RUN; i += PERIOD)
        memcpy(run + i * one, run, PERIOD * one);
}

static void spread(const uint8_t *run, size_t one, size_t count, uint8_t *to)
{
    for (size_t i = 0; i < count; i += RUN) {
        size_t n = count - i < RUN ? count - i : RUN;
        memcpy(to + i * one, run, n * one);
    }
}

static size_t differ(const uint8_t *run, size_t one, size_t count,
                     const uint8_t *got)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i += RUN) {
        size_t n = count - i < RUN ? count - i : RUN;
        const uint8_t *part = got + i * one;
        if (memcmp(part, run, n * one) == 0) continue;
        for (size_t k = 0; k < n; k++)
            wrong += memcmp(part + k * one, run + k * one, one) != 0;
    }
    return wrong;
}

void bench_fill(const struct bench_vector *v, void *buffer)
{
    uint8_t run[RUN * ELEMENT_MAX];
    uint8_t *to = buffer;
    size_t one = types[v->type].size;
    if (v->op != BENCH_ALLTOALL) {
        pattern(v, v->rank, 0, run);
        spread(run, one, v->count, to);
        return;
    }
    size_t block = v->count / (size_t)v->ranks;
    for (int r = 0; r < v->ranks; r++) {
        pattern(v, v->rank, (size_t)r, run);
        spread(run, one, block, to + (size_t)r * block * one);
    }
}

size_t bench_wrong(const struct bench_vector *v, const void *buffer)
{
    uint8_t run[RUN * ELEMENT_MAX];
    const uint8_t *got = buffer;
    size_t one = types[v->type].size;
    if (v->op == BENCH_BARRIER) return 0;
    if (v->op == BENCH_ALLREDUCE || v->op == BENCH_BROADCAST) {
        pattern(v, v->op == BENCH_BROADCAST ? 0 : -1, 0, run);
        return differ(run, one, v->count, got);
    }
    size_t wrong = 0;
    size_t block = v->count / (size_t)v->ranks;
    for (int r = 0; r < v->ranks; r++) {
        size_t shift = v->op == BENCH_ALLTOALL ? (size_t)v->rank : 0;
        pattern(v, r, shift, run);
        wrong += differ(run, one, block, got + (size_t)r * block * one);
    }
    return wrong;
}
