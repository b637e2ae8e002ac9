/* coll_move.c - gather, scatter, all-gather and all-to-all in all forms.
 *
 * A loss during a call makes the survivors repeat it (shrink). Data to send are
 * selected by the rank that a member had at the call, because the program laid
 * out its data for those ranks. Received blocks of equal size are stored in the
 * order of the survivors; blocks with individual displacements are stored at
 * the displacement given for the member. */
#include "coll_check.h"

#include <stdlib.h>

/* The sides of an exchange, as blocks. */

static struct block send_block(const struct coll *coll, int rank)
{
    int old = coll_old_rank(coll, rank);
    struct type *type =
        coll->layout.sendtypes ? coll->layout.sendtypes[old] : coll->sendtype;
    return (struct block){(char *)(uintptr_t)coll->sendbuf +
                              coll->layout.senddispls[old],
                          coll->layout.sendcounts[old], type};
}

static struct block recv_block(const struct coll *coll, int rank)
{
    int old = coll_old_rank(coll, rank);
    struct type *type =
        coll->layout.recvtypes ? coll->layout.recvtypes[old] : coll->recvtype;
    int place = coll->layout.even ? rank : old;
    return (struct block){(char *)coll->recvbuf +
                              coll->layout.recvdispls[place],
                          coll->layout.recvcounts[old], type};
}

static struct block whole_send(const struct coll *coll)
{
    return (struct block){(char *)(uintptr_t)coll->sendbuf, coll->sendcount,
                          coll->sendtype};
}

static struct block whole_recv(const struct coll *coll)
{
    return (struct block){coll->recvbuf, coll->recvcount, coll->recvtype};
}

/* In an intercommunicator all data go to the other group: its ranks are the
 * peers, and the operation runs among both groups. There is no in-place
 * form. */
static int peer_count(const struct coll *coll)
{
    const struct group *remote = coll->comm->remote;
    return remote ? remote->size : coll->members->size;
}

static void describe_gather(struct coll *coll, struct block *send,
                            struct block *recv)
{
    int root = coll_root_place(coll);
    bool mine = coll_is_root(coll);
    if (root >= 0 && !(mine && coll->in_place)) send[root] = whole_send(coll);
    for (int r = 0; mine && r < peer_count(coll); r++) {
        int place = coll_place(coll, r);
        if (place != root || !coll->in_place) recv[place] = recv_block(coll, r);
    }
}

static void describe_scatter(struct coll *coll, struct block *send,
                             struct block *recv)
{
    int root = coll_root_place(coll);
    bool mine = coll_is_root(coll);
    if (root >= 0 && !(mine && coll->in_place)) recv[root] = whole_recv(coll);
    for (int r = 0; mine && r < peer_count(coll); r++) {
        int place = coll_place(coll, r);
        if (place != root || !coll->in_place) send[place] = send_block(coll, r);
    }
}

static void describe_allgather(struct coll *coll, struct block *send,
                               struct block *recv)
{
    int rank = coll->members->rank;
    for (int r = 0; r < peer_count(coll); r++) {
        int place = coll_place(coll, r);
        if (place == rank && coll->in_place) continue;
        send[place] =
            coll->in_place ? recv_block(coll, rank) : whole_send(coll);
        recv[place] = recv_block(coll, r);
    }
}

static void describe_alltoall(struct coll *coll, struct block *send,
                              struct block *recv)
{
    for (int r = 0; r < peer_count(coll); r++) {
        int place = coll_place(coll, r);
        recv[place] = recv_block(coll, r);
        if (!coll->in_place) {
            send[place] = send_block(coll, r);
            continue;
        }
        int old = coll_old_rank(coll, r);
        send[place] = recv[place];
        send[place].address =
            (char *)coll->recvbuf + coll->layout.recvdispls[old];
    }
}

static int check_place(const struct coll *coll)
{
    return coll->in_place && coll->comm->remote ? MPI_ERR_BUFFER : MPI_SUCCESS;
}

/* Buffers of a call with blocks of equal size must not be the same. */
static int check_apart(const struct coll_args *args, MPI_Count count)
{
    bool same = args->sendbuf == args->recvbuf && args->sendbuf;
    return same && count > 0 && !args->vector ? MPI_ERR_BUFFER : MPI_SUCCESS;
}

/* The arguments of the receiving side are significant only at the root. If
 * they do not fit here, the call fails on all members. */
static void gather_to_root(struct coll *coll)
{
    const struct type *type = coll->recvtype;
    if (coll->layout.recvcounts) return;
    bool fits =
        type && coll->recvbuf && coll->recvbuf != MPI_IN_PLACE &&
        coll->recvbuf != coll->sendbuf &&
        coll->recvcount * type->size == coll->sendcount * coll->sendtype->size;
    const struct coll_args args = {.recvbuf = coll->recvbuf,
                                   .recvcount = coll->recvcount,
                                   .recvtype = fits ? type->object.handle
                                                    : MPI_DATATYPE_NULL};
    if (!fits || check_recv(coll, &args, 0) != MPI_SUCCESS)
        coll->unaware = true;
}

int mpi_Gather(struct comm *comm, const struct coll_args *args,
               const struct mode *mode)
{
    OPEN(comm, mode->function);
    coll.call = CALL_GATHER;
    CHECK(check_root(&coll, args->root));
    coll.step = step_exchange;
    coll.layout.describe = describe_gather;
    coll.rooted = !comm->remote;
    coll.root = args->root;
    bool mine = coll_is_root(&coll);
    if (args->root == MPI_PROC_NULL) return coll_go(&coll, mode);
    coll.sendbuf = args->sendbuf;
    coll.sendcount = args->sendcount;
    coll.recvbuf = args->recvbuf;
    coll.layout.even = !args->vector;
    coll.in_place = args->sendbuf == MPI_IN_PLACE;
    if (coll.in_place && !mine) CHECK(MPI_ERR_BUFFER);
    CHECK(check_place(&coll));
    if (!coll.in_place && args->root != MPI_ROOT)
        CHECK(check_data(args->sendbuf, args->sendcount, args->sendtype,
                         &coll.sendtype));
    if (coll.layout.even && !comm->remote) coll.to_root = gather_to_root;
    if (!mine && coll.to_root) {
        struct type *type = type_find(args->recvtype);
        coll.recvcount = args->recvcount;
        coll.recvtype = type && type->committed ? type : NULL;
    }
    if (!mine) return coll_go(&coll, mode);
    CHECK(check_recv(&coll, args, args->vector));
    if (args->root != MPI_ROOT) CHECK(check_apart(args, args->sendcount));
    return coll_go(&coll, mode);
}

int mpi_Scatter(struct comm *comm, const struct coll_args *args,
                const struct mode *mode)
{
    OPEN(comm, mode->function);
    coll.call = CALL_SCATTER;
    CHECK(check_root(&coll, args->root));
    coll.step = step_exchange;
    coll.layout.describe = describe_scatter;
    coll.layout.even = !args->vector;
    coll.rooted = !comm->remote;
    coll.root = args->root;
    bool mine = coll_is_root(&coll);
    if (args->root == MPI_PROC_NULL) return coll_go(&coll, mode);
    coll.sendbuf = args->sendbuf;
    coll.recvbuf = args->recvbuf;
    coll.recvcount = args->recvcount;
    /* in place: the root keeps its own block where it is */
    coll.in_place = args->recvbuf == MPI_IN_PLACE;
    if (coll.in_place && !mine) CHECK(MPI_ERR_BUFFER);
    CHECK(check_place(&coll));
    if (!coll.in_place && args->root != MPI_ROOT)
        CHECK(check_data(args->recvbuf, args->recvcount, args->recvtype,
                         &coll.recvtype));
    if (!mine) return coll_go(&coll, mode);
    CHECK(check_send(&coll, args, args->vector));
    if (args->root != MPI_ROOT) CHECK(check_apart(args, args->sendcount));
    return coll_go(&coll, mode);
}

int mpi_Allgather(struct comm *comm, const struct coll_args *args,
                  const struct mode *mode)
{
    OPEN(comm, mode->function);
    coll.call = CALL_ALLGATHER;
    bool equal = !args->vector && !comm->remote;
    coll.step = equal ? step_allgather : step_exchange;
    coll.layout.describe = describe_allgather;
    coll.layout.even = !args->vector;
    coll.in_place = args->sendbuf == MPI_IN_PLACE;
    CHECK(check_place(&coll));
    if (!coll.in_place)
        CHECK(check_data(args->sendbuf, args->sendcount, args->sendtype,
                         &coll.sendtype));
    CHECK(equal ? check_data(args->recvbuf, args->recvcount, args->recvtype,
                             &coll.recvtype)
                : check_recv(&coll, args, args->vector));
    CHECK(check_apart(args, args->recvcount));
    coll.sendbuf = args->sendbuf;
    coll.sendcount = args->sendcount;
    coll.recvbuf = args->recvbuf;
    coll.recvcount = args->recvcount;
    return coll_go(&coll, mode);
}

int mpi_Alltoall(struct comm *comm, const struct coll_args *args,
                 const struct mode *mode)
{
    OPEN(comm, mode->function);
    coll.call = CALL_ALLTOALL;
    coll.step = step_exchange;
    coll.layout.describe = describe_alltoall;
    coll.layout.even = !args->vector;
    coll.in_place = args->sendbuf == MPI_IN_PLACE;
    CHECK(check_place(&coll));
    coll.sendbuf = args->sendbuf;
    coll.recvbuf = args->recvbuf;
    CHECK(check_recv(&coll, args, args->vector));
    if (coll.in_place) return coll_go(&coll, mode);
    CHECK(check_send(&coll, args, args->vector));
    CHECK(check_apart(args, args->sendcount));
    return coll_go(&coll, mode);
}
