/* coll_move.c - gather, scatter, all-gather and all-to-all in all forms.
 *
 * A loss during a call makes the survivors repeat it (shrink). Data to send are
 * selected by the rank that a member had at the call, because the program laid
 * out its data for those ranks. Received blocks of equal size are stored in the
 * order of the survivors; blocks with individual displacements are stored at
 * the displacement given for the member. */
#include "coll_check.h"

#include <stdlib.h>

static const struct numbers none;

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

/* -------------------------------------------------------------------- gather
 */

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
    if (!fits || check_even(coll, coll->recvcount, type->extent,
                            &coll->layout.recvcounts,
                            &coll->layout.recvdispls) != MPI_SUCCESS)
        coll->unaware = true;
}

static int gather(const void *sendbuf, MPI_Count sendcount,
                  MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                  struct numbers counts, struct numbers displs,
                  MPI_Datatype recvtype, int root, MPI_Comm handle,
                  struct mode mode, const char *function)
{
    BEGIN(handle);
    coll.call = CALL_GATHER;
    CHECK(check_root(&coll, root));
    coll.step = step_exchange;
    coll.layout.describe = describe_gather;
    coll.rooted = !comm->remote;
    coll.root = root;
    bool mine = coll_is_root(&coll);
    if (root == MPI_PROC_NULL) return coll_go(&coll, mode);
    coll.sendbuf = sendbuf;
    coll.sendcount = sendcount;
    coll.recvbuf = recvbuf;
    coll.layout.even = numbers_null(counts);
    coll.in_place = sendbuf == MPI_IN_PLACE;
    if (coll.in_place && !mine) CHECK(MPI_ERR_BUFFER);
    CHECK(check_place(&coll));
    if (!coll.in_place && root != MPI_ROOT)
        CHECK(check_data(sendbuf, sendcount, sendtype, &coll.sendtype));
    if (coll.layout.even && !comm->remote) coll.to_root = gather_to_root;
    if (!mine && coll.to_root) {
        struct type *type = type_find(recvtype);
        coll.recvcount = recvcount;
        coll.recvtype = type && type->committed ? type : NULL;
    }
    if (!mine) return coll_go(&coll, mode);
    CHECK(check_data(recvbuf, coll.layout.even ? recvcount : 0, recvtype,
                     &coll.recvtype));
    MPI_Aint extent = coll.recvtype->extent;
    if (sendbuf == recvbuf && sendcount > 0 && coll.layout.even && sendbuf &&
        root != MPI_ROOT)
        CHECK(MPI_ERR_BUFFER);
    CHECK(coll.layout.even
              ? check_even(&coll, recvcount, extent, &coll.layout.recvcounts,
                           &coll.layout.recvdispls)
              : check_counts(&coll, counts, displs, extent,
                             &coll.layout.recvcounts, &coll.layout.recvdispls));
    return coll_go(&coll, mode);
}

#define GATHER_VARIANT(name, count_t, extra, mode)                             \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(const void *sendbuf, count_t sendcount,                    \
                    MPI_Datatype sendtype, void *recvbuf, count_t recvcount,   \
                    MPI_Datatype recvtype, int root, MPI_Comm comm extra)      \
    {                                                                          \
        return gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, none,  \
                      none, recvtype, root, comm, mode, __func__);             \
    }
GATHER_VARIANT(Gather, int, , NOW)
GATHER_VARIANT(Gather_c, MPI_Count, , NOW)
GATHER_VARIANT(Igather, int, REQUEST, STARTED)
GATHER_VARIANT(Gather_init, int, PREPARE, PREPARED)
GATHER_VARIANT(Igather_c, MPI_Count, REQUEST, STARTED)
GATHER_VARIANT(Gather_init_c, MPI_Count, PREPARE, PREPARED)

/* The arrays matter only at the root; elsewhere they are ignored. */
static struct numbers or_empty(struct numbers counts)
{
    static const int empty[1];
    return numbers_null(counts) ? numbers_int(empty) : counts;
}

#define GATHERV_VARIANT(name, count_t, disp_t, extra, mode)                    \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(const void *sendbuf, count_t sendcount,                    \
                    MPI_Datatype sendtype, void *recvbuf,                      \
                    const count_t counts[], const disp_t displs[],             \
                    MPI_Datatype recvtype, int root, MPI_Comm comm extra)      \
    {                                                                          \
        return gather(sendbuf, sendcount, sendtype, recvbuf, 0,                \
                      or_empty(numbers_##count_t(counts)),                     \
                      numbers_##disp_t(displs), recvtype, root, comm, mode,    \
                      __func__);                                               \
    }
GATHERV_VARIANT(Gatherv, int, int, , NOW)
GATHERV_VARIANT(Gatherv_c, MPI_Count, MPI_Aint, , NOW)
GATHERV_VARIANT(Igatherv, int, int, REQUEST, STARTED)
GATHERV_VARIANT(Gatherv_init, int, int, PREPARE, PREPARED)
GATHERV_VARIANT(Igatherv_c, MPI_Count, MPI_Aint, REQUEST, STARTED)
GATHERV_VARIANT(Gatherv_init_c, MPI_Count, MPI_Aint, PREPARE, PREPARED)

/* ------------------------------------------------------------------- scatter
 */

static int scatter(const void *sendbuf, MPI_Count sendcount,
                   struct numbers counts, struct numbers displs,
                   MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                   MPI_Datatype recvtype, int root, MPI_Comm handle,
                   struct mode mode, const char *function)
{
    BEGIN(handle);
    coll.call = CALL_SCATTER;
    CHECK(check_root(&coll, root));
    bool even = numbers_null(counts);
    coll.step = step_exchange;
    coll.layout.describe = describe_scatter;
    coll.layout.even = even;
    coll.rooted = !comm->remote;
    coll.root = root;
    bool mine = coll_is_root(&coll);
    if (root == MPI_PROC_NULL) return coll_go(&coll, mode);
    coll.sendbuf = sendbuf;
    coll.recvbuf = recvbuf;
    coll.recvcount = recvcount;
    /* in place: the root keeps its own block where it is */
    coll.in_place = recvbuf == MPI_IN_PLACE;
    if (coll.in_place && !mine) CHECK(MPI_ERR_BUFFER);
    CHECK(check_place(&coll));
    if (!coll.in_place && root != MPI_ROOT)
        CHECK(check_data(recvbuf, recvcount, recvtype, &coll.recvtype));
    if (!mine) return coll_go(&coll, mode);
    CHECK(check_data(sendbuf, even ? sendcount : 0, sendtype, &coll.sendtype));
    MPI_Aint extent = coll.sendtype->extent;
    if (sendbuf == recvbuf && sendcount > 0 && even && sendbuf &&
        root != MPI_ROOT)
        CHECK(MPI_ERR_BUFFER);
    CHECK(even
              ? check_even(&coll, sendcount, extent, &coll.layout.sendcounts,
                           &coll.layout.senddispls)
              : check_counts(&coll, counts, displs, extent,
                             &coll.layout.sendcounts, &coll.layout.senddispls));
    return coll_go(&coll, mode);
}

#define SCATTER_VARIANT(name, count_t, extra, mode)                            \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(const void *sendbuf, count_t sendcount,                    \
                    MPI_Datatype sendtype, void *recvbuf, count_t recvcount,   \
                    MPI_Datatype recvtype, int root, MPI_Comm comm extra)      \
    {                                                                          \
        return scatter(sendbuf, sendcount, none, none, sendtype, recvbuf,      \
                       recvcount, recvtype, root, comm, mode, __func__);       \
    }
SCATTER_VARIANT(Scatter, int, , NOW)
SCATTER_VARIANT(Scatter_c, MPI_Count, , NOW)
SCATTER_VARIANT(Iscatter, int, REQUEST, STARTED)
SCATTER_VARIANT(Scatter_init, int, PREPARE, PREPARED)
SCATTER_VARIANT(Iscatter_c, MPI_Count, REQUEST, STARTED)
SCATTER_VARIANT(Scatter_init_c, MPI_Count, PREPARE, PREPARED)

#define SCATTERV_VARIANT(name, count_t, disp_t, extra, mode)                   \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(const void *sendbuf, const count_t counts[],               \
                    const disp_t displs[], MPI_Datatype sendtype,              \
                    void *recvbuf, count_t recvcount, MPI_Datatype recvtype,   \
                    int root, MPI_Comm comm extra)                             \
    {                                                                          \
        return scatter(sendbuf, 0, or_empty(numbers_##count_t(counts)),        \
                       numbers_##disp_t(displs), sendtype, recvbuf, recvcount, \
                       recvtype, root, comm, mode, __func__);                  \
    }
SCATTERV_VARIANT(Scatterv, int, int, , NOW)
SCATTERV_VARIANT(Scatterv_c, MPI_Count, MPI_Aint, , NOW)
SCATTERV_VARIANT(Iscatterv, int, int, REQUEST, STARTED)
SCATTERV_VARIANT(Scatterv_init, int, int, PREPARE, PREPARED)
SCATTERV_VARIANT(Iscatterv_c, MPI_Count, MPI_Aint, REQUEST, STARTED)
SCATTERV_VARIANT(Scatterv_init_c, MPI_Count, MPI_Aint, PREPARE, PREPARED)

/* ---------------------------------------------------------------- all-gather
 */

static int allgather(const void *sendbuf, MPI_Count sendcount,
                     MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                     MPI_Datatype recvtype, MPI_Comm handle, struct mode mode,
                     const char *function)
{
    BEGIN(handle);
    coll.call = CALL_ALLGATHER;
    coll.step = step_allgather;
    coll.in_place = sendbuf == MPI_IN_PLACE;
    if (!coll.in_place)
        CHECK(check_data(sendbuf, sendcount, sendtype, &coll.sendtype));
    CHECK(check_data(recvbuf, recvcount, recvtype, &coll.recvtype));
    if (sendbuf == recvbuf && recvcount > 0 && sendbuf) CHECK(MPI_ERR_BUFFER);
    coll.sendbuf = sendbuf;
    coll.sendcount = sendcount;
    coll.recvbuf = recvbuf;
    coll.recvcount = recvcount;
    if (!comm->remote) return coll_go(&coll, mode);
    CHECK(check_place(&coll));
    coll.step = step_exchange;
    coll.layout.describe = describe_allgather;
    coll.layout.even = true;
    CHECK(check_even(&coll, recvcount, coll.recvtype->extent,
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
                         recvtype, comm, mode, __func__);                      \
    }
ALLGATHER_VARIANT(Allgather, int, , NOW)
ALLGATHER_VARIANT(Allgather_c, MPI_Count, , NOW)
ALLGATHER_VARIANT(Iallgather, int, REQUEST, STARTED)
ALLGATHER_VARIANT(Allgather_init, int, PREPARE, PREPARED)
ALLGATHER_VARIANT(Iallgather_c, MPI_Count, REQUEST, STARTED)
ALLGATHER_VARIANT(Allgather_init_c, MPI_Count, PREPARE, PREPARED)

static int allgatherv(const void *sendbuf, MPI_Count sendcount,
                      MPI_Datatype sendtype, void *recvbuf,
                      struct numbers counts, struct numbers displs,
                      MPI_Datatype recvtype, MPI_Comm handle, struct mode mode,
                      const char *function)
{
    BEGIN(handle);
    coll.call = CALL_ALLGATHER;
    coll.step = step_exchange;
    coll.layout.describe = describe_allgather;
    coll.in_place = sendbuf == MPI_IN_PLACE;
    CHECK(check_place(&coll));
    coll.sendbuf = sendbuf;
    coll.sendcount = sendcount;
    coll.recvbuf = recvbuf;
    if (!coll.in_place)
        CHECK(check_data(sendbuf, sendcount, sendtype, &coll.sendtype));
    CHECK(check_data(recvbuf, 0, recvtype, &coll.recvtype));
    CHECK(check_counts(&coll, counts, displs, coll.recvtype->extent,
                       &coll.layout.recvcounts, &coll.layout.recvdispls));
    return coll_go(&coll, mode);
}

#define ALLGATHERV_VARIANT(name, count_t, disp_t, extra, mode)                 \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(const void *sendbuf, count_t sendcount,                    \
                    MPI_Datatype sendtype, void *recvbuf,                      \
                    const count_t counts[], const disp_t displs[],             \
                    MPI_Datatype recvtype, MPI_Comm comm extra)                \
    {                                                                          \
        return allgatherv(sendbuf, sendcount, sendtype, recvbuf,               \
                          numbers_##count_t(counts), numbers_##disp_t(displs), \
                          recvtype, comm, mode, __func__);                     \
    }
ALLGATHERV_VARIANT(Allgatherv, int, int, , NOW)
ALLGATHERV_VARIANT(Allgatherv_c, MPI_Count, MPI_Aint, , NOW)
ALLGATHERV_VARIANT(Iallgatherv, int, int, REQUEST, STARTED)
ALLGATHERV_VARIANT(Allgatherv_init, int, int, PREPARE, PREPARED)
ALLGATHERV_VARIANT(Iallgatherv_c, MPI_Count, MPI_Aint, REQUEST, STARTED)
ALLGATHERV_VARIANT(Allgatherv_init_c, MPI_Count, MPI_Aint, PREPARE, PREPARED)

/* ---------------------------------------------------------------- all-to-all
 */

static int alltoall(const void *sendbuf, MPI_Count sendcount,
                    MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                    MPI_Datatype recvtype, MPI_Comm handle, struct mode mode,
                    const char *function)
{
    BEGIN(handle);
    coll.call = CALL_ALLTOALL;
    coll.step = step_exchange;
    coll.layout.describe = describe_alltoall;
    coll.layout.even = true;
    coll.in_place = sendbuf == MPI_IN_PLACE;
    CHECK(check_place(&coll));
    coll.sendbuf = sendbuf;
    coll.recvbuf = recvbuf;
    CHECK(check_data(recvbuf, recvcount, recvtype, &coll.recvtype));
    CHECK(check_even(&coll, recvcount, coll.recvtype->extent,
                     &coll.layout.recvcounts, &coll.layout.recvdispls));
    if (coll.in_place) return coll_go(&coll, mode);
    CHECK(check_data(sendbuf, sendcount, sendtype, &coll.sendtype));
    if (sendbuf == recvbuf && sendcount > 0 && sendbuf) CHECK(MPI_ERR_BUFFER);
    CHECK(check_even(&coll, sendcount, coll.sendtype->extent,
                     &coll.layout.sendcounts, &coll.layout.senddispls));
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
ALLTOALL_VARIANT(Alltoall, int, , NOW)
ALLTOALL_VARIANT(Alltoall_c, MPI_Count, , NOW)
ALLTOALL_VARIANT(Ialltoall, int, REQUEST, STARTED)
ALLTOALL_VARIANT(Alltoall_init, int, PREPARE, PREPARED)
ALLTOALL_VARIANT(Ialltoall_c, MPI_Count, REQUEST, STARTED)
ALLTOALL_VARIANT(Alltoall_init_c, MPI_Count, PREPARE, PREPARED)

static int alltoallv(const void *sendbuf, struct numbers sendcounts,
                     struct numbers senddispls, MPI_Datatype sendtype,
                     void *recvbuf, struct numbers recvcounts,
                     struct numbers recvdispls, MPI_Datatype recvtype,
                     MPI_Comm handle, struct mode mode, const char *function)
{
    BEGIN(handle);
    coll.call = CALL_ALLTOALL;
    coll.step = step_exchange;
    coll.layout.describe = describe_alltoall;
    coll.in_place = sendbuf == MPI_IN_PLACE;
    CHECK(check_place(&coll));
    coll.sendbuf = sendbuf;
    coll.recvbuf = recvbuf;
    CHECK(check_data(recvbuf, 0, recvtype, &coll.recvtype));
    CHECK(check_counts(&coll, recvcounts, recvdispls, coll.recvtype->extent,
                       &coll.layout.recvcounts, &coll.layout.recvdispls));
    if (coll.in_place) return coll_go(&coll, mode);
    CHECK(check_data(sendbuf, 0, sendtype, &coll.sendtype));
    CHECK(check_counts(&coll, sendcounts, senddispls, coll.sendtype->extent,
                       &coll.layout.sendcounts, &coll.layout.senddispls));
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
ALLTOALLV_VARIANT(Alltoallv, int, int, , NOW)
ALLTOALLV_VARIANT(Alltoallv_c, MPI_Count, MPI_Aint, , NOW)
ALLTOALLV_VARIANT(Ialltoallv, int, int, REQUEST, STARTED)
ALLTOALLV_VARIANT(Alltoallv_init, int, int, PREPARE, PREPARED)
ALLTOALLV_VARIANT(Ialltoallv_c, MPI_Count, MPI_Aint, REQUEST, STARTED)
ALLTOALLV_VARIANT(Alltoallv_init_c, MPI_Count, MPI_Aint, PREPARE, PREPARED)

/* displacements are already in bytes */
static int alltoallw(const void *sendbuf, struct numbers sendcounts,
                     struct numbers senddispls, const MPI_Datatype sendtypes[],
                     void *recvbuf, struct numbers recvcounts,
                     struct numbers recvdispls, const MPI_Datatype recvtypes[],
                     MPI_Comm handle, struct mode mode, const char *function)
{
    BEGIN(handle);
    coll.call = CALL_ALLTOALL;
    coll.step = step_exchange;
    coll.layout.describe = describe_alltoall;
    coll.in_place = sendbuf == MPI_IN_PLACE;
    CHECK(check_place(&coll));
    coll.sendbuf = sendbuf;
    coll.recvbuf = recvbuf;
    CHECK(check_types(&coll, recvtypes, &coll.layout.recvtypes));
    CHECK(check_counts(&coll, recvcounts, recvdispls, 1,
                       &coll.layout.recvcounts, &coll.layout.recvdispls));
    if (coll.in_place) return coll_go(&coll, mode);
    CHECK(check_types(&coll, sendtypes, &coll.layout.sendtypes));
    CHECK(check_counts(&coll, sendcounts, senddispls, 1,
                       &coll.layout.sendcounts, &coll.layout.senddispls));
    return coll_go(&coll, mode);
}

#define ALLTOALLW_VARIANT(name, count_t, disp_t, extra, mode)                  \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(const void *sendbuf, const count_t sendcounts[],           \
                    const disp_t senddispls[], const MPI_Datatype sendtypes[], \
                    void *recvbuf, const count_t recvcounts[],                 \
                    const disp_t recvdispls[], const MPI_Datatype recvtypes[], \
                    MPI_Comm comm extra)                                       \
    {                                                                          \
        return alltoallw(sendbuf, numbers_##count_t(sendcounts),               \
                         numbers_##disp_t(senddispls), sendtypes, recvbuf,     \
                         numbers_##count_t(recvcounts),                        \
                         numbers_##disp_t(recvdispls), recvtypes, comm, mode,  \
                         __func__);                                            \
    }
ALLTOALLW_VARIANT(Alltoallw, int, int, , NOW)
ALLTOALLW_VARIANT(Alltoallw_c, MPI_Count, MPI_Aint, , NOW)
ALLTOALLW_VARIANT(Ialltoallw, int, int, REQUEST, STARTED)
ALLTOALLW_VARIANT(Alltoallw_init, int, int, PREPARE, PREPARED)
ALLTOALLW_VARIANT(Ialltoallw_c, MPI_Count, MPI_Aint, REQUEST, STARTED)
ALLTOALLW_VARIANT(Alltoallw_init_c, MPI_Count, MPI_Aint, PREPARE, PREPARED)
