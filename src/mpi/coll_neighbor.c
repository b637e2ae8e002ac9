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

static const struct numbers none;

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

/* Begins a function on a topology. */
static int open_topology(struct coll *coll, const void *sendbuf, void *recvbuf)
{
    const struct comm *comm = coll->comm;
    if (!comm->cart && !comm->graph) return MPI_ERR_TOPOLOGY;
    if (atomic_load(&comm->lost) > 0) return MPIX_ERR_PROC_FAILED;
    if (sendbuf == MPI_IN_PLACE || recvbuf == MPI_IN_PLACE)
        return MPI_ERR_BUFFER;
    coll->step = step_neighbors;
    coll->sendbuf = sendbuf;
    coll->recvbuf = recvbuf;
    return MPI_SUCCESS;
}

/* The next arrays to check have an entry per outgoing, or incoming, edge. */
static void side_out(struct coll *coll)
{
    coll->layout.entries = out_degree(coll->comm);
}

static void side_in(struct coll *coll)
{
    coll->layout.entries = in_degree(coll->comm);
}

/* The same block to each neighbour. */
static int allgather(const void *sendbuf, MPI_Count sendcount,
                     MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                     struct numbers counts, struct numbers displs,
                     MPI_Datatype recvtype, MPI_Comm handle, struct mode mode,
                     const char *function)
{
    BEGIN(handle);
    coll.call = CALL_NEIGHBOR_ALLGATHER;
    CHECK(open_topology(&coll, sendbuf, recvbuf));
    CHECK(check_data(sendbuf, sendcount, sendtype, &coll.sendtype));
    side_out(&coll);
    CHECK(check_even(&coll, sendcount, 0, &coll.layout.sendcounts,
                     &coll.layout.senddispls));
    side_in(&coll);
    bool even = numbers_null(counts);
    CHECK(check_data(recvbuf, even ? recvcount : 0, recvtype, &coll.recvtype));
    MPI_Aint extent = coll.recvtype->extent;
    CHECK(even
              ? check_even(&coll, recvcount, extent, &coll.layout.recvcounts,
                           &coll.layout.recvdispls)
              : check_counts(&coll, counts, displs, extent,
                             &coll.layout.recvcounts, &coll.layout.recvdispls));
    return coll_go(&coll, mode);
}

#define ALLGATHER_VARIANT(name, count_t, extra, mode)                          \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(const void *sendbuf, count_t sendcount,                    \
                    MPI_Datatype sendtype, void *recvbuf, count_t recvcount,   \
                    MPI_Datatype recvtype, MPI_Comm comm extra)                \
    {                                                                          \
        return allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount,     \
                         none, none, recvtype, comm, mode, __func__);          \
    }
ALLGATHER_VARIANT(Neighbor_allgather, int, , NOW)
ALLGATHER_VARIANT(Neighbor_allgather_c, MPI_Count, , NOW)
ALLGATHER_VARIANT(Ineighbor_allgather, int, REQUEST, STARTED)
ALLGATHER_VARIANT(Ineighbor_allgather_c, MPI_Count, REQUEST, STARTED)
ALLGATHER_VARIANT(Neighbor_allgather_init, int, PREPARE, PREPARED)
ALLGATHER_VARIANT(Neighbor_allgather_init_c, MPI_Count, PREPARE, PREPARED)

/* Without neighbours the arrays may be missing. */
static struct numbers or_empty(struct numbers counts)
{
    static const int empty[1];
    return numbers_null(counts) ? numbers_int(empty) : counts;
}

#define ALLGATHERV_VARIANT(name, count_t, disp_t, extra, mode)                 \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(const void *sendbuf, count_t sendcount,                    \
                    MPI_Datatype sendtype, void *recvbuf,                      \
                    const count_t counts[], const disp_t displs[],             \
                    MPI_Datatype recvtype, MPI_Comm comm extra)                \
    {                                                                          \
        return allgather(sendbuf, sendcount, sendtype, recvbuf, 0,             \
                         or_empty(numbers_##count_t(counts)),                  \
                         numbers_##disp_t(displs), recvtype, comm, mode,       \
                         __func__);                                            \
    }
ALLGATHERV_VARIANT(Neighbor_allgatherv, int, int, , NOW)
ALLGATHERV_VARIANT(Neighbor_allgatherv_c, MPI_Count, MPI_Aint, , NOW)
ALLGATHERV_VARIANT(Ineighbor_allgatherv, int, int, REQUEST, STARTED)
ALLGATHERV_VARIANT(Ineighbor_allgatherv_c, MPI_Count, MPI_Aint, REQUEST,
                   STARTED)
ALLGATHERV_VARIANT(Neighbor_allgatherv_init, int, int, PREPARE, PREPARED)
ALLGATHERV_VARIANT(Neighbor_allgatherv_init_c, MPI_Count, MPI_Aint, PREPARE,
                   PREPARED)

static int alltoall(const void *sendbuf, MPI_Count sendcount,
                    MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                    MPI_Datatype recvtype, MPI_Comm handle, struct mode mode,
                    const char *function)
{
    BEGIN(handle);
    coll.call = CALL_NEIGHBOR_ALLTOALL;
    CHECK(open_topology(&coll, sendbuf, recvbuf));
    CHECK(check_data(sendbuf, sendcount, sendtype, &coll.sendtype));
    CHECK(check_data(recvbuf, recvcount, recvtype, &coll.recvtype));
    side_out(&coll);
    CHECK(check_even(&coll, sendcount, coll.sendtype->extent,
                     &coll.layout.sendcounts, &coll.layout.senddispls));
    side_in(&coll);
    CHECK(check_even(&coll, recvcount, coll.recvtype->extent,
                     &coll.layout.recvcounts, &coll.layout.recvdispls));
    return coll_go(&coll, mode);
}

#define ALLTOALL_VARIANT(name, count_t, extra, mode)                           \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(const void *sendbuf, count_t sendcount,                    \
                    MPI_Datatype sendtype, void *recvbuf, count_t recvcount,   \
                    MPI_Datatype recvtype, MPI_Comm comm extra)                \
    {                                                                          \
        return alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount,      \
                        recvtype, comm, mode, __func__);                       \
    }
ALLTOALL_VARIANT(Neighbor_alltoall, int, , NOW)
ALLTOALL_VARIANT(Neighbor_alltoall_c, MPI_Count, , NOW)
ALLTOALL_VARIANT(Ineighbor_alltoall, int, REQUEST, STARTED)
ALLTOALL_VARIANT(Ineighbor_alltoall_c, MPI_Count, REQUEST, STARTED)
ALLTOALL_VARIANT(Neighbor_alltoall_init, int, PREPARE, PREPARED)
ALLTOALL_VARIANT(Neighbor_alltoall_init_c, MPI_Count, PREPARE, PREPARED)

static int alltoallv(const void *sendbuf, struct numbers sendcounts,
                     struct numbers senddispls, MPI_Datatype sendtype,
                     void *recvbuf, struct numbers recvcounts,
                     struct numbers recvdispls, MPI_Datatype recvtype,
                     MPI_Comm handle, struct mode mode, const char *function)
{
    BEGIN(handle);
    coll.call = CALL_NEIGHBOR_ALLTOALL;
    CHECK(open_topology(&coll, sendbuf, recvbuf));
    CHECK(check_data(sendbuf, 0, sendtype, &coll.sendtype));
    CHECK(check_data(recvbuf, 0, recvtype, &coll.recvtype));
    side_out(&coll);
    CHECK(check_counts(&coll, or_empty(sendcounts), senddispls,
                       coll.sendtype->extent, &coll.layout.sendcounts,
                       &coll.layout.senddispls));
    side_in(&coll);
    CHECK(check_counts(&coll, or_empty(recvcounts), recvdispls,
                       coll.recvtype->extent, &coll.layout.recvcounts,
                       &coll.layout.recvdispls));
    return coll_go(&coll, mode);
}

#define ALLTOALLV_VARIANT(name, count_t, disp_t, extra, mode)                  \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(const void *sendbuf, const count_t sendcounts[],           \
                    const disp_t senddispls[], MPI_Datatype sendtype,          \
                    void *recvbuf, const count_t recvcounts[],                 \
                    const disp_t recvdispls[], MPI_Datatype recvtype,          \
                    MPI_Comm comm extra)                                       \
    {                                                                          \
        return alltoallv(sendbuf, numbers_##count_t(sendcounts),               \
                         numbers_##disp_t(senddispls), sendtype, recvbuf,      \
                         numbers_##count_t(recvcounts),                        \
                         numbers_##disp_t(recvdispls), recvtype, comm, mode,   \
                         __func__);                                            \
    }
ALLTOALLV_VARIANT(Neighbor_alltoallv, int, int, , NOW)
ALLTOALLV_VARIANT(Neighbor_alltoallv_c, MPI_Count, MPI_Aint, , NOW)
ALLTOALLV_VARIANT(Ineighbor_alltoallv, int, int, REQUEST, STARTED)
ALLTOALLV_VARIANT(Ineighbor_alltoallv_c, MPI_Count, MPI_Aint, REQUEST, STARTED)
ALLTOALLV_VARIANT(Neighbor_alltoallv_init, int, int, PREPARE, PREPARED)
ALLTOALLV_VARIANT(Neighbor_alltoallv_init_c, MPI_Count, MPI_Aint, PREPARE,
                  PREPARED)

/* displacements are already in bytes */
static int alltoallw(const void *sendbuf, struct numbers sendcounts,
                     struct numbers senddispls, const MPI_Datatype sendtypes[],
                     void *recvbuf, struct numbers recvcounts,
                     struct numbers recvdispls, const MPI_Datatype recvtypes[],
                     MPI_Comm handle, struct mode mode, const char *function)
{
    BEGIN(handle);
    coll.call = CALL_NEIGHBOR_ALLTOALL;
    CHECK(open_topology(&coll, sendbuf, recvbuf));
    side_out(&coll);
    CHECK(check_types(&coll, sendtypes, &coll.layout.sendtypes));
    CHECK(check_counts(&coll, or_empty(sendcounts), senddispls, 1,
                       &coll.layout.sendcounts, &coll.layout.senddispls));
    side_in(&coll);
    CHECK(check_types(&coll, recvtypes, &coll.layout.recvtypes));
    CHECK(check_counts(&coll, or_empty(recvcounts), recvdispls, 1,
                       &coll.layout.recvcounts, &coll.layout.recvdispls));
    return coll_go(&coll, mode);
}

#define ALLTOALLW_VARIANT(name, count_t, extra, mode)                          \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(const void *sendbuf, const count_t sendcounts[],           \
                    const MPI_Aint senddispls[],                               \
                    const MPI_Datatype sendtypes[], void *recvbuf,             \
                    const count_t recvcounts[], const MPI_Aint recvdispls[],   \
                    const MPI_Datatype recvtypes[], MPI_Comm comm extra)       \
    {                                                                          \
        return alltoallw(sendbuf, numbers_##count_t(sendcounts),               \
                         numbers_MPI_Aint(senddispls), sendtypes, recvbuf,     \
                         numbers_##count_t(recvcounts),                        \
                         numbers_MPI_Aint(recvdispls), recvtypes, comm, mode,  \
                         __func__);                                            \
    }
ALLTOALLW_VARIANT(Neighbor_alltoallw, int, , NOW)
ALLTOALLW_VARIANT(Neighbor_alltoallw_c, MPI_Count, , NOW)
ALLTOALLW_VARIANT(Ineighbor_alltoallw, int, REQUEST, STARTED)
ALLTOALLW_VARIANT(Ineighbor_alltoallw_c, MPI_Count, REQUEST, STARTED)
ALLTOALLW_VARIANT(Neighbor_alltoallw_init, int, PREPARE, PREPARED)
ALLTOALLW_VARIANT(Neighbor_alltoallw_init_c, MPI_Count, PREPARE, PREPARED)
