/* test_prefetch.c - tests that a newcomer downloads the state of members that
 * go on, is not pending before it has, and that its synchronization moves only
 * what differs (rule S10). */
#include "cluster.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DONE = 1, RESULT, RECEIVED, REVISION, TOLD, READY };
enum { BLOCK = 65536, WEIGHTS = 5 * BLOCK + 100, BIAS = 1000 };

/* Orders to a member. */
enum { OFFER = 100, WITHDRAW, ASK_PENDING, AWAIT_PENDING, GATHER, REDUCE, END };

struct model {
    uint8_t weights[WEIGHTS], bias[BIAS], own[8];
    pcclTensorInfo_t infos[4];
    pcclSharedState_t state;
};

static void make_model(struct model *m, int fill)
{
    memset(m, fill, sizeof *m);
    const struct {
        const char *name;
        void *data;
        size_t count;
        bool free;
    } tensors[] = {{"weights", m->weights, WEIGHTS, false},
                   {"none", NULL, 0, false},
                   {"bias", m->bias, BIAS, false},
                   {"own", m->own, sizeof m->own, true}};
    for (int i = 0; i < 4; i++)
        m->infos[i] =
            (pcclTensorInfo_t){.name = tensors[i].name,
                               .data = tensors[i].data,
                               .count = tensors[i].count,
                               .datatype = pcclUint8,
                               .allow_content_inequality = tensors[i].free};
    m->state = (pcclSharedState_t){0, 4, m->infos};
}

static pcclResult_t sync_all(pcclComm_t *comm, struct model *m,
                             size_t *received)
{
    pcclSharedStateSyncInfo_t info = {0, 0};
    pcclResult_t rc = pcclSynchronizeSharedState(
        comm, &m->state, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR,
        &info);
    *received = info.rx_bytes;
    return rc;
}

static bool said(const pcclComm_t *comm, const char *part)
{
    char text[256];
    return pcclGetLastError(comm, text, sizeof text) == pcclSuccess &&
           strstr(text, part);
}

static void reduce(struct seat *seat, pcclComm_t *comm)
{
    float one = 1;
    float sum = 0;
    const pcclReduceDescriptor_t d = {
        .count = 1, .op = pcclSum, .src_descriptor.datatype = pcclFloat};
    SEAT_EQUAL(seat, pcclAllReduce(&one, &sum, &d, comm, NULL), pcclSuccess);
    SEAT_EQUAL(seat, sum, world_size(comm));
}

/* Offers, and does, what the test orders. The number of an order is the content
 * and the revision of the next offer. */
static void be_member(struct seat *seat)
{
    const int founders = *(const int *)seat->arg;
    pcclComm_t *comm = seat_join(seat);
    struct model *m = malloc(sizeof *m);
    size_t received;
    SEAT_CHECK(seat, m);
    make_model(m, 1);
    seat_gather(seat, comm, founders);
    seat_report(seat, READY, 0);
    for (;;) {
        int32_t order = seat_hear(seat);
        bool pending = false;
        if (order == END) break;
        switch (order) {
        case WITHDRAW:
            SEAT_EQUAL(seat, pcclOfferState(comm, NULL, NULL), pcclSuccess);
            break;
        case ASK_PENDING:
        case AWAIT_PENDING:
            do
                SEAT_EQUAL(seat, pcclArePeersPending(comm, &pending),
                           pcclSuccess);
            while (order == AWAIT_PENDING && !pending);
            break;
        case GATHER:
            seat_gather(seat, comm, founders + 1);
            SEAT_EQUAL(seat, sync_all(comm, m, &received), pcclSuccess);
            SEAT_EQUAL(seat, received, 0);
            break;
        case REDUCE:
            reduce(seat, comm);
            break;
        default: /* the first block changes with the revision */
            memset(m->weights, order, BLOCK);
            m->state.revision = (uint64_t)order;
            SEAT_EQUAL(seat, pcclOfferState(comm, &m->state, NULL),
                       pcclSuccess);
        }
        seat_report(seat, DONE, pending);
    }
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    free(m);
}

static void fetch(struct seat *seat, pcclComm_t *comm, struct model *m)
{
    pcclPrefetchInfo_t info = {0};
    pcclResult_t rc = pcclPrefetch(comm, &m->state, NULL, &info);
    seat_report(seat, RESULT, rc);
    seat_report(seat, RECEIVED, (int64_t)info.rx_bytes);
    seat_report(seat, REVISION, (int64_t)info.revision);
}

/* Downloads and connects, as often as it is refused for its age. */
static void be_newcomer(struct seat *seat)
{
    pcclComm_t *comm = seat_create(seat);
    struct model *m = malloc(sizeof *m);
    size_t received = 1;
    SEAT_CHECK(seat, m);
    make_model(m, 9);
    pcclResult_t rc;
    do {
        fetch(seat, comm, m);
        (void)seat_hear(seat);
        rc = pcclConnect(comm);
        seat_report(seat, RESULT, rc);
        SEAT_CHECK(seat, rc == pcclSuccess || said(comm, "download again"));
    } while (rc != pcclSuccess);
    SEAT_EQUAL(seat, m->state.revision, 0);
    SEAT_EQUAL(seat, sync_all(comm, m, &received), pcclSuccess);
    seat_report(seat, RECEIVED, (int64_t)received);
    for (int i = BLOCK; i < WEIGHTS; i++) SEAT_EQUAL(seat, m->weights[i], 1);
    SEAT_EQUAL(seat, m->bias[BIAS - 1], 1);
    SEAT_EQUAL(seat, m->own[0], 9);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    free(m);
}

/* ------------------------------------------------------------- test process */

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

static void order_all(struct cluster *c, int members, int order, int value)
{
    for (int i = 0; i < members; i++) cluster_order(c, i, order);
    for (int i = 0; i < members; i++)
        assert_int_equal(cluster_await(c, i, DONE), value);
}

static void start_members(struct cluster *c, const int *members)
{
    cluster_start(c, "3");
    for (int i = 0; i < *members; i++) (void)cluster_add(c, be_member, members);
    for (int i = 0; i < *members; i++) (void)cluster_await(c, i, READY);
}

static void end_all(struct cluster *c, int members)
{
    for (int i = 0; i < members; i++) cluster_order(c, i, END);
    for (int i = 0; i < members; i++) cluster_finish(c, i);
}

static void expect_fetch(struct cluster *c, int rank, int64_t bytes,
                         int64_t revision)
{
    assert_int_equal(cluster_await(c, rank, RESULT), pcclSuccess);
    assert_int_equal(cluster_await(c, rank, RECEIVED), bytes);
    assert_int_equal(cluster_await(c, rank, REVISION), revision);
}

/* The members reduce meanwhile; nothing is left to move. */
static void downloads_before_it_joins(void **state)
{
    const int members = 2;
    struct cluster *c = *state;
    start_members(c, &members);
    order_all(c, members, 7, 0);
    int newcomer = cluster_add(c, be_newcomer, NULL);
    order_all(c, members, REDUCE, 0);
    expect_fetch(c, newcomer, WEIGHTS + BIAS, 7);
    order_all(c, members, ASK_PENDING, 0);
    cluster_order(c, newcomer, 0);
    order_all(c, members, AWAIT_PENDING, 1);
    order_all(c, members, GATHER, 0);
    assert_int_equal(cluster_await(c, newcomer, RESULT), pcclSuccess);
    assert_int_equal(cluster_await(c, newcomer, RECEIVED), 0);
    cluster_finish(c, newcomer);
    end_all(c, members);
}

/* It waits for admission until its state is too old; then it downloads what has
 * changed. */
static void is_refused_when_it_is_too_old(void **state)
{
    const int members = 1;
    struct cluster *c = *state;
    start_members(c, &members);
    int newcomer = cluster_add(c, be_newcomer, NULL);
    order_all(c, members, 7, 0); /* it may wait for this */
    expect_fetch(c, newcomer, WEIGHTS + BIAS, 7);
    cluster_order(c, newcomer, 0);
    order_all(c, members, AWAIT_PENDING, 1);
    order_all(c, members, 8, 0);
    assert_int_equal(cluster_await(c, newcomer, RESULT),
                     pcclMasterConnectionFailed);
    order_all(c, members, ASK_PENDING, 0);
    expect_fetch(c, newcomer, BLOCK, 8);
    /* What was offered after the download, and ended, makes nobody too old; the
     * synchronization moves it. */
    order_all(c, members, 9, 0);
    order_all(c, members, WITHDRAW, 0);
    cluster_order(c, newcomer, 0);
    order_all(c, members, AWAIT_PENDING, 1);
    order_all(c, members, GATHER, 0);
    assert_int_equal(cluster_await(c, newcomer, RESULT), pcclSuccess);
    assert_int_equal(cluster_await(c, newcomer, RECEIVED), BLOCK);
    cluster_finish(c, newcomer);
    end_all(c, members);
}

static void be_misfit(struct seat *seat)
{
    pcclComm_t *comm = seat_create(seat);
    struct model *m = malloc(sizeof *m);
    SEAT_CHECK(seat, m);
    make_model(m, 9);
    m->infos[0].count--;
    SEAT_EQUAL(seat, pcclPrefetch(comm, &m->state, NULL, NULL),
               pcclInvalidArgument);
    SEAT_CHECK(seat, said(comm, "names, types or counts"));
    m->infos[0].count++;
    seat_report(seat, DONE, 0);
    (void)seat_hear(seat); /* nobody offers any more */
    SEAT_EQUAL(seat, pcclSetTimeLimit(comm, 50), pcclSuccess);
    SEAT_EQUAL(seat, pcclPrefetch(comm, &m->state, NULL, NULL), pcclTimedOut);
    SEAT_EQUAL(seat, m->weights[0], 9);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    free(m);
}

static void other_tensors_and_no_offer_are_errors(void **state)
{
    const int members = 1;
    struct cluster *c = *state;
    start_members(c, &members);
    order_all(c, members, 7, 0);
    int newcomer = cluster_add(c, be_misfit, NULL);
    (void)cluster_await(c, newcomer, DONE);
    order_all(c, members, WITHDRAW, 0);
    cluster_order(c, newcomer, 0);
    cluster_finish(c, newcomer);
    end_all(c, members);
}

static void be_founder(struct seat *seat)
{
    pcclComm_t *comm = seat_create(seat);
    struct model *m = malloc(sizeof *m);
    SEAT_CHECK(seat, m);
    make_model(m, 3);
    const pcclOfferOptions_t half = {.size = sizeof half, .round_part = 0.5};
    const pcclOfferOptions_t twice = {.size = sizeof twice, .round_part = 2};
    const pcclPrefetchOptions_t small = {.size = 1};
    SEAT_EQUAL(seat, pcclPrefetch(comm, &m->state, NULL, NULL),
               pcclNoSharedStateAvailable);
    SEAT_EQUAL(seat, pcclPrefetch(comm, &m->state, &small, NULL),
               pcclInvalidArgument);
    SEAT_EQUAL(seat, pcclOfferState(comm, &m->state, NULL), pcclInvalidUsage);
    SEAT_EQUAL(seat, pcclConnect(comm), pcclSuccess);
    SEAT_EQUAL(seat, pcclPrefetch(comm, &m->state, NULL, NULL),
               pcclInvalidUsage);
    SEAT_EQUAL(seat, pcclOfferState(comm, &m->state, &twice),
               pcclInvalidArgument);
    SEAT_EQUAL(seat, pcclOfferState(comm, &m->state, &half), pcclSuccess);
    SEAT_EQUAL(seat, pcclOfferState(comm, NULL, NULL), pcclSuccess);
    SEAT_EQUAL(seat, pcclOfferState(comm, NULL, NULL), pcclSuccess);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    free(m);
}

/* The list of masters stands in place of the address, and one after the other
 * is asked; the first is none. */
static void be_listed(struct seat *seat)
{
    pcclCommCreateParams_t params = {.master_address = cluster_address(1)};
    char list[64];
    pcclCommOptions_t options = {.size = sizeof options, .masters = list};
    struct model *m = malloc(sizeof *m);
    pcclComm_t *comm;
    SEAT_CHECK(seat, m);
    make_model(m, 9);
    SEAT_EQUAL(seat, pcclInit(), pcclSuccess);
    SEAT_EQUAL(seat, pcclCreateCommunicator(&params, &comm), pcclSuccess);
    (void)snprintf(list, sizeof list, "127.0.0.1:1,127.0.0.1:none");
    SEAT_EQUAL(seat, pcclSetOptions(comm, &options), pcclSuccess);
    SEAT_EQUAL(seat, pcclPrefetch(comm, &m->state, NULL, NULL),
               pcclInvalidArgument);
    SEAT_CHECK(seat, said(comm, "it is not host:port"));
    (void)snprintf(list, sizeof list, "127.0.0.1:1,127.0.0.1:%u", seat->port);
    SEAT_EQUAL(seat, pcclSetOptions(comm, &options), pcclSuccess);
    fetch(seat, comm, m);
    SEAT_EQUAL(seat, m->weights[0], 7);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    free(m);
}

static void all_masters_of_a_list_are_asked(void **state)
{
    const int members = 1;
    struct cluster *c = *state;
    start_members(c, &members);
    order_all(c, members, 7, 0);
    int newcomer = cluster_add(c, be_listed, NULL);
    expect_fetch(c, newcomer, WEIGHTS + BIAS, 7);
    cluster_finish(c, newcomer);
    end_all(c, members);
}

static void arguments_are_checked(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "3");
    cluster_finish(c, cluster_add(c, be_founder, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(downloads_before_it_joins, start, stop),
        cmocka_unit_test_setup_teardown(is_refused_when_it_is_too_old, start,
                                        stop),
        cmocka_unit_test_setup_teardown(other_tensors_and_no_offer_are_errors,
                                        start, stop),
        cmocka_unit_test_setup_teardown(all_masters_of_a_list_are_asked, start,
                                        stop),
        cmocka_unit_test_setup_teardown(arguments_are_checked, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
