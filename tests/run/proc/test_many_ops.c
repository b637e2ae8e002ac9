/* test_many_ops.c - one operation for each tensor of a large model: a thousand
 * in flight at once, launched and awaited by each member in an order of its
 * own, also when one of them dies on the way. */
#include "cluster.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { RANKS = 4, OPS = 1000, LARGE = 40000, LARGE_EVERY = 100, LOST = 1 };

static float *in[OPS], *out[OPS];
static pcclAsyncReduceOp_t handles[OPS];

static size_t count_of(uint64_t tag)
{
    return tag % LARGE_EVERY == 7 ? LARGE : 1 + tag * 37 % 900;
}

/* Element i of a member. */
static float part(int rank, uint64_t tag, size_t i)
{
    return (float)((rank + 1) * 1000 + (int)((tag * 31 + i) % 997));
}

static void allocate(const struct seat *seat, int rank)
{
    for (uint64_t tag = 0; tag < OPS; tag++) {
        size_t count = count_of(tag);
        in[tag] = malloc(count * sizeof(float));
        out[tag] = calloc(count, sizeof(float));
        SEAT_CHECK(seat, in[tag] && out[tag]);
        for (size_t i = 0; i < count; i++) in[tag][i] = part(rank, tag, i);
    }
}

static void release(void)
{
    for (int i = 0; i < OPS; i++) {
        free(in[i]);
        free(out[i]);
    }
}

/* The tags in an order that is the member's own. */
static void shuffle(uint64_t *tags, uint64_t state)
{
    for (uint64_t i = 0; i < OPS; i++) tags[i] = i;
    for (uint64_t i = OPS - 1; i > 0; i--) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t k = (state >> 33) % (i + 1);
        uint64_t tag = tags[i];
        tags[i] = tags[k];
        tags[k] = tag;
    }
}

static void launch(const struct seat *seat, pcclComm_t *comm, uint64_t tag)
{
    pcclReduceDescriptor_t d = {.count = count_of(tag),
                                .op = pcclSum,
                                .tag = tag,
                                .src_descriptor = {pcclFloat, 0}};
    SEAT_EQUAL(seat,
               pcclAllReduceAsync(in[tag], out[tag], &d, comm, &handles[tag]),
               pcclSuccess);
}

/* The members that are in the result are the lowest ranks. */
static void check(const struct seat *seat, uint64_t tag, uint32_t world)
{
    for (size_t i = 0; i < count_of(tag); i++) {
        float sum = 0;
        for (uint32_t r = 0; r < world; r++) sum += part((int)r, tag, i);
        SEAT_EQUAL(seat, out[tag][i], sum);
    }
}

/* Awaits all in the order, and launches again what a loss ended. */
static void await_all(const struct seat *seat, pcclComm_t *comm,
                      const uint64_t *order, bool loses)
{
    bool lost[OPS] = {false};
    bool again = false;
    uint32_t least = loses ? RANKS - 1 : RANKS;
    for (int i = 0; i < OPS; i++) {
        uint64_t tag = order[i];
        pcclReduceInfo_t info = {0};
        pcclResult_t rc = pcclAwaitAsyncReduce(&handles[tag], &info);
        if (loses && rc == pcclRankConnectionLost) {
            again = lost[tag] = true;
            continue;
        }
        SEAT_EQUAL(seat, rc, pcclSuccess);
        SEAT_CHECK(seat, info.local_world_size >= least &&
                             info.local_world_size <= RANKS);
        check(seat, tag, info.local_world_size);
    }
    for (int i = 0; i < OPS && again; i++)
        if (lost[order[i]]) launch(seat, comm, order[i]);
    for (int i = OPS - 1; i >= 0 && again; i--) {
        uint64_t tag = order[i];
        if (!lost[tag]) continue;
        SEAT_EQUAL(seat, pcclAwaitAsyncReduce(&handles[tag], NULL),
                   pcclSuccess);
        check(seat, tag, RANKS - 1);
    }
    if (loses) seat_report(seat, LOST, again);
}

static void body(struct seat *seat)
{
    static uint64_t order[OPS];
    bool loses = seat->arg != NULL;
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, RANKS);
    int rank = -1;
    SEAT_EQUAL(seat, pcclGetAttribute(comm, PCCL_ATTRIBUTE_RANK, &rank),
               pcclSuccess);
    allocate(seat, rank);
    shuffle(order, (uint64_t)rank);
    for (int i = 0; i < OPS; i++) {
        launch(seat, comm, order[i]);
        if (loses && rank == RANKS - 1 && i == OPS / 2) raise(SIGKILL);
    }
    shuffle(order, (uint64_t)rank + 100);
    await_all(seat, comm, order, loses);
    SEAT_EQUAL(seat, pcclUpdateTopology(comm), pcclSuccess);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    release();
}

static void in_any_order(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start(&c, "20");
    for (int i = 0; i < RANKS; i++) cluster_add(&c, body, NULL);
    for (int i = 0; i < RANKS; i++) cluster_finish(&c, i);
    cluster_stop(&c);
}

/* Which rank the victim is, the test does not know: three report. */
static void with_a_loss(void **state)
{
    (void)state;
    static const char loses[] = "loses";
    struct cluster c;
    int victims = 0;
    cluster_start(&c, "20");
    for (int i = 0; i < RANKS; i++) cluster_add(&c, body, loses);
    for (int i = 0; i < RANKS; i++) {
        struct report r;
        ssize_t n = read(c.ranks[i].report_fd, &r, sizeof r);
        if (n == 0) {
            victims++;
            continue;
        }
        assert_int_equal(n, sizeof r);
        assert_int_equal(r.kind, LOST);
        assert_int_equal(r.value, 1);
        cluster_finish(&c, i);
    }
    assert_int_equal(victims, 1);
    cluster_stop(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_any_order),
        cmocka_unit_test(with_a_loss),
    };
    return cmocka_run_group_tests_name("proc/many_ops", tests, NULL, NULL);
}
