/* test_soak.c - a long random test: ranks reduce, synchronize and update while
 * others are killed, stopped and started at any moment.
 *
 * Goal: two members see bit-identical results of an operation, unless one of
 * them was lost in that very epoch; inputs of failed operations are intact; no
 * member hangs. Method: every rank notes outcomes in memory that it shares with
 * the test, which compares them in the end. A few seconds long; PCCL_SOAK=1
 * takes minutes. PCCL_SOAK_SEED replays a choice of faults, though not their
 * timing. */
#include "cluster.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { NOTES_MAX = 100000, ALIVE_MAX = 6, ALIVE_MIN = 3, COUNT_MAX = 400000 };
enum { TAG_STEP = 1, TAG_WORK = 2 };

struct note {
    uint64_t epoch; /* at the launch */
    uint32_t nth;   /* number of the operation in it */
    int32_t result;
    uint64_t digest; /* of the result; 0 for an error */
};

struct notes {
    uint32_t count;
    uint64_t last_epoch;
    struct note note[NOTES_MAX];
};

/* In memory shared by the test and all ranks. */
struct board {
    volatile bool over;
    struct notes notes[CLUSTER_RANKS_MAX];
};

static struct board *board;

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = a * 0x9e3779b97f4a7c15u + b;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* ------------------------------------------------------------------- ranks */

struct worker {
    const struct seat *seat;
    pcclComm_t *comm;
    uint64_t epoch;
    uint32_t nth;
    float *in, *out;
};

static uint64_t view_epoch(const pcclComm_t *comm)
{
    uint64_t epoch = 0;
    (void)pcclGetView(comm, &epoch, NULL, NULL, NULL, 0);
    return epoch;
}

static void note(struct worker *w, int32_t result, uint64_t digest)
{
    struct notes *n = &board->notes[w->seat->index];
    if (n->count == NOTES_MAX) return;
    n->note[n->count] = (struct note){w->epoch, w->nth, result, digest};
    n->last_epoch = w->epoch;
    n->count++;
}

static void begin(struct worker *w)
{
    uint64_t epoch = view_epoch(w->comm);
    w->nth = epoch == w->epoch ? w->nth + 1 : 0;
    w->epoch = epoch;
}

/* The rank was stopped for too long and is evicted. */
static _Noreturn void gone(struct worker *w)
{
    (void)pcclDestroyCommunicator(w->comm);
    exit(0);
}

static bool went_well(struct worker *w, pcclResult_t rc)
{
    if (rc == pcclMasterConnectionFailed || rc == pcclUpdateTopologyFailed)
        gone(w);
    if (rc == pcclSuccess || rc == pcclRankConnectionLost)
        return rc == pcclSuccess;
    char text[200] = "";
    (void)pcclGetLastError(w->comm, text, sizeof text);
    fprintf(stderr, "rank %d of %d, epoch %llu: result %d, %s\n",
            w->seat->index, world_size(w->comm),
            (unsigned long long)view_epoch(w->comm), (int)rc, text);
    SEAT_EQUAL(w->seat, rc, pcclSuccess);
    return false;
}

static void fill(const struct worker *w, uint64_t step, float *to, size_t count)
{
    uint64_t h = mix(step, (uint64_t)w->seat->index);
    for (size_t i = 0; i < count; i++) {
        h = h * 6364136223846793005u + 1442695040888963407u;
        to[i] = (float)(h >> 40) / 1e3f;
    }
}

static uint64_t digest_of(const float *from, size_t count)
{
    uint64_t h = count;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &from[i], 4);
        h = (h ^ bits) * 0x100000001b3u;
    }
    return h;
}

/* Alone it has no partner to reduce with. */
static bool alone(const struct worker *w)
{
    return world_size(w->comm) == 1;
}

static bool reduce(struct worker *w, uint64_t step)
{
    static const size_t counts[] = {1, 2, 1000, 16000, 100000, COUNT_MAX};
    uint64_t h = mix(step, 5);
    size_t count = counts[h % 6];
    bool in_place = h >> 8 & 1;
    float *to = in_place ? w->in : w->out;
    pcclReduceDescriptor_t d = {
        .count = count,
        .op = h >> 9 & 1 ? pcclSum : pcclAvg,
        .tag = TAG_WORK,
        .src_descriptor = {pcclFloat, pcclDistributionNone}};
    if ((h >> 10) % 4 == 0) {
        d.quantization_options.algorithm = pcclQuantMinMax;
        d.quantization_options.quantized_datatype = pcclUint8;
    }
    fill(w, step, w->in, count);
    begin(w);
    if (alone(w)) return true;
    pcclResult_t rc = pcclAllReduce(w->in, to, &d, w->comm, NULL);
    bool well = went_well(w, rc);
    note(w, (int32_t)rc, well ? digest_of(to, count) : 0);
    if (well && in_place) return true;
    uint64_t left = digest_of(w->in, count); /* contract C2 */
    fill(w, step, w->in, count);
    SEAT_CHECK(w->seat, left == digest_of(w->in, count));
    return well;
}

/* All agree on the step, and on whether it is the last. */
static bool agree(struct worker *w, uint64_t *step, bool *last)
{
    int64_t say[2] = {(int64_t)*step, board->over};
    int64_t all[2];
    pcclReduceDescriptor_t d = {
        .count = 2,
        .op = pcclMax,
        .tag = TAG_STEP,
        .src_descriptor = {pcclInt64, pcclDistributionNone}};
    begin(w);
    if (alone(w)) {
        *last = say[1];
        return true;
    }
    pcclResult_t rc = pcclAllReduce(say, all, &d, w->comm, NULL);
    bool well = went_well(w, rc);
    note(w, (int32_t)rc, well ? (uint64_t)(all[0] * 2 + all[1]) : 0);
    if (!well) return false;
    *step = (uint64_t)all[0];
    *last = all[1] > 0;
    return true;
}

static void worker_body(struct seat *seat)
{
    struct worker w = {.seat = seat,
                       .in = malloc(COUNT_MAX * sizeof(float)),
                       .out = malloc(COUNT_MAX * sizeof(float))};
    uint64_t step = 0;
    bool last = false;
    SEAT_CHECK(seat, w.in && w.out);
    w.comm = seat_create(seat);
    if (pcclConnect(w.comm) != pcclSuccess) gone(&w);
    /* An admitted member continues after the update, like the others. */
    for (bool updated = true; !last; updated = false) {
        if (updated) {
            while (!agree(&w, &step, &last)) continue;
        } else if (step % 4 == 0) {
            (void)went_well(&w, pcclUpdateTopology(w.comm));
            while (!agree(&w, &step, &last)) continue;
        }
        if (last) break;
        while (!reduce(&w, step)) continue;
        step++;
    }
    SEAT_EQUAL(seat, pcclDestroyCommunicator(w.comm), pcclSuccess);
    free(w.in);
    free(w.out);
}

/* -------------------------------------------------------------- comparison */

static void compare(const struct cluster *c, int a, int b)
{
    const struct notes *x = &board->notes[a];
    const struct notes *y = &board->notes[b];
    bool x_lives = c->ranks[a].pid != 0;
    bool y_lives = c->ranks[b].pid != 0;
    uint32_t k = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        const struct note *n = &x->note[i];
        while (k < y->count &&
               (y->note[k].epoch < n->epoch ||
                (y->note[k].epoch == n->epoch && y->note[k].nth < n->nth)))
            k++;
        if (k == y->count) return;
        const struct note *m = &y->note[k];
        if (m->epoch != n->epoch || m->nth != n->nth) continue;
        /* In the epoch of its loss a rank may have another outcome. */
        if (!x_lives && n->epoch == x->last_epoch) continue;
        if (!y_lives && n->epoch == y->last_epoch) continue;
        if (m->result != n->result || m->digest != n->digest)
            fail_msg("operation %u of epoch %llu: rank %d has %d (%llx), rank "
                     "%d has %d (%llx)",
                     n->nth, (unsigned long long)n->epoch, a, n->result,
                     (unsigned long long)n->digest, b, m->result,
                     (unsigned long long)m->digest);
    }
}

/* ------------------------------------------------------------------ faults */

static uint64_t next_random(uint64_t *seed, uint64_t limit)
{
    *seed = mix(*seed, 1);
    return (*seed >> 20) % limit;
}

static void pass_time(uint64_t us)
{
    struct timespec t = {.tv_sec = (time_t)(us / 1000000),
                         .tv_nsec = (long)(us % 1000000) * 1000};
    (void)nanosleep(&t, NULL);
}

static int pick(const struct cluster *c, uint64_t *seed)
{
    int rank;
    do rank = (int)next_random(seed, (uint64_t)c->count);
    while (c->ranks[rank].pid == 0);
    return rank;
}

/* Ranks that get no processor have done nothing yet. */
static void await_outcomes(uint32_t least)
{
    int64_t end = now_ms() + PATIENCE_MS;
    for (uint32_t total = 0; total <= least && now_ms() < end;) {
        pass_time(10000);
        total = 0;
        for (int i = 0; i < CLUSTER_RANKS_MAX; i++)
            total += *(volatile uint32_t *)&board->notes[i].count;
    }
}

static void soak(const char *transport)
{
    static struct cluster c;
    const char *text = getenv("PCCL_SOAK_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)now_ms();
    int64_t end = now_ms() + 4000;
    printf("PCCL_SOAK_SEED=%llu\n", (unsigned long long)seed);
    assert_int_equal(setenv("PCCL_TRANSPORT", transport, 1), 0);
    memset(board, 0, sizeof *board);
    cluster_start(&c, "1");
    int alive = 0;
    while (now_ms() < end && c.count < CLUSTER_RANKS_MAX) {
        if (alive < ALIVE_MIN ||
            (alive < ALIVE_MAX && next_random(&seed, 2) == 0)) {
            cluster_add(&c, worker_body, NULL);
            alive++;
        } else if (next_random(&seed, 4) == 0) {
            int rank = pick(&c, &seed);
            cluster_signal(&c, rank, SIGSTOP);
            pass_time(next_random(&seed, 400000));
            cluster_signal(&c, rank, SIGCONT);
        } else {
            cluster_signal(&c, pick(&c, &seed), SIGKILL);
            alive--;
        }
        pass_time(next_random(&seed, 3) * next_random(&seed, 60000));
    }
    await_outcomes((uint32_t)c.count);
    board->over = true;
    uint64_t total = 0;
    bool survivor[CLUSTER_RANKS_MAX];
    for (int i = 0; i < c.count; i++) {
        survivor[i] = c.ranks[i].pid != 0;
        if (survivor[i]) cluster_finish(&c, i);
        c.ranks[i].pid = survivor[i] ? -1 : 0;
        total += board->notes[i].count;
    }
    for (int a = 0; a < c.count; a++) {
        for (int b = 0; b < a; b++) compare(&c, a, b);
    }
    for (int i = 0; i < c.count; i++) c.ranks[i].pid = 0;
    printf("%d ranks, %llu outcomes\n", c.count, (unsigned long long)total);
    assert_true(total > (uint64_t)c.count);
    cluster_stop(&c);
}

static void soak_rounds(const char *transport)
{
    const char *longer = getenv("PCCL_SOAK");
    int rounds = longer && *longer ? 20 : 1;
    while (rounds-- > 0) soak(transport);
}

static void soak_auto(void **state)
{
    (void)state;
    soak_rounds("auto");
}

static void soak_tcp(void **state)
{
    (void)state;
    soak_rounds("tcp");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(soak_auto),
        cmocka_unit_test(soak_tcp),
    };
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (board == MAP_FAILED) return 1;
    return cmocka_run_group_tests_name("proc/soak", tests, NULL, NULL);
}
