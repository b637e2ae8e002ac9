/* test_scopes.c - operations among some of the members: one tag in several
 * scopes, disagreement on a scope, and many operations at a loss. */
#include "cluster.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READY = 1, DONE };
enum { RANKS = 3, MANY_RANKS = 9, MANY = 200, LARGE = 1 << 20 };

static int start(void **state)
{
    *state = calloc(1, sizeof(struct cluster));
    return *state == NULL;
}

static int stop(void **state)
{
    cluster_stop(*state);
    free(*state);
    return 0;
}

/* By rank: the number of the seat. */
static int seats[MANY_RANKS];

static void run(struct cluster *c, int ranks, seat_body *body)
{
    cluster_start(c, "5");
    for (int i = 0; i < ranks; i++) cluster_add(c, body, NULL);
    for (int i = 0; i < ranks; i++) seats[cluster_await(c, i, READY)] = i;
    for (int i = 0; i < ranks; i++) cluster_order(c, i, 1);
}

struct place {
    pcclComm_t *comm;
    pcclMember_t members[MANY_RANKS];
    int rank, size;
    uint64_t pair[2]; /* the ids of this rank's pair: 0 and 1, 2 and 3, ... */
};

static void take_place(const struct seat *seat, struct place *p, int size)
{
    uint64_t epoch;
    p->comm = seat_join(seat);
    seat_gather(seat, p->comm, size);
    SEAT_EQUAL(seat,
               pcclGetView(p->comm, &epoch, &p->rank, &p->size, p->members,
                           MANY_RANKS),
               pcclSuccess);
    int first = p->rank / 2 * 2;
    for (int i = 0; i < 2 && first + i < p->size; i++)
        p->pair[i] = p->members[first + i].id;
    seat_report(seat, READY, p->rank);
    (void)seat_hear(seat);
}

/* The sum of ones, of the pair or of all. */
static pcclCollective_t sum_of(const struct place *p, bool pair, uint64_t tag,
                               size_t count, const float *in, float *out)
{
    return (pcclCollective_t){.size = sizeof(pcclCollective_t),
                              .kind = pcclKindAllReduce,
                              .tag = tag,
                              .sendbuf = in,
                              .recvbuf = out,
                              .count = count,
                              .datatype = pcclFloat,
                              .op = pcclSum,
                              .members = pair ? p->pair : NULL,
                              .member_count = pair ? 2 : 0};
}

static void finish_place(const struct seat *seat, struct place *p)
{
    seat_report(seat, DONE, 0);
    (void)seat_hear(seat);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(p->comm), pcclSuccess);
}

static void finish_all(struct cluster *c, int ranks)
{
    for (int i = 0; i < ranks; i++) (void)cluster_await(c, seats[i], DONE);
    for (int i = 0; i < ranks; i++) cluster_order(c, seats[i], 1);
    for (int i = 0; i < ranks; i++) cluster_finish(c, seats[i]);
}

/* ------------------------------------------------- one tag, several scopes */

static void in_turn(struct seat *seat)
{
    struct place p;
    float in[4] = {1, 1, 1, 1};
    float out[4];
    take_place(seat, &p, RANKS);
    for (int i = 0; i < 3; i++) {
        if (p.rank < 2) {
            pcclCollective_t c = sum_of(&p, true, 7, 1, in, out);
            SEAT_EQUAL(seat, pcclCollective(&c, p.comm, NULL), pcclSuccess);
            SEAT_EQUAL(seat, out[0], 2);
        }
        pcclCollective_t c = sum_of(&p, false, 7, 1, in, out);
        SEAT_EQUAL(seat, pcclCollective(&c, p.comm, NULL), pcclSuccess);
        SEAT_EQUAL(seat, out[0], 3);
    }
    finish_place(seat, &p);
}

static void test_a_tag_in_several_scopes(void **state)
{
    run(*state, RANKS, in_turn);
    finish_all(*state, RANKS);
}

/* The pair disagrees on the count; that is nothing to the third member, nor to
 * the next operation of all. */
static void disagree_in_a_pair(struct seat *seat)
{
    struct place p;
    float in[4] = {1, 1, 1, 1};
    float out[4];
    take_place(seat, &p, RANKS);
    if (p.rank < 2) {
        size_t count = 1 + (size_t)p.rank;
        pcclCollective_t c = sum_of(&p, true, 7, count, in, out);
        SEAT_EQUAL(seat, pcclCollective(&c, p.comm, NULL), pcclInvalidArgument);
    }
    pcclCollective_t c = sum_of(&p, false, 7, 1, in, out);
    SEAT_EQUAL(seat, pcclCollective(&c, p.comm, NULL), pcclSuccess);
    SEAT_EQUAL(seat, out[0], 3);
    finish_place(seat, &p);
}

static void test_an_error_stays_in_its_scope(void **state)
{
    run(*state, RANKS, disagree_in_a_pair);
    finish_all(*state, RANKS);
}

/* ---------------------------------------------------- disagreeing on a scope
 */

static void disagree(const struct seat *seat, struct place *p, int odd,
                     size_t count, float *in, float *out)
{
    pcclCollective_t c = sum_of(p, p->rank == odd, 7, count, in, out);
    SEAT_EQUAL(seat, pcclCollective(&c, p->comm, NULL), pcclInvalidArgument);
    c.kind = pcclKindBroadcast;
    c.recvbuf = out;
    c.count = count;
    SEAT_EQUAL(seat, pcclCollective(&c, p->comm, NULL), pcclInvalidArgument);
    /* Nothing of it is left. */
    c = sum_of(p, false, 7, 1, in, out);
    SEAT_EQUAL(seat, pcclCollective(&c, p->comm, NULL), pcclSuccess);
    SEAT_EQUAL(seat, out[0], RANKS);
}

static void disagree_on_scopes(struct seat *seat)
{
    struct place p;
    float *in = malloc(LARGE * sizeof *in);
    float *out = malloc(LARGE * sizeof *out);
    take_place(seat, &p, RANKS);
    SEAT_CHECK(seat, in && out);
    for (size_t i = 0; i < LARGE; i++) in[i] = 1;
    for (int odd = 0; odd < 2; odd++) {
        disagree(seat, &p, odd, 1, in, out);
        disagree(seat, &p, odd, LARGE, in, out);
    }
    free(in);
    free(out);
    finish_place(seat, &p);
}

static void test_members_disagree_on_a_scope(void **state)
{
    run(*state, RANKS, disagree_on_scopes);
    finish_all(*state, RANKS);
}

/* --------------------------------------------------------- many operations */

/* An operation with the last member fails, and tells of nothing; then the loss
 * is taken. */
static void take_loss(const struct seat *seat, const struct place *p)
{
    float in[1] = {1}, out[1];
    uint64_t ids[MANY_RANKS], mine[2];
    bool lost[MANY_RANKS];
    int size;
    for (int i = 0; i < MANY_RANKS; i++) ids[i] = p->members[i].id;
    mine[0] = ids[p->rank];
    mine[1] = ids[MANY_RANKS - 1];
    pcclCollective_t c = sum_of(p, true, MANY, 1, in, out);
    c.members = mine;
    SEAT_EQUAL(seat, pcclCollective(&c, p->comm, NULL), pcclRankConnectionLost);
    SEAT_EQUAL(seat, pcclTakeLoss(p->comm, p->pair, 2, NULL), pcclInvalidUsage);
    SEAT_EQUAL(seat, pcclGetView(p->comm, NULL, NULL, &size, NULL, 0),
               pcclSuccess);
    SEAT_EQUAL(seat, size, MANY_RANKS);
    SEAT_EQUAL(seat, pcclTakeLoss(p->comm, ids, MANY_RANKS, lost), pcclSuccess);
    for (int i = 0; i < MANY_RANKS; i++)
        SEAT_EQUAL(seat, lost[i], i == MANY_RANKS - 1);
    SEAT_EQUAL(seat, pcclGetView(p->comm, NULL, NULL, &size, NULL, 0),
               pcclSuccess);
    SEAT_EQUAL(seat, size, MANY_RANKS - 1);
}

/* Each pair has MANY operations, which only one of the two has launched when
 * the last member dies. */
static void many(struct seat *seat)
{
    struct place p;
    float in[MANY];
    float out[MANY];
    pcclAsyncReduceOp_t handles[MANY];
    take_place(seat, &p, MANY_RANKS);
    if (p.rank == MANY_RANKS - 1) pause();
    if (p.rank % 2 != 0) (void)seat_hear(seat);
    for (uint64_t i = 0; i < MANY; i++) {
        in[i] = 1;
        pcclCollective_t c = sum_of(&p, true, i, 1, &in[i], &out[i]);
        SEAT_EQUAL(seat, pcclCollectiveAsync(&c, p.comm, &handles[i]),
                   pcclSuccess);
    }
    seat_report(seat, READY, 0);
    for (uint64_t i = 0; i < MANY; i++) {
        SEAT_EQUAL(seat, pcclAwaitAsyncReduce(&handles[i], NULL), pcclSuccess);
        SEAT_EQUAL(seat, out[i], 2);
    }
    /* They are all there. One of each pair takes the loss from a scope. */
    pcclCollective_t c = sum_of(&p, false, MANY, 1, in, out);
    if (p.rank % 2 == 0)
        take_loss(seat, &p);
    else
        SEAT_EQUAL(seat, pcclCollective(&c, p.comm, NULL),
                   pcclRankConnectionLost);
    SEAT_EQUAL(seat, pcclCollective(&c, p.comm, NULL), pcclSuccess);
    SEAT_EQUAL(seat, out[0], MANY_RANKS - 1);
    finish_place(seat, &p);
}

static void test_many_operations_evict_nobody(void **state)
{
    struct cluster *c = *state;
    run(c, MANY_RANKS, many);
    for (int i = 0; i < MANY_RANKS - 1; i += 2)
        (void)cluster_await(c, seats[i], READY);
    cluster_signal(c, seats[MANY_RANKS - 1], SIGKILL);
    for (int i = 1; i < MANY_RANKS - 1; i += 2) {
        cluster_order(c, seats[i], 1);
        (void)cluster_await(c, seats[i], READY);
    }
    finish_all(c, MANY_RANKS - 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)
    const struct CMUnitTest tests[] = {
        TEST(test_a_tag_in_several_scopes),
        TEST(test_an_error_stays_in_its_scope),
        TEST(test_members_disagree_on_a_scope),
        TEST(test_many_operations_evict_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
