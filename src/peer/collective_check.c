/* collective_check.c - see collective_check.h. */
#include "collective_check.h"

#include "../reduce/quant.h"
#include "../reduce/reduce.h"
#include "../ring/plan.h"

pcclFlow_t collective_flow(const pcclCollective_t *op)
{
    bool may = op->kind == pcclKindAllToAllV || op->kind == pcclKindAllReduce;
    return may && op->size >= sizeof *op ? op->flow : pcclFlowAll;
}

bool collective_is_even(const pcclCollective_t *op)
{
    return collective_flow(op) == pcclFlowEven;
}

bool collective_is_rooted(const pcclCollective_t *op)
{
    bool flows = collective_flow(op) != pcclFlowAll && !collective_is_even(op);
    return op->kind == pcclKindBroadcast || flows;
}

bool collective_may_choose(const pcclCollective_t *op)
{
    if (op->kind == pcclKindReduceScatter || op->kind == pcclKindScan)
        return op->flow == pcclFlowAll;
    if (op->kind == pcclKindAllReduce) return op->flow == pcclFlowToRoot;
    return op->kind == pcclKindAllToAllV && op->flow > pcclFlowAll &&
           op->flow <= pcclFlowEven;
}

static bool overlaps(const void *a, const void *b, size_t size)
{
    uintptr_t x = (uintptr_t)a;
    uintptr_t y = (uintptr_t)b;
    return x != y && x < y + size && y < x + size;
}

/* Of an all-reduce whose type is known. */
bool collective_overlaps(const pcclCollective_t *op)
{
    return op->kind == pcclKindAllReduce &&
           overlaps(op->sendbuf, op->recvbuf,
                    op->count * dtype_size((enum dtype)op->datatype));
}

/* A sum that goes to a root does not come to the others. */
bool collective_has_result(const pcclCollective_t *op, uint32_t rank)
{
    return op->kind != pcclKindAllReduce ||
           collective_flow(op) == pcclFlowAll || (uint32_t)op->root == rank;
}

/* Of an operation that reduces vectors of n blocks. */
static const char *check_sum(const pcclCollective_t *op, uint32_t n, bool gets)
{
    if ((unsigned)op->datatype >= DTYPE_COUNT) return "unknown datatype";
    if ((unsigned)op->op >= REDOP_COUNT) return "unknown operator";
    size_t element = dtype_size((enum dtype)op->datatype);
    if (op->count > SIZE_MAX / 2 / element / n) return "count is too large";
    if (op->count > 0 && (!op->sendbuf || (gets && !op->recvbuf)))
        return "a buffer is NULL";
    return NULL;
}

static const char *check_all_reduce(const pcclCollective_t *op, uint32_t rank)
{
    const char *wrong = check_sum(op, 1, collective_has_result(op, rank));
    if (wrong || !collective_has_result(op, rank)) return wrong;
    return collective_overlaps(op)
               ? "sendbuf and recvbuf overlap without being equal"
               : NULL;
}

const char *collective_check_quantization(const pcclCollective_t *op,
                                          const pcclQuantizationOptions_t *q)
{
    if (q->algorithm == pcclQuantNone) return NULL;
    if ((unsigned)q->algorithm >= QUANT_ALGORITHM_COUNT ||
        (unsigned)q->quantized_datatype >= DTYPE_COUNT)
        return "unknown quantization";
    const struct quant quant = {(enum quant_algorithm)q->algorithm,
                                (enum dtype)op->datatype,
                                (enum dtype)q->quantized_datatype};
    return quant_check(&quant, (enum redop)op->op);
}

static const char *check_even(const pcclCollective_t *op, uint32_t world)
{
    if (op->kind == pcclKindAllReduce) return "a sum has no such flow";
    for (uint32_t i = 0; i < world; i++) {
        if (op->send_bytes[i] != op->count || op->recv_bytes[i] != op->count)
            return "a size is not `count` where all blocks are equal";
    }
    return NULL;
}

/* Blocks go one way, between the root and the others; a sum goes to it. */
const char *collective_check_flow(const pcclCollective_t *op, uint32_t world,
                                  uint32_t rank)
{
    pcclFlow_t flow = collective_flow(op);
    if (flow == pcclFlowAll) return NULL;
    if ((unsigned)flow >= FLOW_COUNT) return "unknown flow";
    if (collective_is_even(op)) return check_even(op, world);
    if (op->root < 0 || (uint32_t)op->root >= world)
        return "root is not a rank of the world";
    if (op->kind == pcclKindAllReduce)
        return flow == pcclFlowToRoot ? NULL : "a sum has no such flow";
    uint32_t root = (uint32_t)op->root;
    for (uint32_t i = 0; i < world; i++) {
        bool own = i == rank && rank == root;
        bool sends = own || (flow == pcclFlowToRoot ? i == root : rank == root);
        bool gets = own || (flow == pcclFlowToRoot ? rank == root : i == root);
        if ((!sends && op->send_bytes[i] > 0) ||
            (!gets && op->recv_bytes[i] > 0))
            return "a size is not 0 where no data flow";
    }
    return NULL;
}

/* Returns the error of the arguments, or NULL. */
const char *collective_check(const pcclCollective_t *op, uint32_t world,
                             uint32_t rank)
{
    bool arrays =
        op->send_bytes && op->send_displs && op->recv_bytes && op->recv_displs;
    switch (op->kind) {
    case pcclKindAllReduce:
        return check_all_reduce(op, rank);
    case pcclKindBroadcast:
        if (op->root < 0 || (uint32_t)op->root >= world)
            return "root is not a rank of the world";
        return op->count > 0 && !op->recvbuf ? "the buffer is NULL" : NULL;
    case pcclKindBarrier:
        return NULL;
    case pcclKindAllGather:
        if (op->count > SIZE_MAX / 2 / world) return "count is too large";
        return op->count > 0 && !op->recvbuf ? "recvbuf is NULL" : NULL;
    case pcclKindAllToAllV:
        return arrays ? NULL : "an array of sizes or displacements is NULL";
    case pcclKindReduceScatter:
        return check_sum(op, world, true);
    case pcclKindScan:
        break;
    }
    return "unknown kind of collective";
}
