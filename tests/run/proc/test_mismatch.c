/* test_mismatch.c - tests that members which disagree on any argument of a
 * collective all get pcclInvalidArgument, keep their input, and go on with the
 * same communicator (contract C4): for every argument, on both sides of every
 * border of the table of algorithms, in shared memory and over TCP.
 *
 *   test_mismatch [TEST [SECONDS]]  with SECONDS, a case in which a member says
 *                                   nothing for so long is reported, and the
 *                                   next ones run in a new cluster */
#include "../../../src/bench/borders.h"
#include "cluster.h"
#include "mismatch.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANK = 1, RESULT, SUM_COUNT = 100 };

/* The value of a report: the result, and these. */
enum { INTACT = 256, SUMS = 512, TEXT = 1024 };

static int patience_ms = PATIENCE_MS;
static bool goes_on; /* after a case that hangs */

struct job {
    const struct mismatch_list *list;
    size_t first;
};

/* ------------------------------------------------------------------ members */

struct member {
    const struct seat *seat;
    pcclComm_t *comm;
    int rank, world;
    pcclMember_t members[MISMATCH_WORLD_MAX];
    uint8_t *in, *out;
    uint64_t number; /* of the case */
};

static uint8_t content(const struct member *m)
{
    return (uint8_t)(m->number * 7 + (uint64_t)m->rank + 1);
}

static size_t input_size(const struct member *m, const struct member_call *call)
{
    size_t size = 0;
    if (call->kind == pcclKindReduceScatter)
        return call->bytes * (size_t)m->world;
    if (call->kind != pcclKindAllToAllV) return call->bytes;
    for (int r = 0; r < m->world; r++) size += call->send[r];
    return size;
}

static bool is_intact(const struct member *m, size_t size)
{
    uint8_t wrong = 0;
    for (size_t i = 0; i < size; i++) wrong |= m->in[i] ^ content(m);
    return wrong == 0;
}

static bool in_place(const struct member *m, const struct member_call *call)
{
    return call->kind == pcclKindAllReduce && m->number % 2 == 0;
}

/* All-reduces without an argument of their own go through pcclAllReduce, others
 * through pcclCollective: by turns in one call, or launched and awaited. */
static pcclResult_t reduce(const struct member *m,
                           const struct member_call *call, uint8_t *to)
{
    pcclAsyncReduceOp_t handle;
    pcclReduceDescriptor_t d = {
        .count = call->bytes / mismatch_element(call->datatype),
        .op = call->op,
        .tag = 1,
        .src_descriptor = {call->datatype, pcclDistributionNone},
        .quantization_options = {call->code, call->quantization}};
    if (m->number % 3 == 0) return pcclAllReduce(m->in, to, &d, m->comm, NULL);
    pcclResult_t rc = pcclAllReduceAsync(m->in, to, &d, m->comm, &handle);
    return rc != pcclSuccess ? rc : pcclAwaitAsyncReduce(&handle, NULL);
}

static void lay_out(const struct member *m, const size_t *sizes, size_t *displs)
{
    for (int r = 1; r < m->world; r++) displs[r] = displs[r - 1] + sizes[r - 1];
}

static pcclResult_t collective(const struct member *m,
                               const struct member_call *call, uint8_t *to)
{
    size_t send_displs[MISMATCH_WORLD_MAX] = {0};
    size_t recv_displs[MISMATCH_WORLD_MAX] = {0};
    uint64_t scope[MISMATCH_WORLD_MAX];
    pcclAsyncReduceOp_t handle;
    bool reduces =
        call->kind == pcclKindAllReduce || call->kind == pcclKindReduceScatter;
    bool sends = reduces || call->kind == pcclKindAllGather ||
                 call->kind == pcclKindAllToAllV;
    pcclCollective_t op = {
        .size = sizeof op,
        .kind = call->kind,
        .tag = 1,
        .sendbuf = sends ? m->in : NULL,
        .recvbuf = call->kind == pcclKindBroadcast ? m->in : to,
        .count = reduces ? call->bytes / mismatch_element(call->datatype)
                         : call->bytes,
        .datatype = call->datatype,
        .op = call->op,
        .root = call->root,
        .user_digest = call->user_digest,
        .send_bytes = call->send,
        .send_displs = send_displs,
        .recv_bytes = call->recv,
        .recv_displs = recv_displs,
        .members = call->scope_count > 0 ? scope : NULL,
        .member_count = (size_t)call->scope_count};
    lay_out(m, call->send, send_displs);
    lay_out(m, call->recv, recv_displs);
    for (int i = 0; i < call->scope_count; i++)
        scope[i] = m->members[call->scope[i]].id;
    if (m->number % 3 == 0) return pcclCollective(&op, m->comm, NULL);
    pcclResult_t rc = pcclCollectiveAsync(&op, m->comm, &handle);
    return rc != pcclSuccess ? rc : pcclAwaitAsyncReduce(&handle, NULL);
}

static bool sum_is_right(const struct member *m, uint64_t tag)
{
    float values[SUM_COUNT];
    pcclReduceDescriptor_t d = {
        .count = SUM_COUNT, .tag = tag, .src_descriptor = {pcclFloat, 0}};
    for (int i = 0; i < SUM_COUNT; i++) values[i] = (float)(m->rank + i);
    if (pcclAllReduce(values, values, &d, m->comm, NULL) != pcclSuccess)
        return false;
    int ranks = m->world * (m->world - 1) / 2;
    for (int i = 0; i < SUM_COUNT; i++)
        if (values[i] != (float)(ranks + m->world * i)) return false;
    return true;
}

static bool text_is_right(const struct member *m, const struct mismatch *c)
{
    uint64_t ids[MISMATCH_WORLD_MAX];
    char text[512] = "";
    for (int r = 0; r < m->world; r++) ids[r] = m->members[r].id;
    if (pcclGetLastError(m->comm, text, sizeof text) != pcclSuccess)
        return false;
    if (mismatch_text_is_right(c, m->world, ids, text)) return true;
    fprintf(stderr, "%s: rank %d says: %s\n", c->name, m->rank, text);
    return false;
}

static int64_t disagree(struct member *m, const struct mismatch *c)
{
    const struct member_call *call = &c->calls[m->rank];
    bool plain = call->kind == pcclKindAllReduce && call->scope_count == 0 &&
                 call->user_digest == 0;
    bool receives = call->kind == pcclKindBroadcast && call->root != m->rank;
    uint8_t *to = in_place(m, call) ? m->in : m->out;
    size_t size = input_size(m, call);
    memset(m->in, content(m), size);
    pcclResult_t rc = plain ? reduce(m, call, to) : collective(m, call, to);
    int64_t value = (int64_t)rc;
    if (text_is_right(m, c)) value |= TEXT;
    if (receives || is_intact(m, size)) value |= INTACT;
    if (sum_is_right(m, m->number % 2) && sum_is_right(m, 2)) value |= SUMS;
    return value;
}

static size_t size_of(const struct mismatch_list *list)
{
    size_t most = 0;
    for (size_t i = 0; i < list->count; i++)
        for (int r = 0; r < list->world; r++)
            if (list->cases[i].calls[r].bytes > most)
                most = list->cases[i].calls[r].bytes;
    return (most + 1) * (size_t)list->world;
}

static void mismatch_seat(struct seat *seat)
{
    const struct job *job = seat->arg;
    const struct mismatch_list *list = job->list;
    struct member m = {.seat = seat};
    m.in = malloc(size_of(list));
    m.out = malloc(size_of(list));
    SEAT_CHECK(seat, m.in && m.out);
    m.comm = seat_join(seat);
    seat_gather(seat, m.comm, list->world);
    SEAT_EQUAL(seat,
               pcclGetView(m.comm, NULL, &m.rank, &m.world, m.members,
                           MISMATCH_WORLD_MAX),
               pcclSuccess);
    seat_report(seat, RANK, m.rank);
    for (size_t i = job->first; i < list->count; i++) {
        m.number = i;
        seat_report(seat, RESULT, disagree(&m, &list->cases[i]));
    }
    (void)seat_hear(seat);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(m.comm), pcclSuccess);
    free(m.in);
    free(m.out);
}

/* ------------------------------------------------------------- test process */

static void describe(const struct mismatch_list *list, size_t number, int rank,
                     const char *what, int64_t value)
{
    fprintf(stderr, "%d ranks, %s, case %zu, %s: rank %d %s %lld\n",
            list->world, list->tcp ? "TCP" : "shared memory", number,
            list->cases[number].name, rank, what, (long long)value);
}

/* Returns the number of ranks that gave the right answer. Those that say
 * nothing are told after the others, which may have something to say. */
static int hear(struct cluster *c, const int *seats,
                const struct mismatch_list *list, size_t i)
{
    int right = 0;
    bool silent = false;
    for (int r = 0; r < list->world; r++) {
        if (!cluster_has_report(c, seats[r], silent ? 0 : patience_ms)) {
            describe(list, i, r, "says nothing; seconds waited:",
                     silent ? 0 : patience_ms / 1000);
            silent = true;
            continue;
        }
        int64_t value = cluster_await(c, seats[r], RESULT);
        right += value == (pcclInvalidArgument | INTACT | SUMS | TEXT);
        if ((value & 255) != pcclInvalidArgument)
            describe(list, i, r, "has result", value & 255);
        if (!(value & TEXT)) describe(list, i, r, "has a wrong text", 0);
        if (!(value & INTACT)) describe(list, i, r, "changed its input", 0);
        if (!(value & SUMS)) describe(list, i, r, "cannot go on", 0);
        silent |= !(value & SUMS);
    }
    return silent ? -1 : right;
}

/* Runs cases from `first` on in one cluster, to the end or to one after which
 * the members cannot go on. Returns the number of the next case. */
static size_t run_some(struct cluster *c, const struct mismatch_list *list,
                       size_t first, const char *deadline, size_t *wrong)
{
    const struct job job = {list, first};
    size_t i = first;
    cluster_start(c, deadline);
    for (int r = 0; r < list->world; r++)
        (void)cluster_add(c, mismatch_seat, &job);
    int seats[MISMATCH_WORLD_MAX];
    int right = 0;
    for (int r = 0; r < list->world; r++) seats[cluster_await(c, r, RANK)] = r;
    while (i < list->count && right >= 0) {
        right = hear(c, seats, list, i++);
        *wrong += right != list->world;
    }
    for (int r = 0; r < list->world && right >= 0; r++) {
        cluster_order(c, r, 1);
        cluster_finish(c, r);
    }
    cluster_stop(c);
    return i;
}

/* Returns the number of cases that went wrong. */
static size_t run(struct cluster *c, struct mismatch_list *list,
                  const char *deadline)
{
    size_t wrong = 0;
    assert_int_equal(setenv("PCCL_TRANSPORT", list->tcp ? "tcp" : "auto", 1),
                     0);
    for (size_t i = 0; i < list->count;) {
        i = run_some(c, list, i, deadline, &wrong);
        if (i < list->count && !goes_on) break;
    }
    if (wrong > 0) fprintf(stderr, "%zu cases of %zu\n", wrong, list->count);
    free(list->cases);
    return wrong;
}

static void run_every(void **state, int world, bool tcp)
{
    struct mismatch_list list;
    mismatch_every(&list, world, tcp);
    size_t wrong = run(*state, &list, "60");
    mismatch_scopes(&list, world, tcp);
    wrong += run(*state, &list, "1");
    assert_int_equal(wrong, 0);
}

static void memory_2(void **state)
{
    run_every(state, 2, false);
}

static void memory_3(void **state)
{
    run_every(state, 3, false);
}

static void memory_5(void **state)
{
    run_every(state, 5, false);
}

static void tcp_2(void **state)
{
    run_every(state, 2, true);
}

static void tcp_3(void **state)
{
    run_every(state, 3, true);
}

static void tcp_5(void **state)
{
    run_every(state, 5, true);
}

/* --------------------------------------------------------- every algorithm */

/* It fits a small request of three members. */
static bool fits(const struct algorithm *a, enum plan_coll coll, bool tcp)
{
    const struct plan_request r = {.coll = coll,
                                   .world = 3,
                                   .mesh = true,
                                   .one_host = true,
                                   .shared_memory = !tcp,
                                   .single_copy_world = 16,
                                   .count = 8,
                                   .element = 1};
    return a->colls >> coll & 1 && (!a->unfit || !a->unfit(&r));
}

static void forced(void **state)
{
    const struct algorithm *a;
    size_t wrong = 0;
    for (uint32_t i = 0; (a = algorithm_by_number(i)) != NULL; i++) {
        for (unsigned k = 0; k < 2 * COLL_COUNT; k++) {
            enum plan_coll coll = (enum plan_coll)(k / 2);
            struct mismatch_list list;
            char text[64];
            if (!fits(a, coll, k % 2)) continue;
            (void)snprintf(text, sizeof text, "%s:%s",
                           algorithm_coll_name(coll), a->name);
            assert_int_equal(setenv("PCCL_ALGORITHM", text, 1), 0);
            mismatch_few(&list, coll, 3, k % 2);
            size_t these = run(*state, &list, "60");
            if (these > 0) fprintf(stderr, "... with %s\n", text);
            wrong += these;
            assert_int_equal(unsetenv("PCCL_ALGORITHM"), 0);
        }
    }
    assert_int_equal(wrong, 0);
}

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

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(memory_2), TEST(memory_3), TEST(memory_5), TEST(tcp_2),
        TEST(tcp_3),    TEST(tcp_5),    TEST(forced)};
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    if (argc > 2) patience_ms = 1000 * atoi(argv[2]);
    goes_on = argc > 2;
    return cmocka_run_group_tests_name("proc/mismatch", tests, NULL, NULL);
}
