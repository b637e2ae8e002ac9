/* coll_reduce.c - the steps of collectives that reduce.
 *
 * Sums and extremes of plain numbers use pccl's all-reduce. All others are
 * folded here: the members gather all contributions in blocks of bounded
 * memory, and each member folds them in rank order. So all get the same bits,
 * and operators need not commute. */
#include "coll.h"

#include "../base/limit.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { FOLD_BLOCKS, FOLD_RESULT }; /* stages */

/* Elements that operators see as the same have the same name. */
static const char *const element_names[ELEMENT_COUNT] = {
    [ELEMENT_NONE] = "of the program",
    [ELEMENT_CHARACTER] = "MPI_CHAR",
    [ELEMENT_BYTE] = "MPI_BYTE",
    [ELEMENT_I8] = "MPI_INT8_T",
    [ELEMENT_I16] = "MPI_INT16_T",
    [ELEMENT_I32] = "MPI_INT",
    [ELEMENT_I64] = "MPI_INT64_T",
    [ELEMENT_U8] = "MPI_UINT8_T",
    [ELEMENT_U16] = "MPI_UINT16_T",
    [ELEMENT_U32] = "MPI_UNSIGNED",
    [ELEMENT_U64] = "MPI_UINT64_T",
    [ELEMENT_FLOAT] = "MPI_FLOAT",
    [ELEMENT_DOUBLE] = "MPI_DOUBLE",
    [ELEMENT_LONG_DOUBLE] = "MPI_LONG_DOUBLE",
    [ELEMENT_FLOAT_COMPLEX] = "MPI_C_FLOAT_COMPLEX",
    [ELEMENT_DOUBLE_COMPLEX] = "MPI_C_DOUBLE_COMPLEX",
    [ELEMENT_LONG_DOUBLE_COMPLEX] = "MPI_C_LONG_DOUBLE_COMPLEX",
    [ELEMENT_BOOL] = "MPI_C_BOOL",
    [ELEMENT_LOGICAL] = "MPI_LOGICAL",
    [ELEMENT_LOGICAL2] = "MPI_LOGICAL2",
    [ELEMENT_LOGICAL8] = "MPI_LOGICAL8",
    [ELEMENT_FLOAT_INT] = "MPI_FLOAT_INT",
    [ELEMENT_DOUBLE_INT] = "MPI_DOUBLE_INT",
    [ELEMENT_LONG_INT] = "MPI_LONG_INT",
    [ELEMENT_SHORT_INT] = "MPI_SHORT_INT",
    [ELEMENT_LONG_DOUBLE_INT] = "MPI_LONG_DOUBLE_INT",
    [ELEMENT_2INT] = "MPI_2INT",
    [ELEMENT_2FLOAT] = "MPI_2REAL",
    [ELEMENT_2DOUBLE] = "MPI_2DOUBLE_PRECISION",
    [ELEMENT_OTHER] = "another one"};

void coll_sign_reduction(struct coll *coll)
{
    const struct mpi_op *op = coll->reducer;
    enum element element = coll->recvtype->element;
    uint64_t number = op->number;
    coll_sign(coll);
    if (coll->reduction.split)
        coll_sign_numbers(coll, "counts", coll->reduction.split,
                          coll->layout.entries);
    else if (coll->call == CALL_REDUCE_SCATTER_BLOCK)
        coll_sign_number(coll, "count", (uint64_t)coll->reduction.keep_count);
    else
        coll_sign_number(coll, "count", (uint64_t)coll->recvcount);
    coll_sign_text(coll, "datatype", element_names[element], element);
    coll_sign_text(coll, "operator", op_mpi_name(op), number);
}

/* Each member keeps a block of the same size, and none has been lost. */
static bool is_even_scatter(const struct coll *coll)
{
    int n = coll->called->size;
    if (coll->call != CALL_REDUCE_SCATTER &&
        coll->call != CALL_REDUCE_SCATTER_BLOCK)
        return false;
    for (int i = 1; coll->reduction.split && i < n; i++)
        if (coll->reduction.split[i] != coll->reduction.split[0]) return false;
    return n == coll->members->size;
}

/* Stores elements [keep_first, keep_first + keep_count) of a full result. */
static void keep(const struct coll *coll, const void *result)
{
    const struct type *type = coll->recvtype;
    if (!coll->reduction.keep || coll->recvbuf == result) return;
    type_unpack(coll->recvbuf, coll->reduction.keep_count, type, 0,
                (const char *)result + coll->reduction.keep_first * type->size,
                coll->reduction.keep_count * type->size);
}

/* The sum goes to the root alone, unless a loss may give the root's number to a
 * process that does not know it (E7). */
static void choose(struct coll *coll)
{
    MPI_Count size = coll->recvtype->size;
    coll->op.kind = pcclKindAllReduce;
    coll->op.flow = pcclFlowAll;
    if (is_even_scatter(coll))
        coll_choose(coll, pcclKindReduceScatter, pcclFlowAll,
                    coll->reduction.keep_count * size);
    else if (coll->call == CALL_REDUCE && world.policy != FAILURE_SHRINK)
        coll_choose(coll, pcclKindAllReduce, pcclFlowToRoot,
                    coll->recvcount * size);
}

/* What pccl returns here is what this member keeps. */
static bool gets_its_part(const struct coll *coll)
{
    if (coll->op.kind == pcclKindReduceScatter) return true;
    if (coll->op.flow == pcclFlowToRoot && !coll_is_root(coll)) return true;
    return coll->reduction.keep && coll->reduction.keep_first == 0 &&
           coll->reduction.keep_count == coll->recvcount;
}

int step_reduce_direct(struct coll *coll)
{
    if (coll->round == 1) {
        if (coll->stages[0]) keep(coll, coll->stages[0]);
        return MPI_SUCCESS;
    }
    pcclCollective_t *op = &coll->op;
    choose(coll);
    bool scatter = op->kind == pcclKindReduceScatter;
    MPI_Count count = scatter ? coll->reduction.keep_count : coll->recvcount;
    op->sendbuf = coll->in_place ? coll->recvbuf : coll->sendbuf;
    op->recvbuf = coll->recvbuf;
    op->count = (size_t)count * (size_t)coll->scale;
    op->root = op->flow == pcclFlowToRoot ? coll_root_now(coll) : 0;
    if (!gets_its_part(coll)) {
        MPI_Count size = count * coll->recvtype->size;
        op->recvbuf = coll_stage(coll, 0, (size_t)size);
        if (!op->recvbuf) return MPI_ERR_NO_MEM;
    }
    coll_sign_reduction(coll);
    return COLL_RUN;
}

static int context_round(struct coll *coll, uint32_t mine, pcclRedOp_t op)
{
    coll->agreement.mine = mine;
    coll->op.kind = pcclKindAllReduce;
    coll->op.sendbuf = &coll->agreement.mine;
    coll->op.recvbuf = &coll->agreement.all;
    coll->op.count = 1;
    coll->op.datatype = pcclUint32;
    coll->op.op = op;
    coll_sign(coll);
    coll_sign_number(coll, "number of communicators", coll->agreement.wanted);
    return COLL_RUN;
}

/* Each member proposes its first free id. All claim the highest of these, which
 * fails on a member if another thread or an overlapping agreement has claimed
 * it meanwhile. All members then check that all have succeeded. Ids of failed
 * attempts are lost. */
int step_context(struct coll *coll)
{
    if (coll->round % 2 == 1) {
        coll->agreement.candidate = coll->agreement.all;
        if (!context_can_be(coll->agreement.candidate, coll->agreement.wanted))
            return context_none_left();
        bool taken =
            context_claim(coll->agreement.candidate, coll->agreement.wanted);
        return context_round(coll, taken, pcclMin);
    }
    bool claimed = coll->round > 0 && coll->agreement.mine == 1; /* here */
    if (claimed && coll->agreement.all == 1) return MPI_SUCCESS;
    return context_round(coll, context_first_free(), pcclMax);
}

/* --------------------------------------------------------------------- folds
 */

/* A buffer for count elements in the type's layout; the caller frees
 * *memory. */
static char *layout_new(const struct type *type, MPI_Count count, void **memory)
{
    MPI_Aint low;
    MPI_Aint span = type_span(type, count, &low);
    *memory = calloc(1, (size_t)span + 16);
    if (!*memory) return NULL;
    /* the type's origin is aligned; its lowest byte need not be */
    return (char *)*memory + (low & 15) - low;
}

bool fold_room_make(const struct coll *coll, MPI_Count count,
                    struct fold_room *room)
{
    const struct type *type = coll->recvtype;
    *room = (struct fold_room){0};
    if (type->dense) return true;
    room->in = layout_new(type, count, &room->memory[0]);
    room->inout = layout_new(type, count, &room->memory[1]);
    if (room->memory[0] && room->memory[1]) return true;
    fold_room_free(room);
    return false;
}

void fold_room_free(struct fold_room *room)
{
    free(room->memory[0]);
    free(room->memory[1]);
}

void fold_packed(const struct coll *coll, const struct fold_room *room,
                 char *in, char *inout, MPI_Count count)
{
    const struct type *type = coll->recvtype;
    MPI_Count size = count * type->size;
    if (type->dense) {
        op_apply(coll->reducer, type, in, inout, count);
        return;
    }
    type_unpack(room->in, count, type, 0, in, size);
    type_unpack(room->inout, count, type, 0, inout, size);
    op_apply(coll->reducer, type, room->in, room->inout, count);
    type_pack(room->inout, count, type, 0, inout, size);
}

/* Folds contributions 0..limit-1 of `count` packed elements each into the first
 * packed slot of the last contributor; returns its address, or NULL: no
 * memory. */
static char *fold(const struct coll *coll, char *packed, MPI_Count size,
                  MPI_Count count, int limit)
{
    struct fold_room room;
    if (!fold_room_make(coll, count, &room)) return NULL;
    char *result = packed + (limit - 1) * size;
    for (int r = limit - 2; r >= 0; r--)
        fold_packed(coll, &room, packed + r * size, result, count);
    fold_room_free(&room);
    return result;
}

/* First element and number of elements of a round. */
static MPI_Count fold_block(const struct coll *coll, int round,
                            MPI_Count *first)
{
    *first = round * coll->reduction.block_count;
    MPI_Count left = coll->recvcount - *first;
    return left < coll->reduction.block_count ? left
                                              : coll->reduction.block_count;
}

/* Members whose contributions make this one's result. */
static int fold_limit(const struct coll *coll)
{
    const struct group *members = coll->members;
    if (coll->reduction.fold == FOLD_ALL) return members->size;
    return members->rank + (coll->reduction.fold == FOLD_UP_TO);
}

/* `count` packed elements of what this member keeps, from `at` on. */
static void fold_keep(const struct coll *coll, MPI_Count at, MPI_Count count,
                      const char *packed)
{
    const struct type *type = coll->recvtype;
    char *aside = coll->stages[FOLD_RESULT];
    if (aside)
        memcpy(aside + at * type->size, packed, (size_t)(count * type->size));
    else
        type_unpack((char *)coll->recvbuf + at * type->extent, count, type, 0,
                    packed, count * type->size);
}

/* Folds the blocks gathered in the last round and keeps our part. */
static int fold_finish(struct coll *coll, int round)
{
    const struct type *type = coll->recvtype;
    MPI_Count first, count = fold_block(coll, round, &first);
    MPI_Count low = coll->reduction.keep_first,
              high = low + coll->reduction.keep_count;
    if (low < first) low = first;
    if (high > first + count) high = first + count;
    int limit = fold_limit(coll);
    if (!coll->reduction.keep || low >= high || limit == 0) return MPI_SUCCESS;
    MPI_Count size = count * type->size;
    char *packed = coll->stages[FOLD_BLOCKS];
    char *result = fold(coll, packed, size, count, limit);
    if (!result) return error_note(MPI_ERR_NO_MEM, "out of memory");
    fold_keep(coll, low - coll->reduction.keep_first, high - low,
              result + (low - first) * type->size);
    return MPI_SUCCESS;
}

static int fold_begin(struct coll *coll)
{
    const struct type *type = coll->recvtype;
    MPI_Count world_size = coll->members->size;
    MPI_Count each = type->size > 0 ? type->size * world_size : 1;
    coll->reduction.block_count = FOLD_MEMORY / each;
    if (coll->reduction.block_count < 1) coll->reduction.block_count = 1;
    if (coll->reduction.block_count > coll->recvcount)
        coll->reduction.block_count = coll->recvcount > 0 ? coll->recvcount : 1;
    if (!coll_stage(coll, FOLD_BLOCKS,
                    (size_t)(coll->reduction.block_count * each)))
        return MPI_ERR_NO_MEM;
    return MPI_SUCCESS;
}

/* In place, a result of several rounds stays aside until the last one has
 * succeeded. */
static int fold_aside(struct coll *coll)
{
    const struct reduction *r = &coll->reduction;
    if (!coll->in_place || !r->keep || fold_limit(coll) == 0 ||
        coll->recvcount <= r->block_count)
        return MPI_SUCCESS;
    MPI_Count size = r->keep_count * coll->recvtype->size;
    if (!coll_stage(coll, FOLD_RESULT, (size_t)size)) return MPI_ERR_NO_MEM;
    return MPI_SUCCESS;
}

static int fold_end(const struct coll *coll)
{
    MPI_Count count = coll->reduction.keep_count;
    const struct type *type = coll->recvtype;
    if (coll->stages[FOLD_RESULT])
        type_unpack(coll->recvbuf, count, type, 0, coll->stages[FOLD_RESULT],
                    count * type->size);
    return MPI_SUCCESS;
}

int step_reduce_fold(struct coll *coll)
{
    const struct type *type = coll->recvtype;
    MPI_Count first;
    int result = MPI_SUCCESS;
    if (coll->round == 0) {
        result = fold_begin(coll);
        if (result == MPI_SUCCESS) result = fold_aside(coll);
    } else {
        result = fold_finish(coll, coll->round - 1);
    }
    if (result != MPI_SUCCESS) return result;
    MPI_Count count = fold_block(coll, coll->round, &first);
    if (count <= 0 && coll->round > 0) return fold_end(coll);
    MPI_Count size = count * type->size;
    char *stage = coll->stages[FOLD_BLOCKS];
    type_pack(coll->in_place ? coll->recvbuf : coll->sendbuf, coll->recvcount,
              type, first * type->size, stage + coll->members->rank * size,
              size);
    coll->op.kind = pcclKindAllGather;
    coll->op.sendbuf = NULL;
    coll->op.recvbuf = stage;
    coll->op.count = (size_t)size;
    coll_sign_reduction(coll);
    return COLL_RUN;
}

/* -------------------------------------------------------------- between groups
 */

/* Sends each member's whole contribution to those members of the other group
 * that get a result. */
static void describe_inter(struct coll *coll, struct block *send,
                           struct block *recv)
{
    const struct group *remote = coll->comm->remote;
    struct block mine = {(char *)(uintptr_t)coll->sendbuf, coll->recvcount,
                         coll->recvtype};
    int root = coll->reduction.everyone ? -1 : coll_root_place(coll);
    if (root >= 0) send[root] = mine;
    for (int r = 0; r < remote->size; r++) {
        int place = coll_place(coll, r);
        if (coll->reduction.everyone) send[place] = mine;
        if (!coll->stages[2]) continue;
        MPI_Count size = coll->recvcount * coll->recvtype->size;
        recv[place] = (struct block){(char *)coll->stages[2] + r * size, size,
                                     type_find(MPI_BYTE)};
    }
}

/* Folds the contributions of one group in the other. */
int step_reduce_inter(struct coll *coll)
{
    int peers = coll->comm->remote->size;
    bool gets = coll->reduction.everyone || coll_is_root(coll);
    const struct type *type = coll->recvtype;
    MPI_Count count = coll->recvcount, size = type ? count * type->size : 0;
    if (coll->round == 0) {
        if (gets && !coll_stage(coll, 2, (size_t)(size * peers)))
            return MPI_ERR_NO_MEM;
        coll->layout.describe = describe_inter;
        return step_exchange(coll);
    }
    int result = step_exchange(coll);
    if (result != MPI_SUCCESS || !gets || size == 0) return result;
    char *packed = coll->stages[2];
    char *folded = fold(coll, packed, size, count, peers);
    if (!folded) return error_note(MPI_ERR_NO_MEM, "out of memory");
    keep(coll, folded);
    return MPI_SUCCESS;
}
