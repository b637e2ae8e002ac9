/* bench_data.h - what the collectives are given, and what must come out.
 *
 * Element i of rank r depends on r and i alone, with a short period in i, so
 * that a right result is known without asking anybody and is compared as fast
 * as memory is read. Values are small: sums and products are exact in every
 * type. */
#ifndef PCCL_BENCH_DATA_H
#define PCCL_BENCH_DATA_H

#include "../../include/pccl.h"

enum bench_op {
    BENCH_ALLREDUCE,
    BENCH_BROADCAST,
    BENCH_ALLGATHER,
    BENCH_ALLTOALL,
    BENCH_BARRIER,
    BENCH_OP_COUNT,
};

/* False: there is none of this name. */
bool bench_op_named(const char *name, enum bench_op *op);
const char *bench_op_name(enum bench_op op);
bool bench_type_named(const char *name, pcclDataType_t *type);
const char *bench_type_name(pcclDataType_t type);
size_t bench_type_size(pcclDataType_t type);
bool bench_reduce_named(const char *name, pcclRedOp_t *redop);

/* One vector of one operation as one rank sees it. */
struct bench_vector {
    enum bench_op op;
    pcclDataType_t type;
    pcclRedOp_t redop;
    int rank, ranks;
    size_t count; /* elements; all-gather and all-to-all: of all blocks */
    int variant;  /* tells the vectors of concurrent operations apart */
};

/* What rank `v->rank` puts in: the send buffer, and for broadcast or in place
 * the receive buffer. */
void bench_fill(const struct bench_vector *v, void *buffer);
/* Elements of the receive buffer that are not what they must be. */
size_t bench_wrong(const struct bench_vector *v, const void *buffer);

#endif
