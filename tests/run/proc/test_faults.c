/* test_faults.c - tests of members that are killed, stopped, cut off or leave
 * in the middle of all-reduces, or lose their master. Every result is checked
 * byte by byte against the members that contributed. */
#include "vector.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WARM = 1, LOST, DONE, IDLE };
enum { GO = 1 };
enum { WARM_STEPS = 4, AFTER_STEPS = 3, FATAL_STEP = 9, NEVER = -1 };

/* How a victim ends. */
enum end { BY_PARENT, IN_FLIGHT, LEAVES };

struct stream {
    int ranks;
    uint32_t victims; /* bit per seat */
    enum end end;
    size_t count;
    bool in_place;
};

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

static bool is_victim(const struct stream *s, int seat)
{
    return s->victims >> seat & 1;
}

static int survivors(const struct stream *s)
{
    return s->ranks - __builtin_popcount(s->victims);
}

/* ------------------------------------------------------ killed in a stream */

static void be_victim(struct vector *v, const struct stream *s, int step)
{
    pcclAsyncReduceOp_t handle;
    if (s->end == IN_FLIGHT) {
        (void)vector_launch(v, step, &handle);
        (void)kill(getpid(), SIGKILL);
    }
    SEAT_EQUAL(v->seat, vector_reduce(v, step), pcclSuccess);
    SEAT_EQUAL(v->seat, pcclDestroyCommunicator(v->comm), pcclSuccess);
    exit(0);
}

/* Reduces until the victims are gone and a little longer. Reports the step of
 * each loss; a step with a loss is repeated. */
static void stream_body(struct seat *seat)
{
    const struct stream *s = seat->arg;
    pcclComm_t *comm = seat_join(seat);
    struct vector v;
    seat_gather(seat, comm, s->ranks);
    vector_open(&v, seat, comm, s->count, s->in_place);
    int left = AFTER_STEPS;
    for (int step = 0; left > 0; step++) {
        if (s->end != BY_PARENT && step == FATAL_STEP &&
            is_victim(s, seat->index))
            be_victim(&v, s, step);
        pcclResult_t rc = vector_reduce(&v, step);
        if (rc == pcclRankConnectionLost) {
            seat_report(seat, LOST, step--);
            if (world_size(comm) == 1) break;
            continue;
        }
        SEAT_EQUAL(seat, rc, pcclSuccess);
        if (step == WARM_STEPS) seat_report(seat, WARM, 0);
        if (world_size(comm) == survivors(s)) left--;
    }
    if (world_size(comm) == 1)
        SEAT_EQUAL(seat, vector_reduce(&v, 0), pcclSuccess);
    seat_report(seat, DONE, world_size(comm));
    vector_close(&v);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

/* All survivors must get the same losses at the same steps. */
static void collect(struct cluster *c, const struct stream *s, int64_t *first)
{
    int64_t steps[CLUSTER_RANKS_MAX];
    int losses = -1;
    for (int i = 0; i < s->ranks; i++) {
        if (is_victim(s, i)) continue;
        int told = 0;
        struct report r;
        for (;;) {
            if (!cluster_has_report(c, i, PATIENCE_MS))
                fail_msg("survivor %d says nothing", i);
            ssize_t n = read(c->ranks[i].report_fd, &r, sizeof r);
            if (n != sizeof r) fail_msg("survivor %d ended", i);
            if (r.kind == DONE) break;
            assert_int_equal(r.kind, LOST);
            if (losses < 0) steps[told] = r.value;
            assert_int_equal(steps[told], r.value);
            told++;
        }
        assert_int_equal(r.value, survivors(s));
        if (losses < 0) losses = told;
        assert_int_equal(losses, told);
    }
    assert_in_range(losses, 1, __builtin_popcount(s->victims));
    *first = steps[0];
}

static void run_stream(struct cluster *c, const struct stream *s)
{
    int64_t first;
    cluster_start(c, "20");
    for (int i = 0; i < s->ranks; i++) cluster_add(c, stream_body, s);
    for (int i = 0; i < s->ranks; i++) (void)cluster_await(c, i, WARM);
    for (int i = 0; s->end == BY_PARENT && i < s->ranks; i++) {
        if (is_victim(s, i)) cluster_signal(c, i, SIGKILL);
    }
    collect(c, s, &first);
    /* The leaving member had its result, so all others must have theirs. */
    if (s->end == LEAVES) assert_int_equal(first, FATAL_STEP + 1);
    /* No guarantee to the dead: its last returned operation may be repeated. */
    if (s->end == IN_FLIGHT)
        assert_in_range(first, FATAL_STEP - 1, FATAL_STEP + 1);
    for (int i = 0; i < s->ranks; i++) {
        if (!is_victim(s, i) || s->end == LEAVES) cluster_finish(c, i);
    }
    cluster_stop(c);
}

/* 8 B, 64 KiB, 4 MiB; instrumented reductions are slow. */
#ifdef __SANITIZE_THREAD__
static const size_t COUNTS[] = {2, 16384, 131072};
#else
static const size_t COUNTS[] = {2, 16384, 1048576};
#endif

/* One victim of each rank in turn, all sizes, both kinds of buffers. */
static void run_sizes(struct cluster *c, int ranks, enum end end)
{
    for (int i = 0; i < 6; i++) {
        struct stream s = {.ranks = ranks,
                           .victims = 1u << i % ranks,
                           .end = end,
                           .count = COUNTS[i / 2],
                           .in_place = i % 2 == 0};
        run_stream(c, &s);
    }
}

static void killed_in_stream(void **state)
{
    run_sizes(*state, 3, BY_PARENT);
}

static void killed_with_an_operation_in_flight(void **state)
{
    run_sizes(*state, 3, IN_FLIGHT);
}

/* In a ring of four, every victim is a neighbour of two members and not of the
 * third. */
static void killed_neighbour_and_stranger(void **state)
{
    run_sizes(*state, 4, IN_FLIGHT);
}

static void several_killed_at_once(void **state)
{
    for (int i = 0; i < 3; i++) {
        struct stream s = {.ranks = 5,
                           .victims = i == 0 ? 0x6 : 0x15,
                           .end = i == 1 ? BY_PARENT : IN_FLIGHT,
                           .count = COUNTS[i],
                           .in_place = true};
        run_stream(*state, &s);
    }
}

static void all_killed_but_one(void **state)
{
    for (int i = 0; i < 3; i++) {
        struct stream s = {.ranks = 4,
                           .victims = 0xf ^ 1u << i,
                           .end = i == 1 ? IN_FLIGHT : BY_PARENT,
                           .count = COUNTS[i],
                           .in_place = true};
        run_stream(*state, &s);
    }
}

static void left_after_an_operation(void **state)
{
    run_sizes(*state, 3, LEAVES);
    run_sizes(*state, 4, LEAVES);
}

/* ------------------------------------------------------- killed while idle */

/* The first order selects the call: a collective or an update. */
static void idle_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    struct vector v;
    seat_gather(seat, comm, 3);
    vector_open(&v, seat, comm, 1000, true);
    SEAT_EQUAL(seat, vector_reduce(&v, 0), pcclSuccess);
    seat_report(seat, IDLE, 0);
    if (seat_hear(seat) == GO) {
        SEAT_EQUAL(seat, world_size(comm), 3);
        SEAT_EQUAL(seat, vector_reduce(&v, 1), pcclRankConnectionLost);
    } else {
        SEAT_EQUAL(seat, pcclUpdateTopology(comm), pcclSuccess);
    }
    SEAT_EQUAL(seat, world_size(comm), 2);
    seat_report(seat, LOST, 0);
    (void)seat_hear(seat);
    for (int step = 1; step < 4; step++)
        SEAT_EQUAL(seat, vector_reduce(&v, step), pcclSuccess);
    vector_close(&v);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void killed_while_idle(void **state)
{
    struct cluster *c = *state;
    for (int victim = 0; victim < 3; victim++) {
        cluster_start(c, "20");
        for (int i = 0; i < 3; i++) cluster_add(c, idle_body, NULL);
        for (int i = 0; i < 3; i++) (void)cluster_await(c, i, IDLE);
        cluster_signal(c, victim, SIGKILL);
        int one = (victim + 1) % 3;
        int other = (victim + 2) % 3;
        /* Each notices it independently, however late it calls. */
        cluster_order(c, one, GO);
        (void)cluster_await(c, one, LOST);
        cluster_order(c, one, GO);
        cluster_order(c, other, GO);
        (void)cluster_await(c, other, LOST);
        cluster_order(c, other, GO);
        cluster_finish(c, one);
        cluster_finish(c, other);
        cluster_stop(c);
    }
}

static void killed_before_an_update(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    for (int i = 0; i < 3; i++) cluster_add(c, idle_body, NULL);
    for (int i = 0; i < 3; i++) (void)cluster_await(c, i, IDLE);
    cluster_signal(c, 1, SIGKILL);
    for (int i = 0; i < 3; i += 2) cluster_order(c, i, GO + 1);
    for (int i = 0; i < 3; i += 2) cluster_order(c, i, GO);
    for (int i = 0; i < 3; i += 2) (void)cluster_await(c, i, LOST);
    for (int i = 0; i < 3; i += 2) cluster_finish(c, i);
}

/* -------------------------------------------------------- connections cut */

static bool leads_to_master(const struct seat *seat, int fd)
{
    struct sockaddr_storage peer;
    socklen_t size = sizeof peer;
    if (getpeername(fd, (struct sockaddr *)&peer, &size) != 0) return true;
    in_port_t port = peer.ss_family == AF_INET6
                         ? ((struct sockaddr_in6 *)&peer)->sin6_port
                         : ((struct sockaddr_in *)&peer)->sin_port;
    return ntohs(port) == seat->port;
}

/* Shuts down every connection of this process except those to the master. */
static int cut_own_connections(const struct seat *seat)
{
    int cut = 0;
    for (int fd = 3; fd < 256; fd++)
        cut += !leads_to_master(seat, fd) && shutdown(fd, SHUT_RDWR) == 0;
    return cut;
}

/* Shuts down only one of them; returns their number. */
static int cut_one_connection(const struct seat *seat, int which)
{
    int fds[256];
    int count = 0;
    for (int fd = 3; fd < 256; fd++)
        if (!leads_to_master(seat, fd)) fds[count++] = fd;
    if (count > 0) (void)shutdown(fds[which % count], SHUT_RDWR);
    return count;
}

static uint64_t epoch_of(const pcclComm_t *comm)
{
    uint64_t epoch = 0;
    (void)pcclGetView(comm, &epoch, NULL, NULL, NULL, 0);
    return epoch;
}

static void cut_body(struct seat *seat)
{
    const struct stream *s = seat->arg;
    pcclComm_t *comm = seat_join(seat);
    struct vector v;
    seat_gather(seat, comm, s->ranks);
    vector_open(&v, seat, comm, s->count, s->in_place);
    int cut = 0;
    for (int step = 0; step < 24; step++) {
        pcclAsyncReduceOp_t handle;
        SEAT_EQUAL(seat, vector_launch(&v, step, &handle), pcclSuccess);
        if (step % 4 == seat->index || step % 4 == s->ranks)
            cut += cut_own_connections(seat);
        SEAT_EQUAL(seat, vector_await(&v, step, &handle), pcclSuccess);
        SEAT_EQUAL(seat, world_size(comm), s->ranks);
    }
    SEAT_CHECK(seat, cut >= s->ranks - 1);
    /* The program sees no change, yet there was one. */
    pcclViewChange_t change = {0};
    SEAT_EQUAL(seat, pcclGetViewChange(comm, &change), pcclSuccess);
    SEAT_CHECK(seat, change.epoch >= epoch_of(comm));
    seat_report(seat, DONE, cut);
    vector_close(&v);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void connections_cut_while_all_live(void **state)
{
    for (int i = 0; i < 3; i++) {
        struct stream s = {
            .ranks = 3, .count = COUNTS[i], .in_place = i % 2 == 0};
        struct cluster *c = *state;
        cluster_start(c, "20");
        for (int k = 0; k < s.ranks; k++) cluster_add(c, cut_body, &s);
        for (int k = 0; k < s.ranks; k++) (void)cluster_await(c, k, DONE);
        for (int k = 0; k < s.ranks; k++) cluster_finish(c, k);
        cluster_stop(c);
    }
}

enum { STRIPES = 4 };

/* Each link has several connections; one of them is cut now and then, during an
 * operation or before it. */
static void stripe_body(struct seat *seat)
{
    const struct stream *s = seat->arg;
    (void)setenv("PCCL_TRANSPORT", "tcp", 1);
    pcclComm_t *comm = seat_create_pool(seat, STRIPES);
    SEAT_EQUAL(seat, pcclConnect(comm), pcclSuccess);
    struct vector v;
    seat_gather(seat, comm, s->ranks);
    vector_open(&v, seat, comm, s->count, s->in_place);
    int most = 0;
    for (int step = 0; step < 30; step++) {
        pcclAsyncReduceOp_t handle;
        bool mine = step % 3 == seat->index;
        int had = 0;
        if (mine && step % 2 == 0) had = cut_one_connection(seat, step);
        SEAT_EQUAL(seat, vector_launch(&v, step, &handle), pcclSuccess);
        if (mine && step % 2 == 1) had = cut_one_connection(seat, step);
        if (had > most) most = had;
        SEAT_EQUAL(seat, vector_await(&v, step, &handle), pcclSuccess);
        SEAT_EQUAL(seat, world_size(comm), s->ranks);
    }
    SEAT_CHECK(seat, most >= STRIPES);
    seat_report(seat, DONE, 0);
    (void)seat_hear(seat);
    vector_close(&v);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void one_of_several_connections_cut(void **state)
{
    static const size_t counts[] = {2, 1 << 12, 1 << 20};
    for (int i = 0; i < 6; i++) {
        struct stream s = {
            .ranks = 2 + i % 2, .count = counts[i / 2], .in_place = i % 3 == 0};
        struct cluster *c = *state;
        cluster_start(c, "20");
        for (int k = 0; k < s.ranks; k++) cluster_add(c, stripe_body, &s);
        for (int k = 0; k < s.ranks; k++) (void)cluster_await(c, k, DONE);
        for (int k = 0; k < s.ranks; k++) cluster_order(c, k, GO);
        for (int k = 0; k < s.ranks; k++) cluster_finish(c, k);
        cluster_stop(c);
    }
}

/* ---------------------------------------------------------- master killed */

/* Ranks 1 and 2 reduce as far as possible without rank 0, and wait. A small
 * operation of their own behind it ensures that data have moved. */
static void begin_without_first(struct vector *v, pcclAsyncReduceOp_t *handle)
{
    pcclMember_t members[3];
    SEAT_EQUAL(v->seat, pcclGetView(v->comm, NULL, NULL, NULL, members, 3),
               pcclSuccess);
    SEAT_EQUAL(v->seat, vector_launch(v, 40, handle), pcclSuccess);
    uint64_t pair[2];
    int count = 0;
    for (int i = 0; i < 3; i++)
        if (members[i].hint != 0) pair[count++] = members[i].id;
    pcclCollective_t barrier = {.size = sizeof barrier,
                                .kind = pcclKindBarrier,
                                .tag = 8,
                                .members = pair,
                                .member_count = 2};
    for (int i = 0; i < 50; i++)
        SEAT_EQUAL(v->seat, pcclCollective(&barrier, v->comm, NULL),
                   pcclSuccess);
    seat_report(v->seat, WARM, 0);
}

static void orphan_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    struct vector v;
    bool pending = true;
    seat_gather(seat, comm, 3);
    vector_open(&v, seat, comm, 1 << 18, true);
    SEAT_EQUAL(seat, vector_reduce(&v, 0), pcclSuccess);
    seat_report(seat, IDLE, 0);
    (void)seat_hear(seat);
    for (int step = 1; step < 30; step++)
        SEAT_EQUAL(seat, vector_reduce(&v, step), pcclSuccess);
    seat_report(seat, DONE, 0);
    pcclAsyncReduceOp_t handle;
    if (seat->index > 0) begin_without_first(&v, &handle);
    (void)seat_hear(seat);
    if (seat->index == 0) /* the others cannot request a repair */
        SEAT_EQUAL(seat, pcclUpdateTopology(comm), pcclUpdateTopologyFailed);
    else
        SEAT_EQUAL(seat, vector_await(&v, 40, &handle),
                   pcclMasterConnectionFailed);
    SEAT_EQUAL(seat, pcclUpdateTopology(comm), pcclUpdateTopologyFailed);
    SEAT_EQUAL(seat, pcclArePeersPending(comm, &pending), pcclInvalidUsage);
    SEAT_CHECK(seat, pending);
    SEAT_EQUAL(seat, vector_reduce(&v, 41), pcclMasterConnectionFailed);
    vector_close(&v);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void run_orphans(struct cluster *c, int sig)
{
    cluster_start(c, "2");
    for (int i = 0; i < 3; i++) cluster_add(c, orphan_body, NULL);
    for (int i = 0; i < 3; i++) (void)cluster_await(c, i, IDLE);
    cluster_signal_master(c, sig);
    for (int i = 0; i < 3; i++) cluster_order(c, i, GO);
    for (int i = 0; i < 3; i++) (void)cluster_await(c, i, DONE);
    for (int i = 1; i < 3; i++) (void)cluster_await(c, i, WARM);
    for (int i = 0; i < 3; i++) cluster_order(c, i, GO);
    for (int i = 0; i < 3; i++) cluster_finish(c, i);
}

static void master_killed(void **state)
{
    run_orphans(*state, SIGKILL);
}

static void master_stopped(void **state)
{
    run_orphans(*state, SIGSTOP);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(killed_in_stream),
        TEST(killed_with_an_operation_in_flight),
        TEST(killed_neighbour_and_stranger),
        TEST(several_killed_at_once),
        TEST(all_killed_but_one),
        TEST(left_after_an_operation),
        TEST(killed_while_idle),
        TEST(killed_before_an_update),
        TEST(connections_cut_while_all_live),
        TEST(one_of_several_connections_cut),
        TEST(master_killed),
        TEST(master_stopped),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("proc/faults", tests, NULL, NULL);
}
