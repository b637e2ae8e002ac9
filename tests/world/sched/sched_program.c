/* sched_program.c - collectives; see sched_program.h. Each operation's data
 * tell which members contributed to it. */
#include "sched_program.h"

#include <string.h>

enum { TAG_SECOND = 1000, BATCH_MAX = 6 };

static const uint32_t counts[] = {1, 1, 1, 7, 100, 100, 1500, 9000, 40000};

static uint64_t piece(const struct sched_seat *seat, uint64_t key, size_t i)
{
    return (uint64_t)(1 + (i + key) % 4) << 8 * seat->member;
}

/* The members whose pieces are in a sum. */
static uint64_t contributors(const struct sched_seat *seat, uint64_t first,
                             uint64_t key)
{
    uint64_t found = 0;
    for (int i = 0; i < seat->run->members; i++) {
        uint64_t part = first >> 8 * i & 255;
        SCHED_CHECK(seat, part == 0 || part == 1 + key % 4);
        if (part > 0) found |= UINT64_C(1) << i;
    }
    return found;
}

static void check_sum(struct sched_seat *seat, const uint64_t *got,
                      size_t count, uint64_t key, uint32_t world)
{
    uint64_t *known = &seat->run->contributors[key % SCHED_OPS_MAX];
    uint64_t set = contributors(seat, got[0], key);
    uint64_t unit = 0;
    uint32_t size = 0;
    for (int i = 0; i < seat->run->members; i++) {
        if (!(set >> i & 1)) continue;
        unit |= UINT64_C(1) << 8 * i;
        size++;
    }
    SCHED_CHECK(seat, size == world && set >> seat->member & 1);
    for (size_t i = 0; i < count; i++)
        SCHED_CHECK(seat, got[i] == unit * (1 + (i + key) % 4));
    if (*known == 0) *known = set;
    SCHED_CHECK(seat, *known == set);
}

static uint32_t count_of(const struct sched_seat *seat, uint64_t key)
{
    return counts[sched_common(seat->run, 100 + key,
                               sizeof counts / sizeof *counts)];
}

bool sched_reduce(struct sched_seat *seat, uint64_t key, uint64_t *in,
                  uint64_t *out)
{
    size_t count = count_of(seat, key);
    bool in_place = sched_common(seat->run, 400 + key, 2) == 0;
    pcclReduceDescriptor_t d = {.count = count,
                                .op = pcclSum,
                                .tag = key,
                                .src_descriptor = {pcclUint64, 0}};
    uint64_t *to = in_place ? in : out;
    for (;;) {
        pcclReduceInfo_t info;
        for (size_t i = 0; i < count; i++) in[i] = piece(seat, key, i);
        pcclResult_t rc = pcclAllReduce(in, to, &d, seat->comm, &info);
        sched_progress();
        if (rc == pcclSuccess) {
            check_sum(seat, to, count, key, info.local_world_size);
            return true;
        }
        for (size_t i = 0; i < count; i++)
            SCHED_CHECK(seat, in[i] == piece(seat, key, i));
        if (rc == pcclTooFewPeers) return false;
        SCHED_CHECK(seat, seat->run->program->loses);
        SCHED_RESULT(seat, rc, pcclRankConnectionLost);
    }
}

static void barrier(struct sched_seat *seat, uint64_t tag)
{
    pcclCollective_t op = {
        .size = sizeof op, .kind = pcclKindBarrier, .tag = tag};
    SCHED_RESULT(seat, pcclCollective(&op, seat->comm, NULL), pcclSuccess);
    sched_progress();
}

static void broadcast(struct sched_seat *seat, uint64_t key)
{
    int rank;
    int world = sched_world(seat, &rank);
    uint32_t count = count_of(seat, key);
    pcclCollective_t op = {.size = sizeof op,
                           .kind = pcclKindBroadcast,
                           .tag = key,
                           .recvbuf = seat->in,
                           .count = count * sizeof *seat->in,
                           .root = (int)(key % (uint64_t)world)};
    for (uint32_t i = 0; i < count; i++)
        seat->in[i] = rank == op.root ? key * 7 + i : 0;
    SCHED_RESULT(seat, pcclCollective(&op, seat->comm, NULL), pcclSuccess);
    sched_progress();
    for (uint32_t i = 0; i < count; i++)
        SCHED_CHECK(seat, seat->in[i] == key * 7 + i);
}

static void all_gather(struct sched_seat *seat, uint64_t key)
{
    int rank;
    uint64_t world = (uint64_t)sched_world(seat, &rank);
    uint64_t count = count_of(seat, key);
    if (count * world > 40000) count = 40000 / world;
    pcclCollective_t op = {.size = sizeof op,
                           .kind = pcclKindAllGather,
                           .tag = key,
                           .sendbuf = seat->in,
                           .recvbuf = seat->out,
                           .count = count * sizeof *seat->in};
    for (uint64_t i = 0; i < count; i++)
        seat->in[i] = key + (uint64_t)rank * count + i;
    SCHED_RESULT(seat, pcclCollective(&op, seat->comm, NULL), pcclSuccess);
    sched_progress();
    for (uint64_t i = 0; i < count * world; i++)
        SCHED_CHECK(seat, seat->out[i] == key + i);
}

void sched_collectives(struct sched_seat *seat)
{
    for (uint64_t key = 1; key <= (uint64_t)seat->run->rounds; key++) {
        switch (sched_common(seat->run, 200 + key, 6)) {
        case 0:
            barrier(seat, key);
            break;
        case 1:
            broadcast(seat, key);
            break;
        case 2:
            all_gather(seat, key);
            break;
        default:
            (void)sched_reduce(seat, key, seat->in, seat->out);
        }
    }
}

void sched_losses(struct sched_seat *seat)
{
    bool more = true;
    for (uint64_t key = 1; more && key <= (uint64_t)seat->run->rounds; key++) {
        if (sched_common(seat->run, 300 + key, 5) == 0)
            SCHED_RESULT(seat, pcclUpdateTopology(seat->comm), pcclSuccess);
        more = sched_reduce(seat, key, seat->in, seat->out);
    }
}

/* Small operations one after the other: the fast path. */
void sched_small(struct sched_seat *seat)
{
    for (uint64_t key = 1; key <= (uint64_t)seat->run->rounds; key++) {
        uint64_t tag = key % 3;
        barrier(seat, tag);
        uint64_t in = piece(seat, key, 0);
        pcclReduceDescriptor_t d = {.count = 1,
                                    .op = pcclSum,
                                    .tag = tag,
                                    .src_descriptor = {pcclUint64, 0}};
        pcclReduceInfo_t info;
        SCHED_RESULT(seat, pcclAllReduce(&in, &in, &d, seat->comm, &info),
                     pcclSuccess);
        check_sum(seat, &in, 1, key, info.local_world_size);
        sched_progress();
    }
}

/* ------------------------------------------------------------ asynchronous */

struct batch {
    pcclAsyncReduceOp_t handles[BATCH_MAX];
    uint64_t *in[BATCH_MAX];
    uint64_t key;
    uint32_t size;
};

static void start_one(struct sched_seat *seat, struct batch *b, uint32_t which)
{
    uint64_t key = b->key + which;
    size_t count = count_of(seat, key);
    if (count > 6000) count = 6000;
    pcclReduceDescriptor_t d = {.count = count,
                                .op = pcclSum,
                                .tag = key,
                                .src_descriptor = {pcclUint64, 0}};
    b->in[which] = seat->in + (size_t)which * 6000;
    for (size_t i = 0; i < count; i++) b->in[which][i] = piece(seat, key, i);
    SCHED_RESULT(seat,
                 pcclAllReduceAsync(b->in[which], b->in[which], &d, seat->comm,
                                    &b->handles[which]),
                 pcclSuccess);
    sched_progress();
}

static void finish_one(struct sched_seat *seat, struct batch *b, uint32_t which)
{
    bool done = false;
    uint64_t key = b->key + which;
    size_t count = count_of(seat, key);
    if (count > 6000) count = 6000;
    uint32_t how = (uint32_t)(sched_random() % 4);
    for (int i = 0; how == 0 && !done; i++) {
        SCHED_RESULT(seat, pcclTestAsync(&b->handles[which], &done),
                     pcclSuccess);
        if (i % 8 == 7)
            (void)sched_block(SCHED_ON_TIME, NULL,
                              sched_now() + 100 * SCHED_US);
    }
    /* A program that computes: the background thread goes on. */
    if (how == 1)
        (void)sched_block(SCHED_ON_TIME, NULL, sched_now() + 5 * SCHED_MS);
    if (how == 2)
        SCHED_RESULT(seat, pcclWaitAsync(&b->handles[which], 1000, &done),
                     pcclSuccess);
    pcclReduceInfo_t info;
    SCHED_RESULT(seat, pcclAwaitAsyncReduce(&b->handles[which], &info),
                 pcclSuccess);
    sched_progress();
    check_sum(seat, b->in[which], count, key, info.local_world_size);
}

static bool others_finished(void *user)
{
    const struct sched_seat *seat = user;
    const int *batches = seat->run->batches;
    for (int i = 0; i < seat->run->members; i++)
        if (i != seat->member && batches[i] <= batches[seat->member])
            return false;
    return true;
}

/* In each batch at most one member computes until all others have their
 * results: what it has started goes on by itself. */
void sched_asynchronous(struct sched_seat *seat)
{
    struct batch b = {.key = 1};
    for (int round = 0; round < seat->run->rounds; round++) {
        b.size = 1 + sched_common(seat->run, 500 + (uint64_t)round, BATCH_MAX);
        uint32_t first = (uint32_t)sched_random() % b.size;
        for (uint32_t i = 0; i < b.size; i++)
            start_one(seat, &b, (first + i) % b.size);
        uint32_t lazy = sched_common(seat->run, 800 + (uint64_t)round,
                                     (uint32_t)seat->run->members + 1);
        if (seat->member == (int)lazy) sched_wait(others_finished, seat);
        first = (uint32_t)sched_random() % b.size;
        for (uint32_t i = 0; i < b.size; i++)
            finish_one(seat, &b, (first + i) % b.size);
        b.key += b.size;
        seat->run->batches[seat->member]++;
    }
}

/* ----------------------------------------------------------- two threads */

static void *second(void *argument)
{
    struct sched_seat *seat = argument;
    uint64_t *in = seat->in + 8000;
    for (int round = 0; round < seat->run->rounds; round++) {
        pcclAsyncReduceOp_t handle;
        pcclReduceInfo_t info;
        uint64_t key = TAG_SECOND + (uint64_t)round;
        size_t count = count_of(seat, key) % 7000;
        pcclReduceDescriptor_t d = {.count = count,
                                    .op = pcclSum,
                                    .tag = key,
                                    .src_descriptor = {pcclUint64, 0}};
        for (size_t i = 0; i < count; i++) in[i] = piece(seat, key, i);
        if (round % 2 == 0) {
            SCHED_RESULT(seat, pcclAllReduce(in, in, &d, seat->comm, &info),
                         pcclSuccess);
        } else {
            SCHED_RESULT(seat,
                         pcclAllReduceAsync(in, in, &d, seat->comm, &handle),
                         pcclSuccess);
            SCHED_RESULT(seat, pcclAwaitAsyncReduce(&handle, &info),
                         pcclSuccess);
        }
        sched_progress();
        check_sum(seat, in, count, key, info.local_world_size);
    }
    return NULL;
}

void sched_two_threads(struct sched_seat *seat)
{
    pthread_t other;
    SCHED_CHECK(seat, pthread_create(&other, NULL, second, seat) == 0);
    for (uint64_t key = 1; key <= (uint64_t)seat->run->rounds; key++) {
        size_t count = count_of(seat, key) % 7000;
        pcclReduceInfo_t info;
        pcclReduceDescriptor_t d = {.count = count,
                                    .op = pcclSum,
                                    .tag = key,
                                    .src_descriptor = {pcclUint64, 0}};
        for (size_t i = 0; i < count; i++) seat->in[i] = piece(seat, key, i);
        SCHED_RESULT(seat,
                     pcclAllReduce(seat->in, seat->out, &d, seat->comm, &info),
                     pcclSuccess);
        sched_progress();
        check_sum(seat, seat->out, count, key, info.local_world_size);
    }
    (void)pthread_join(other, NULL);
}
