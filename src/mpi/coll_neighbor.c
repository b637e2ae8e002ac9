/* coll_neighbor.c - neighbourhood collectives on grids and graphs.
 *
 * A process may be a neighbour several times. All its blocks travel together,
 * in the order of the sender's edges. On a graph the receiver takes them in the
 * order of its own edges. On a grid neighbours are ordered by dimension, the
 * lower one first; the block that a member sends in direction j arrives from
 * direction j ^ 1. */
#include "cart.h"
#include "coll_check.h"
#include "graph.h"

#include <stdlib.h>

/* One block to send: its address and packed size. */
static struct block send_block(const struct coll *coll, int j)
{
    struct type *type =
        coll->layout.sendtypes ? coll->layout.sendtypes[j] : coll->sendtype;
    return (struct block){(char *)(uintptr_t)coll->sendbuf +
                              coll->layout.senddispls[j],
                          coll->layout.sendcounts[j], type};
}

static struct block recv_block(const struct coll *coll, int j)
{
    struct type *type =
        coll->layout.recvtypes ? coll->layout.recvtypes[j] : coll->recvtype;
    return (struct block){(char *)coll->recvbuf + coll->layout.recvdispls[j],
                          coll->layout.recvcounts[j], type};
}

static size_t size_of(const struct block *block)
{
    return (size_t)(block->count * block->type->size);
}

static void starts(const size_t *sizes, size_t *displs, int count)
{
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        displs[i] = at;
        at += sizes[i];
    }
}

static int in_degree(const struct comm *comm)
{
    return comm->cart ? 2 * comm->cart->dims : comm->graph->in;
}

static int out_degree(const struct comm *comm)
{
    return comm->cart ? 2 * comm->cart->dims : comm->graph->out;
}

/* Destinations and sources of the edges; the same on a grid. */
static const int *dests_of(const struct coll *coll)
{
    return coll->comm->graph ? coll->comm->graph->dests : coll->stages[2];
}

static const int *sources_of(const struct coll *coll)
{
    return coll->comm->graph ? coll->comm->graph->sources : coll->stages[2];
}

/* Adds up the bytes to and from each member. */
static void count_bytes(const struct coll *coll, size_t *sends, size_t *recvs)
{
    const int *dests = dests_of(coll), *sources = sources_of(coll);
    for (int j = 0; j < out_degree(coll->comm); j++) {
        struct block send = send_block(coll, j);
        if (dests[j] != MPI_PROC_NULL) sends[dests[j]] += size_of(&send);
    }
    for (int j = 0; j < in_degree(coll->comm); j++) {
        struct block recv = recv_block(coll, j);
        if (sources[j] != MPI_PROC_NULL) recvs[sources[j]] += size_of(&recv);
    }
}

static int prepare(struct coll *coll)
{
    const struct cart *cart = coll->comm->cart;
    int n = coll->members->size;
    size_t *used = coll_stage(coll, 3, (size_t)n * sizeof *used);
    int *neighbors =
        cart ? coll_stage(coll, 2, 2 * (size_t)cart->dims * sizeof *neighbors)
             : NULL;
    coll->layout.exchange =
        calloc(4 * (size_t)n, sizeof *coll->layout.exchange);
    if ((cart && !neighbors) || !used || !coll->layout.exchange)
        return error_note(MPI_ERR_NO_MEM, "out of memory");
    if (cart) cart_neighbors(cart, coll->members->rank, neighbors);
    size_t *sends = coll->layout.exchange, *recvs = sends + 2 * n;
    count_bytes(coll, sends, recvs);
    starts(sends, sends + n, n);
    starts(recvs, recvs + n, n);
    char *out = coll_stage(coll, 0, sends[2 * n - 1] + sends[n - 1]);
    char *in = coll_stage(coll, 1, recvs[2 * n - 1] + recvs[n - 1]);
    if (!out || !in) return MPI_ERR_NO_MEM;
    const int *dests = dests_of(coll);
    for (int i = 0; i < n; i++) used[i] = sends[n + i];
    for (int j = 0; j < out_degree(coll->comm); j++) {
        if (dests[j] == MPI_PROC_NULL) continue;
        struct block send = send_block(coll, j);
        size_t size = size_of(&send);
        type_pack(send.address, send.count, send.type, 0, out + used[dests[j]],
                  (MPI_Count)size);
        used[dests[j]] += size;
    }
    coll->op.kind = pcclKindAllToAllV;
    coll->op.sendbuf = out;
    coll->op.recvbuf = in;
    coll->op.send_bytes = sends;
    coll->op.send_displs = sends + n;
    coll->op.recv_bytes = recvs;
    coll->op.recv_displs = recvs + n;
    coll_sign(coll);
    return COLL_RUN;
}

static int step_neighbors(struct coll *coll)
{
    /* the survivors of a topology with a lost member have no topology */
    if (coll->members != coll->called)
        return error_note(MPIX_ERR_PROC_FAILED,
                          "a member of the topology was lost");
    if (coll->round == 0) return prepare(coll);
    int n = coll->members->size;
    const int *sources = sources_of(coll);
    size_t *used = coll->stages[3];
    for (int i = 0; i < n; i++) used[i] = coll->layout.exchange[3 * n + i];
    for (int k = 0; k < in_degree(coll->comm); k++) {
        int j = coll->comm->cart ? k ^ 1 : k, from = sources[j];
        if (from == MPI_PROC_NULL) continue;
        struct block recv = recv_block(coll, j);
        size_t size = size_of(&recv);
        type_unpack(recv.address, recv.count, recv.type, 0,
                    (char *)coll->stages[1] + used[from], (MPI_Count)size);
        used[from] += size;
    }
    return MPI_SUCCESS;
}

/* An array has an entry per outgoing, or incoming, edge. */
static int check_sides(struct coll *coll, const struct coll_args *args,
                       char of_sends)
{
    const struct comm *comm = coll->comm;
    if (!comm->cart && !comm->graph) return MPI_ERR_TOPOLOGY;
    if (atomic_load(&comm->lost) > 0) return MPIX_ERR_PROC_FAILED;
    if (args->sendbuf == MPI_IN_PLACE || args->recvbuf == MPI_IN_PLACE)
        return MPI_ERR_BUFFER;
    coll->step = step_neighbors;
    coll->sendbuf = args->sendbuf;
    coll->recvbuf = args->recvbuf;
    coll->layout.entries = out_degree(comm);
    int result = check_send(coll, args, of_sends);
    if (result != MPI_SUCCESS) return result;
    coll->layout.entries = in_degree(comm);
    return check_recv(coll, args, args->vector);
}

/* The same block to each neighbour. */
int mpi_Neighbor_allgather(struct comm *comm, const struct coll_args *args,
                           const struct mode *mode)
{
    OPEN(comm, mode->function);
    coll.call = CALL_NEIGHBOR_ALLGATHER;
    CHECK(check_sides(&coll, args, 0));
    for (int j = 0; j < out_degree(comm); j++) coll.layout.senddispls[j] = 0;
    return coll_go(&coll, mode);
}

int mpi_Neighbor_alltoall(struct comm *comm, const struct coll_args *args,
                          const struct mode *mode)
{
    OPEN(comm, mode->function);
    coll.call = CALL_NEIGHBOR_ALLTOALL;
    CHECK(check_sides(&coll, args, args->vector));
    return coll_go(&coll, mode);
}
