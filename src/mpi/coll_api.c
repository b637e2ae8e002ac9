/* coll_api.c - reductions, broadcast and barrier: converts arguments to a
 * struct coll. */
#include "coll_check.h"
#include "rank_use.h"

#include <stdlib.h>

/* ------------------------------------------------------------------- barrier
 */

int mpi_Barrier(struct comm *comm, const struct mode *mode)
{
    OPEN_OR_AGAIN(comm, NULL, NULL, mode, .call = CALL_BARRIER);
    coll.call = CALL_BARRIER;
    coll.step = step_barrier;
    coll.uses = USES_NOTHING;
    return coll_go(&coll, mode);
}

/* ----------------------------------------------------------------- broadcast
 */

/* Between groups: from the root to all members of the other group. */
static void describe_bcast(struct coll *coll, struct block *send,
                           struct block *recv)
{
    struct block whole = {coll->recvbuf, coll->recvcount, coll->recvtype};
    int root = coll_root_place(coll);
    if (root >= 0) recv[root] = whole;
    for (int r = 0; coll_is_root(coll) && r < coll->layout.entries; r++)
        send[coll_place(coll, r)] = whole;
}

int mpi_Bcast(void *buffer, MPI_Count count, MPI_Datatype type, int root,
              struct comm *comm, const struct mode *mode)
{
    OPEN_OR_AGAIN(comm, NULL, buffer, mode, .call = CALL_BCAST, .root = root,
                  .type = type, .count = count);
    coll.call = CALL_BCAST;
    CHECK(check_root(&coll, root));
    coll.step = comm->remote ? step_exchange : step_broadcast;
    coll.layout.describe = describe_bcast;
    coll.recvbuf = buffer;
    coll.recvcount = count;
    coll.rooted = !comm->remote;
    coll.root = root;
    coll.uses = USES_ROOT_DATA;
    if (root == MPI_PROC_NULL) return coll_go(&coll, mode);
    CHECK(check_data(buffer, count, type, &coll.recvtype));
    return coll_go(&coll, mode);
}

/* ---------------------------------------------------------------- reductions
 */

/* A reduction in an intercommunicator: `everyone` or the root is set. */
static int reduction_inter(struct coll *coll, const void *sendbuf,
                           void *recvbuf, MPI_Count count, MPI_Datatype type,
                           MPI_Op op, const struct mode *mode)
{
    bool sends = coll->reduction.everyone || coll->root >= 0;
    bool gets = coll->reduction.everyone || coll->root == MPI_ROOT;
    int result = MPI_SUCCESS;
    if (coll->reduction.fold != FOLD_ALL) result = MPI_ERR_COMM;
    if (sends && sendbuf == MPI_IN_PLACE) result = MPI_ERR_BUFFER;
    if (sends && result == MPI_SUCCESS)
        result = check_data(sendbuf, count, type, &coll->recvtype);
    if (gets && result == MPI_SUCCESS)
        result = check_data(recvbuf, coll->reduction.keep_count, type,
                            &coll->recvtype);
    if ((sends || gets) && result == MPI_SUCCESS)
        result = check_op(op, coll->recvtype, &coll->reducer);
    if (result != MPI_SUCCESS)
        return coll_refuse(coll, result, check_text(result));
    coll->step = step_reduce_inter;
    coll->sendbuf = sendbuf;
    coll->recvbuf = recvbuf;
    coll->recvcount = count;
    coll->reduction.keep = gets;
    coll->rooted = false;
    return coll_go(coll, mode);
}

/* Takes over the type and the operator if pccl has both. */
static bool pccl_reduces(struct coll *coll)
{
    return type_to_pccl(coll->recvtype, &coll->op.datatype, &coll->scale) &&
           op_to_pccl(coll->reducer, coll->recvtype, &coll->op.op);
}

/* Common part of all calls that reduce `count` elements of every member: the
 * caller has set keep* and fold. */
static int reduction(struct coll *coll, const void *sendbuf, void *recvbuf,
                     MPI_Count count, MPI_Datatype type, MPI_Op op,
                     const struct mode *mode)
{
    if (coll->comm->remote)
        return reduction_inter(coll, sendbuf, recvbuf, count, type, op, mode);
    coll->in_place = sendbuf == MPI_IN_PLACE;
    const void *input = coll->in_place ? recvbuf : sendbuf;
    int result = check_data(input, count, type, &coll->recvtype);
    if (result == MPI_SUCCESS && coll->reduction.keep)
        result = check_data(recvbuf, count, type, &coll->recvtype);
    if (result == MPI_SUCCESS)
        result = check_op(op, coll->recvtype, &coll->reducer);
    if (result == MPI_SUCCESS && coll->reduction.keep && count > 0 &&
        (recvbuf == MPI_IN_PLACE || sendbuf == recvbuf) && recvbuf)
        result = MPI_ERR_BUFFER;
    if (result != MPI_SUCCESS)
        return coll_refuse(coll, result, check_text(result));
    coll->step = coll->reduction.fold != FOLD_ALL ? step_scan
                 : pccl_reduces(coll)             ? step_reduce_direct
                                                  : step_reduce_fold;
    coll->sendbuf = sendbuf;
    coll->recvbuf = recvbuf;
    coll->recvcount = count;
    return coll_go(coll, mode);
}

int mpi_Allreduce(const void *sendbuf, void *recvbuf, MPI_Count count,
                  MPI_Datatype type, MPI_Op op, struct comm *comm,
                  const struct mode *mode)
{
    OPEN_OR_AGAIN(comm, sendbuf, recvbuf, mode, .call = CALL_ALLREDUCE,
                  .type = type, .op = op, .count = count);
    coll.call = CALL_ALLREDUCE;
    coll.reduction.keep = coll.reduction.everyone = true;
    coll.reduction.keep_count = count;
    coll.uses = USES_NOTHING;
    return reduction(&coll, sendbuf, recvbuf, count, type, op, mode);
}

int mpi_Scan(const void *sendbuf, void *recvbuf, MPI_Count count,
             MPI_Datatype type, MPI_Op op, struct comm *comm,
             const struct mode *mode)
{
    OPEN(comm, mode->function);
    coll.call = CALL_SCAN;
    coll.reduction.keep = true;
    coll.reduction.keep_count = count;
    coll.reduction.fold = FOLD_UP_TO;
    return reduction(&coll, sendbuf, recvbuf, count, type, op, mode);
}

int mpi_Exscan(const void *sendbuf, void *recvbuf, MPI_Count count,
               MPI_Datatype type, MPI_Op op, struct comm *comm,
               const struct mode *mode)
{
    OPEN(comm, mode->function);
    coll.call = CALL_EXSCAN;
    coll.reduction.keep = true;
    coll.reduction.keep_count = count;
    coll.reduction.fold = FOLD_BEFORE;
    return reduction(&coll, sendbuf, recvbuf, count, type, op, mode);
}

/* The root gets the result, and a process that takes itself for it (E7). A
 * process that does not know that it is the root may have passed no buffer. */
static bool gets_result(const struct coll *coll, const void *sendbuf,
                        const void *recvbuf)
{
    bool root = coll_is_root(coll);
    if (!coll->comm->follows_world || !rank_use_unaware()) return root;
    if (rank_use_believes(coll->root)) return true;
    return root && recvbuf && recvbuf != MPI_IN_PLACE && recvbuf != sendbuf;
}

static void reduce_to_root(struct coll *coll)
{
    coll->reduction.keep = coll->reduction.keep ||
                           (coll->recvbuf && coll->recvbuf != MPI_IN_PLACE &&
                            coll->recvbuf != coll->sendbuf);
    coll->reduction.keep_count = coll->reduction.keep ? coll->recvcount : 0;
}

int mpi_Reduce(const void *sendbuf, void *recvbuf, MPI_Count count,
               MPI_Datatype type, MPI_Op op, int root, struct comm *comm,
               const struct mode *mode)
{
    /* A loss may change who gets the result. */
    bool may = world.policy != FAILURE_SHRINK;
    OPEN_OR_AGAIN(comm, sendbuf, recvbuf, mode,
                  .call = may ? CALL_REDUCE : CALL_INTERNAL, .root = root,
                  .type = type, .op = op, .count = count);
    coll.call = CALL_REDUCE;
    CHECK(check_root(&coll, root));
    coll.rooted = true;
    coll.root = root;
    coll.uses = USES_ROOT;
    coll.to_root = reduce_to_root;
    coll.reduction.keep = gets_result(&coll, sendbuf, recvbuf);
    coll.reduction.keep_count = coll.reduction.keep ? count : 0;
    if (!coll.reduction.keep && !comm->remote && sendbuf == MPI_IN_PLACE)
        CHECK(MPI_ERR_BUFFER);
    return reduction(&coll, sendbuf, recvbuf, count, type, op, mode);
}

int mpi_Reduce_scatter(const void *sendbuf, void *recvbuf,
                       struct numbers counts, MPI_Datatype type, MPI_Op op,
                       struct comm *comm, const struct mode *mode)
{
    OPEN(comm, mode->function);
    coll.call = CALL_REDUCE_SCATTER;
    MPI_Count total = 0;
    if (numbers_null(counts)) CHECK(MPI_ERR_ARG);
    const struct group *members =
        comm->remote ? comm_members(comm) : coll.called;
    coll.reduction.split =
        calloc((size_t)members->size, sizeof *coll.reduction.split);
    if (!coll.reduction.split) CHECK(MPI_ERR_NO_MEM);
    for (int i = 0; i < members->size; i++) {
        MPI_Count count = numbers_at(counts, i);
        if (count < 0) CHECK(MPI_ERR_COUNT);
        if (i == members->rank) {
            coll.reduction.keep_first = total;
            coll.reduction.keep_count = count;
        }
        total += count;
        coll.reduction.split[i] = (uint64_t)count;
    }
    coll.reduction.keep = coll.reduction.keep_count > 0;
    coll.reduction.everyone = true;
    return reduction(&coll, sendbuf, recvbuf, total, type, op, mode);
}

int mpi_Reduce_scatter_block(const void *sendbuf, void *recvbuf,
                             MPI_Count count, MPI_Datatype type, MPI_Op op,
                             struct comm *comm, const struct mode *mode)
{
    OPEN(comm, mode->function);
    coll.call = CALL_REDUCE_SCATTER_BLOCK;
    if (count < 0) CHECK(MPI_ERR_COUNT);
    const struct group *members = comm_members(comm);
    coll.reduction.keep = count > 0;
    coll.reduction.everyone = true;
    coll.reduction.keep_first = members->rank * count;
    coll.reduction.keep_count = count;
    return reduction(&coll, sendbuf, recvbuf, count * members->size, type, op,
                     mode);
}
