/* coll_steps.c - the steps of collectives that move data without reducing. */
#include "coll.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int step_barrier(struct coll *coll)
{
    if (coll->round == 1) return MPI_SUCCESS;
    coll->op.kind = pcclKindBarrier;
    coll_sign(coll);
    return COLL_RUN;
}

/* The root was lost: the lowest rank that has its data sends them. */
static int holder_round(struct coll *coll)
{
    coll->agreement.mine =
        coll->has_data ? (uint32_t)coll->members->rank : UINT32_MAX;
    coll->op.kind = pcclKindAllReduce;
    coll->op.sendbuf = &coll->agreement.mine;
    coll->op.recvbuf = &coll->agreement.all;
    coll->op.count = 1;
    coll->op.datatype = pcclUint32;
    coll->op.op = pcclMin;
    coll_sign(coll);
    coll_sign_text(coll, "PCCL_LOST_ROOT", world.promotes ? "promote" : "end",
                   1 + world.promotes);
    return COLL_RUN;
}

int step_broadcast(struct coll *coll)
{
    const struct type *type = coll->recvtype;
    MPI_Count size = coll->recvcount * type->size;
    int root = coll_root_now(coll);
    if (coll->orphan && coll->round == 0) return holder_round(coll);
    if (coll->orphan && coll->agreement.all != UINT32_MAX)
        root = (int)coll->agreement.all;
    else if (coll->orphan && !world.promotes && size > 0)
        return error_note(MPIX_ERR_PROC_FAILED, "%s", lost_root_text);
    bool sender = coll->members->rank == root;
    if (coll->round == 1 + coll->orphan) {
        if (coll->stages[0] && !sender)
            type_unpack(coll->recvbuf, coll->recvcount, type, 0,
                        coll->stages[0], size);
        return MPI_SUCCESS;
    }
    coll->op.recvbuf = coll->recvbuf;
    if (!type->dense) {
        char *stage = coll_stage(coll, 0, (size_t)size);
        if (!stage) return MPI_ERR_NO_MEM;
        if (sender)
            type_pack(coll->recvbuf, coll->recvcount, type, 0, stage, size);
        coll->op.recvbuf = stage;
    }
    coll->op.kind = pcclKindBroadcast;
    coll->op.count = (size_t)size;
    coll->op.root = root;
    coll_sign(coll);
    return COLL_RUN;
}

/* Gathers every member's block, in the order of the remaining members. */
int step_allgather(struct coll *coll)
{
    const struct type *type = coll->recvtype;
    MPI_Count size = coll->recvcount * type->size;
    int world_size = coll->members->size;
    char *stage = coll->stages[0];
    if (coll->round == 1) {
        for (int r = 0; stage && r < world_size; r++)
            type_unpack((char *)coll->recvbuf +
                            r * coll->recvcount * type->extent,
                        coll->recvcount, type, 0, stage + r * size, size);
        return MPI_SUCCESS;
    }
    coll->op.kind = pcclKindAllGather;
    coll->op.count = (size_t)size;
    coll->op.sendbuf = coll->sendbuf;
    coll->op.recvbuf = coll->recvbuf;
    coll_sign(coll);
    /* In place, the own block is at the rank of the call, and a failed
     * operation may overwrite any part of the receive buffer: keep a copy. */
    bool staged = !type->dense || coll->in_place;
    if (staged) {
        stage = coll_stage(coll, 0, (size_t)size * (size_t)world_size);
        if (!stage) return MPI_ERR_NO_MEM;
        coll->op.recvbuf = stage;
    }
    if (coll->in_place || !coll->sendtype->dense) {
        char *own = stage ? stage + coll->members->rank * size
                          : coll_stage(coll, 1, (size_t)size);
        if (!own) return MPI_ERR_NO_MEM;
        if (coll->in_place)
            type_pack((char *)coll->recvbuf +
                          coll->called->rank * coll->recvcount * type->extent,
                      coll->recvcount, type, 0, own, size);
        else
            type_pack(coll->sendbuf, coll->sendcount, coll->sendtype, 0, own,
                      size);
        coll->op.sendbuf = stage ? NULL : own;
    }
    return COLL_RUN;
}

/* ------------------------------------------------------------------ exchange
 */

static MPI_Count block_size(const struct block *block)
{
    return block->count > 0 ? block->count * block->type->size : 0;
}

/* Lowest and highest address of all blocks; false: they cannot be sent without
 * a copy. */
static bool blocks_range(const struct block *blocks, int count, uintptr_t *low,
                         uintptr_t *high)
{
    *low = UINTPTR_MAX;
    *high = 0;
    for (int i = 0; i < count; i++) {
        MPI_Count size = block_size(&blocks[i]);
        uintptr_t at = (uintptr_t)blocks[i].address;
        if (size == 0) continue;
        if (!blocks[i].type->dense) return false;
        if (at < *low) *low = at;
        if (at + (uintptr_t)size > *high) *high = at + (uintptr_t)size;
    }
    return true;
}

/* Copies the blocks one after the other into a buffer; packs them if wanted. */
static char *blocks_stage(struct coll *coll, const struct block *blocks,
                          int index, size_t *displs, bool pack)
{
    int count = coll->members->size;
    size_t total = 0;
    for (int i = 0; i < count; i++) {
        displs[i] = total;
        total += (size_t)block_size(&blocks[i]);
    }
    char *stage = coll_stage(coll, index, total);
    for (int i = 0; stage && pack && i < count; i++)
        if (block_size(&blocks[i]) > 0)
            type_pack(blocks[i].address, blocks[i].count, blocks[i].type, 0,
                      stage + displs[i], block_size(&blocks[i]));
    return stage;
}

/* Of the calls whose blocks are all equal: the bytes of each that this member
 * sends and receives. A side that it has not counts as the other one. */
static bool even_sizes(const struct coll *coll, MPI_Count *send,
                       MPI_Count *recv)
{
    bool gathers = coll->call == CALL_GATHER;
    bool scatters = coll->call == CALL_SCATTER;
    *send = *recv = -1;
    if (!gathers && !scatters && coll->call != CALL_ALLTOALL) return false;
    if (!coll->layout.even || coll->comm->remote) return false;
    bool root = coll->rooted && coll_is_root(coll);
    if (coll->layout.sendcounts)
        *send = coll->layout.sendcounts[0] * coll->sendtype->size;
    else if (gathers && !coll->in_place)
        *send = coll->sendcount * coll->sendtype->size;
    if (coll->layout.recvcounts && (root || !gathers))
        *recv = coll->layout.recvcounts[0] * coll->recvtype->size;
    else if (scatters && !coll->in_place)
        *recv = coll->recvcount * coll->recvtype->size;
    if (*send < 0) *send = *recv;
    if (*recv < 0) *recv = *send;
    return *send >= 0;
}

/* All members get the blocks of all, and each takes its own. */
static int share_prepare(struct coll *coll, MPI_Count size)
{
    size_t n = (size_t)coll->members->size, each = (size_t)size;
    const struct block *send = coll->layout.blocks;
    bool gathers = coll->call == CALL_GATHER;
    size_t mine = gathers ? each : n * each;
    size_t all = coll->call == CALL_ALLTOALL ? n * n * each : n * each;
    pcclCollective_t *op = &coll->op;
    char *from = NULL, *to = coll_stage(coll, 1, all);
    if (coll->call == CALL_SCATTER)
        from = to;
    else if (to)
        from = coll_stage(coll, 0, mine);
    if (!from) return MPI_ERR_NO_MEM;
    memset(from, 0, mine); /* in place a root sends nothing of its own */
    for (size_t i = 0; i < n; i++)
        if (block_size(&send[i]) > 0)
            type_pack(send[i].address, send[i].count, send[i].type, 0,
                      from + (gathers ? 0 : i * each), size);
    op->sendbuf = from;
    op->recvbuf = to;
    op->count = mine;
    if (op->kind == pcclKindAllGather) return COLL_RUN;
    op->sendbuf = NULL;
    op->root = coll_root_now(coll);
    return COLL_RUN;
}

static void share_finish(const struct coll *coll, MPI_Count size)
{
    size_t n = (size_t)coll->members->size, each = (size_t)size;
    const struct block *recv = coll->layout.blocks + n;
    size_t rank = (size_t)coll->members->rank;
    for (size_t i = 0; i < n; i++) {
        size_t at = coll->call == CALL_ALLTOALL  ? i * n + rank
                    : coll->call == CALL_SCATTER ? rank
                                                 : i;
        if (block_size(&recv[i]) > 0)
            type_unpack(recv[i].address, recv[i].count, recv[i].type, 0,
                        (const char *)coll->stages[1] + at * each, size);
    }
}

/* A gather or a scatter of a group tells pccl its root, and what has equal
 * blocks their size: pccl may choose another collective for these. */
static void choose(struct coll *coll)
{
    pcclCollective_t *op = &coll->op;
    MPI_Count each, back;
    op->kind = pcclKindAllToAllV;
    op->flow = pcclFlowAll;
    if (coll->comm->remote) return;
    if (coll->call == CALL_GATHER) op->flow = pcclFlowToRoot;
    if (coll->call == CALL_SCATTER) op->flow = pcclFlowFromRoot;
    if (op->flow != pcclFlowAll) op->root = coll_root_now(coll);
    if (!even_sizes(coll, &each, &back)) return;
    coll_sign_number(coll, "bytes of a block sent", (uint64_t)each);
    coll_sign_number(coll, "bytes of a block received", (uint64_t)back);
    if (each != back) return;
    op->count = (size_t)each;
    coll_choose(coll, op->kind,
                coll->call == CALL_ALLTOALL ? pcclFlowEven : op->flow, each);
}

static int exchange_prepare(struct coll *coll)
{
    size_t n = (size_t)coll->members->size;
    coll->layout.blocks = calloc(2 * n, sizeof *coll->layout.blocks);
    coll->layout.exchange = calloc(4 * n, sizeof *coll->layout.exchange);
    if (!coll->layout.blocks || !coll->layout.exchange)
        return error_note(MPI_ERR_NO_MEM, "out of memory");
    struct block *send = coll->layout.blocks, *recv = coll->layout.blocks + n;
    size_t *arrays = coll->layout.exchange;
    coll->layout.describe(coll, send, recv);
    coll_sign(coll);
    choose(coll);
    pcclCollective_t *op = &coll->op;
    if (op->kind != pcclKindAllToAllV)
        return share_prepare(coll, (MPI_Count)op->count);
    for (size_t i = 0; i < n; i++) {
        arrays[i] = (size_t)block_size(&send[i]);
        arrays[2 * n + i] = (size_t)block_size(&recv[i]);
    }
    uintptr_t low, high, low2, high2;
    bool direct = blocks_range(send, (int)n, &low, &high);
    bool direct2 = blocks_range(recv, (int)n, &low2, &high2) && !coll->in_place;
    if (low < high2 && low2 < high) direct = false;
    if (direct) {
        op->sendbuf = (const void *)(low == UINTPTR_MAX ? 0 : low);
        for (size_t i = 0; i < n; i++)
            if (arrays[i]) arrays[n + i] = (uintptr_t)send[i].address - low;
    } else if (!(op->sendbuf = blocks_stage(coll, send, 0, arrays + n, true))) {
        return MPI_ERR_NO_MEM;
    }
    if (direct2) {
        op->recvbuf = (void *)(low2 == UINTPTR_MAX ? 0 : low2);
        for (size_t i = 0; i < n; i++)
            if (arrays[2 * n + i])
                arrays[3 * n + i] = (uintptr_t)recv[i].address - low2;
    } else if (!(op->recvbuf =
                     blocks_stage(coll, recv, 1, arrays + 3 * n, false))) {
        return MPI_ERR_NO_MEM;
    }
    op->send_bytes = arrays;
    op->send_displs = arrays + n;
    op->recv_bytes = arrays + 2 * n;
    op->recv_displs = arrays + 3 * n;
    return COLL_RUN;
}

/* All other data movement; describe() defines the blocks for the remaining
 * members. */
int step_exchange(struct coll *coll)
{
    if (coll->round == 0) return exchange_prepare(coll);
    size_t n = (size_t)coll->members->size;
    const struct block *recv = coll->layout.blocks + n;
    char *stage = coll->stages[1];
    if (coll->op.kind != pcclKindAllToAllV) {
        MPI_Count each, back;
        (void)even_sizes(coll, &each, &back);
        share_finish(coll, each);
        return MPI_SUCCESS;
    }
    for (size_t i = 0; stage && i < n; i++)
        if (block_size(&recv[i]) > 0)
            type_unpack(recv[i].address, recv[i].count, recv[i].type, 0,
                        stage + coll->layout.exchange[3 * n + i],
                        block_size(&recv[i]));
    return MPI_SUCCESS;
}
