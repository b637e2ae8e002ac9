/* test_reduce_scatter.c - every block reaches the member that it belongs to, in
 * all types and sizes; it disagrees, fails and survives as other collectives
 * do. */
#include "cluster.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 4, COUNT = 300000, DONE = 1 };

static int32_t in[RANKS * COUNT], out[COUNT], before[RANKS * COUNT];

static int32_t part(int rank, size_t i)
{
    return (int32_t)((size_t)(rank + 1) * 1000 + i % 777);
}

static void fill(int rank)
{
    for (size_t i = 0; i < RANKS * COUNT; i++) in[i] = part(rank, i);
    memset(out, 0x55, sizeof out);
}

static pcclCollective_t scatter(size_t count)
{
    return (pcclCollective_t){.size = sizeof(pcclCollective_t),
                              .kind = pcclKindReduceScatter,
                              .tag = 3,
                              .sendbuf = in,
                              .recvbuf = out,
                              .count = count,
                              .datatype = pcclInt32,
                              .op = pcclSum};
}

/* Of members 0 to world - 1. */
static void check(const struct seat *seat, const int32_t *block, int rank,
                  int world, size_t count, pcclRedOp_t op)
{
    for (size_t i = 0; i < count; i++) {
        int64_t want = 0;
        for (int r = 0; r < world; r++) {
            int64_t x = part(r, (size_t)rank * count + i);
            if (op == pcclSum || op == pcclAvg) want += x;
            if (op == pcclMax && x > want) want = x;
            if (op == pcclMin && (r == 0 || x < want)) want = x;
        }
        if (op == pcclAvg) want /= world;
        SEAT_EQUAL(seat, block[i], want);
    }
}

static int rank_of(const struct seat *seat, const pcclComm_t *comm)
{
    int rank = -1;
    SEAT_EQUAL(seat, pcclGetAttribute(comm, PCCL_ATTRIBUTE_RANK, &rank),
               pcclSuccess);
    return rank;
}

static void sizes(const struct seat *seat, pcclComm_t *comm, int rank)
{
    static const size_t counts[] = {0, 1, 7, 1000, 40000, COUNT};
    static const pcclRedOp_t ops[] = {pcclSum, pcclAvg, pcclMax, pcclMin};
    pcclReduceInfo_t info;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        pcclCollective_t c = scatter(counts[i]);
        c.op = ops[i % 4];
        fill(rank);
        SEAT_EQUAL(seat, pcclCollective(&c, comm, &info), pcclSuccess);
        SEAT_EQUAL(seat, info.local_world_size, RANKS);
        SEAT_EQUAL(seat, info.tx_bytes,
                   (RANKS - 1) * counts[i] * sizeof(int32_t));
        check(seat, out, rank, RANKS, counts[i], c.op);
        SEAT_EQUAL(seat, in[0], part(rank, 0));
        /* In place: over the own block, and over another one. */
        c.recvbuf = in + ((size_t)(rank + (int)i % 2) % RANKS) * counts[i];
        SEAT_EQUAL(seat, pcclCollective(&c, comm, &info), pcclSuccess);
        check(seat, c.recvbuf, rank, RANKS, counts[i], c.op);
    }
}

/* Two at once; halves; a scope in another order of members. */
static void others(const struct seat *seat, pcclComm_t *comm, int rank)
{
    static uint16_t half[RANKS * 9], sum[9]; /* bfloat16 */
    pcclAsyncReduceOp_t first;
    pcclAsyncReduceOp_t second;
    pcclMember_t members[RANKS];
    pcclCollective_t c = scatter(1000);
    pcclCollective_t d = scatter(9);
    fill(rank);
    for (int i = 0; i < RANKS * 9; i++) half[i] = 0x3f80; /* 1 */
    d.sendbuf = half;
    d.recvbuf = sum;
    d.datatype = pcclBFloat16;
    d.tag = 4;
    SEAT_EQUAL(seat, pcclCollectiveAsync(&c, comm, &first), pcclSuccess);
    SEAT_EQUAL(seat, pcclCollectiveAsync(&d, comm, &second), pcclSuccess);
    SEAT_EQUAL(seat, pcclAwaitAsyncReduce(&second, NULL), pcclSuccess);
    SEAT_EQUAL(seat, pcclAwaitAsyncReduce(&first, NULL), pcclSuccess);
    check(seat, out, rank, RANKS, 1000, pcclSum);
    for (int i = 0; i < 9; i++) SEAT_EQUAL(seat, sum[i], 0x4080); /* 4 */
    SEAT_EQUAL(seat, pcclGetView(comm, NULL, NULL, NULL, members, RANKS),
               pcclSuccess);
    const uint64_t scope[] = {members[2].id, members[0].id};
    if (rank % 2) return;
    c.members = scope;
    c.member_count = 2;
    SEAT_EQUAL(seat, pcclCollective(&c, comm, NULL), pcclSuccess);
    size_t block = rank == 2 ? 0 : 1;
    for (size_t i = 0; i < 1000; i++)
        SEAT_EQUAL(seat, out[i],
                   part(0, block * 1000 + i) + part(2, block * 1000 + i));
}

static void disagree(const struct seat *seat, pcclComm_t *comm, int rank)
{
    char text[256];
    pcclCollective_t c = scatter(10);
    if (rank == 2) c.op = pcclMax;
    SEAT_EQUAL(seat, pcclCollective(&c, comm, NULL), pcclInvalidArgument);
    SEAT_EQUAL(seat, pcclGetLastError(comm, text, sizeof text), pcclSuccess);
    if (!strstr(text, "reduce-scatter") || !strstr(text, "the operator"))
        seat_fail(seat, __FILE__, __LINE__, text, 0, 0);
    c = scatter(rank == 1 ? 11 : 10);
    SEAT_EQUAL(seat, pcclCollective(&c, comm, NULL), pcclInvalidArgument);
    if (rank == 3) c.kind = pcclKindAllReduce;
    SEAT_EQUAL(seat, pcclCollective(&c, comm, NULL), pcclInvalidArgument);
    c = scatter(10);
    c.sendbuf = NULL;
    SEAT_EQUAL(seat, pcclCollective(&c, comm, NULL), pcclInvalidArgument);
    c = scatter(SIZE_MAX / 16);
    SEAT_EQUAL(seat, pcclCollective(&c, comm, NULL), pcclInvalidArgument);
    c = scatter(10);
    c.datatype = (pcclDataType_t)12;
    SEAT_EQUAL(seat, pcclCollective(&c, comm, NULL), pcclInvalidArgument);
}

/* One is lost: nothing was touched; the others repeat it until one is left. */
static void lose(const struct seat *seat, pcclComm_t *comm, int rank)
{
    for (int world = RANKS - 1; rank < world; world--) {
        pcclCollective_t c = scatter(COUNT);
        fill(rank);
        memcpy(before, in, sizeof in);
        SEAT_EQUAL(seat, pcclCollective(&c, comm, NULL),
                   pcclRankConnectionLost);
        SEAT_CHECK(seat, memcmp(before, in, sizeof in) == 0);
        SEAT_EQUAL(seat, out[0], 0x55555555);
        SEAT_EQUAL(seat, pcclCollective(&c, comm, NULL), pcclSuccess);
        check(seat, out, rank, world, COUNT, pcclSum);
    }
    if (rank > 0) raise(SIGKILL);
}

static void body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, RANKS);
    int rank = rank_of(seat, comm);
    sizes(seat, comm, rank);
    others(seat, comm, rank);
    disagree(seat, comm, rank);
    lose(seat, comm, rank);
    /* Not awaited: it is given back with its communicator. */
    pcclAsyncReduceOp_t handle;
    pcclCollective_t c = scatter(100);
    SEAT_EQUAL(seat, pcclCollectiveAsync(&c, comm, &handle), pcclSuccess);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    seat_report(seat, DONE, 0);
}

static void test_reduce_scatter(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start(&c, "20");
    for (int i = 0; i < RANKS; i++) cluster_add(&c, body, NULL);
    int done = 0;
    for (int i = 0; i < RANKS; i++) {
        if (!cluster_has_report(&c, i, PATIENCE_MS)) fail_msg("rank %d", i);
        struct report r;
        done += read(c.ranks[i].report_fd, &r, sizeof r) == sizeof r;
    }
    assert_int_equal(done, 1);
    cluster_stop(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reduce_scatter),
    };
    return cmocka_run_group_tests_name("proc/reduce_scatter", tests, NULL,
                                       NULL);
}
