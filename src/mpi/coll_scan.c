/* coll_scan.c - the steps of a prefix reduction.
 *
 * Large vectors are transposed: each member gets one slice of all of them,
 * folds it in rank order, and sends every member its prefix of that slice. So a
 * member sends and receives two vectors and folds one, where an all-gather has
 * it receive and fold those of all.
 *
 * Medium ones of a host go to the first member as a whole: a gather and a
 * scatter, of 2(n-1) messages where transposing takes 2n(n-1). */
#include "coll.h"

#include <stdlib.h>
#include <string.h>

/* Stages: the packed input, a slice of all vectors, the packed result. */
enum { INPUT, SLICES, RESULT };

/* Only the members of the moment decide: a restart may have fewer. */
static void choose(struct coll *coll)
{
    coll->op.kind = pcclKindAllGather;
    if (coll->members->size > 1)
        coll_choose(coll, pcclKindScan, pcclFlowAll,
                    coll->recvcount * coll->recvtype->size);
}

/* To one member, and back from it. */
static bool is_star(const struct coll *coll)
{
    return coll->op.flow != pcclFlowAll;
}

/* In a star the first member's slice is everything. */
static MPI_Count slice_first(const struct coll *coll, int r)
{
    MPI_Count n = is_star(coll) ? 1 : coll->members->size;
    if (r > n) r = (int)n;
    MPI_Count rest = coll->recvcount % n;
    return coll->recvcount / n * r + (r < rest ? r : rest);
}

static MPI_Count slice_bytes(const struct coll *coll, int r)
{
    return (slice_first(coll, r + 1) - slice_first(coll, r)) *
           coll->recvtype->size;
}

/* Describes one side: of a whole vector the slice of each member, or for each
 * member a block of this member's slice; `none` has none. */
static void describe_whole(const struct coll *coll, size_t *bytes,
                           size_t *displs)
{
    for (int r = 0; r < coll->members->size; r++) {
        bytes[r] = (size_t)slice_bytes(coll, r);
        displs[r] = (size_t)(slice_first(coll, r) * coll->recvtype->size);
    }
}

static void describe_slices(const struct coll *coll, size_t *bytes,
                            size_t *displs, int before)
{
    size_t mine = (size_t)slice_bytes(coll, coll->members->rank);
    for (int r = 0; r < coll->members->size; r++) {
        bytes[r] = r < before ? 0 : mine;
        displs[r] = r < before ? 0 : (size_t)(r - before) * mine;
    }
}

static void exchange(struct coll *coll, pcclFlow_t flow)
{
    size_t n = (size_t)coll->members->size, *arrays = coll->layout.exchange;
    coll->op.kind = pcclKindAllToAllV;
    coll->op.flow = flow;
    coll->op.root = 0;
    coll->op.send_bytes = arrays;
    coll->op.send_displs = arrays + n;
    coll->op.recv_bytes = arrays + 2 * n;
    coll->op.recv_displs = arrays + 3 * n;
    coll_sign_reduction(coll);
}

static int transpose(struct coll *coll)
{
    const struct type *type = coll->recvtype;
    size_t n = (size_t)coll->members->size;
    const void *from = coll->in_place ? coll->recvbuf : coll->sendbuf;
    coll->layout.exchange = calloc(4 * n, sizeof *coll->layout.exchange);
    if (!coll->layout.exchange)
        return error_note(MPI_ERR_NO_MEM, "out of memory");
    if (!type->dense) {
        MPI_Count size = coll->recvcount * type->size;
        char *packed = coll_stage(coll, INPUT, (size_t)size);
        if (!packed) return MPI_ERR_NO_MEM;
        type_pack(from, coll->recvcount, type, 0, packed, size);
        from = packed;
    }
    describe_whole(coll, coll->layout.exchange, coll->layout.exchange + n);
    describe_slices(coll, coll->layout.exchange + 2 * n,
                    coll->layout.exchange + 3 * n, 0);
    size_t mine = (size_t)slice_bytes(coll, coll->members->rank);
    coll->op.sendbuf = from;
    coll->op.recvbuf = coll_stage(coll, SLICES, n * mine);
    if (!coll->op.recvbuf) return MPI_ERR_NO_MEM;
    exchange(coll, is_star(coll) ? pcclFlowToRoot : pcclFlowAll);
    return COLL_RUN;
}

static int fold_prefixes(const struct coll *coll)
{
    MPI_Count mine = slice_bytes(coll, coll->members->rank);
    if (mine == 0) return MPI_SUCCESS;
    MPI_Count count = mine / coll->recvtype->size;
    struct fold_room room;
    if (!fold_room_make(coll, count, &room))
        return error_note(MPI_ERR_NO_MEM, "out of memory");
    char *at = coll->stages[SLICES];
    for (int r = 1; r < coll->members->size; r++)
        fold_packed(coll, &room, at + (r - 1) * mine, at + r * mine, count);
    fold_room_free(&room);
    return MPI_SUCCESS;
}

/* The first member of an exclusive scan has no prefix. */
static int transpose_back(struct coll *coll)
{
    const struct type *type = coll->recvtype;
    size_t n = (size_t)coll->members->size, *arrays = coll->layout.exchange;
    int before = coll->reduction.fold == FOLD_BEFORE;
    int result = fold_prefixes(coll);
    if (result != MPI_SUCCESS) return result;
    describe_slices(coll, arrays, arrays + n, before);
    describe_whole(coll, arrays + 2 * n, arrays + 3 * n);
    if (coll->members->rank < before)
        memset(arrays + 2 * n, 0, n * sizeof *arrays);
    coll->op.sendbuf = coll->stages[SLICES];
    coll->op.recvbuf = coll->recvbuf;
    if (!type->dense || coll->in_place)
        coll->op.recvbuf =
            coll_stage(coll, RESULT, (size_t)(coll->recvcount * type->size));
    if (!coll->op.recvbuf) return MPI_ERR_NO_MEM;
    exchange(coll, is_star(coll) ? pcclFlowFromRoot : pcclFlowAll);
    return COLL_RUN;
}

int step_scan(struct coll *coll)
{
    if (coll->round == 0) choose(coll);
    if (coll->op.kind == pcclKindAllGather) return step_reduce_fold(coll);
    if (coll->round == 0) return transpose(coll);
    if (coll->round == 1) return transpose_back(coll);
    bool gets = coll->reduction.fold == FOLD_UP_TO || coll->members->rank > 0;
    if (coll->stages[RESULT] && gets)
        type_unpack(coll->recvbuf, coll->recvcount, coll->recvtype, 0,
                    coll->stages[RESULT],
                    coll->recvcount * coll->recvtype->size);
    return MPI_SUCCESS;
}
