/* partial_rounds.c - how much of a vector is averaged per round while members
 * come, go and are late: partial all-reduces under churn.
 *
 *   pccl-master -n 6 --elastic --respawn ./partial_rounds --die 2 --late 10
 *
 * In each round a member is killed with --die percent, in the middle of the
 * round, and is late by half a deadline with --late percent. One member prints
 * a line per round: its number, the members it was for, the percentage of the
 * vector that was averaged, the mean number of contributors of that, and the
 * milliseconds that it took. Every tenth step lets newcomers in. */
#include <pccl.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EVERY = 10, PARTS = 256, MEMBERS = 1024 };

struct run {
    pcclComm_t *comm;
    uint64_t step, steps; /* step: shared */
    uint64_t revision;
    uint32_t deadline_ms;
    unsigned die, late; /* percent */
    uint64_t random;
    size_t count;
    float *vector;
};

static void well(pcclResult_t result, const char *what, const struct run *r)
{
    char why[256] = "";
    if (result == pcclSuccess) return;
    (void)pcclGetLastError(r->comm, why, sizeof why);
    fprintf(stderr, "partial_rounds: %s: %s: %s\n", what,
            pcclGetErrorString(result), why);
    exit(1);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static bool happens(struct run *r, unsigned percent)
{
    r->random = r->random * 6364136223846793005u + 1442695040888963407u;
    return (r->random >> 33) % 100 < percent;
}

static void wait_ms(uint32_t ms)
{
    struct timespec t = {.tv_sec = ms / 1000,
                         .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)nanosleep(&t, NULL);
}

/* The first contributor prints, if it lives. */
static void print_round(const pcclPartialInfo_t *info, uint64_t id, size_t all,
                        double ms)
{
    double contributions = 0;
    size_t first = info->member_count;
    for (size_t p = 0; p < info->part_count; p++)
        contributions +=
            (double)info->parts[p].count * info->parts[p].contributors;
    for (size_t m = info->member_count; m-- > 0;) {
        for (size_t p = 0; p < info->part_count; p++)
            if (info->sets[p * info->set_size + m / 8] >> m % 8 & 1) first = m;
    }
    if (first == info->member_count || info->members[first] != id) return;
    printf("%" PRIu64 ",%zu,%.1f,%.2f,%.0f\n", info->round, info->member_count,
           100. * (double)info->elements / (double)all,
           contributions / (double)info->elements, ms);
    fflush(stdout);
}

static uint64_t own_id(const struct run *r)
{
    pcclMember_t members[MEMBERS];
    int rank = 0;
    well(pcclGetView(r->comm, NULL, &rank, NULL, members, MEMBERS), "view", r);
    return members[rank].id;
}

static void average(struct run *r)
{
    static pcclPartialPart_t parts[PARTS];
    static uint64_t members[MEMBERS];
    static uint8_t sets[PARTS * MEMBERS / 8];
    pcclPartialInfo_t info = {.size = sizeof info,
                              .parts = parts,
                              .part_room = PARTS,
                              .members = members,
                              .member_room = MEMBERS,
                              .sets = sets,
                              .set_room = sizeof sets};
    pcclPartialDescriptor_t d = {.size = sizeof d,
                                 .tag = 1,
                                 .count = r->count,
                                 .datatype = pcclFloat,
                                 .op = pcclAvg,
                                 .weight = 1,
                                 .deadline_ms = r->deadline_ms};
    pcclPartialOp_t handle;
    for (size_t i = 0; i < r->count; i++) r->vector[i] = (float)(i % 7);
    if (happens(r, r->late)) wait_ms(r->deadline_ms / 2);
    double began = now_ms();
    well(pcclAllReducePartialAsync(r->vector, r->vector, &d, r->comm, &handle),
         "call", r);
    if (happens(r, r->die)) {
        wait_ms(1);
        (void)raise(SIGKILL);
    }
    pcclResult_t result = pcclAwaitPartial(&handle, &info);
    /* It has missed rounds: the next update brings it up to date. */
    if (result == pcclInvalidUsage) return;
    well(result, "round", r);
    print_round(&info, own_id(r), r->count, now_ms() - began);
}

static void share(struct run *r)
{
    pcclTensorInfo_t step = {
        .name = "step", .data = &r->step, .count = 1, .datatype = pcclUint64};
    pcclSharedState_t state = {
        .revision = r->revision, .count = 1, .infos = &step};
    well(pcclSynchronizeSharedState(
             r->comm, &state, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR,
             NULL),
         "synchronize", r);
    r->revision = state.revision + 1;
}

static bool take_options(struct run *r, int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        unsigned value = (unsigned)strtoul(argv[i + 1], NULL, 10);
        if (!strcmp(argv[i], "--die"))
            r->die = value;
        else if (!strcmp(argv[i], "--late"))
            r->late = value;
        else if (!strcmp(argv[i], "--rounds"))
            r->steps = value;
        else if (!strcmp(argv[i], "--deadline"))
            r->deadline_ms = value;
        else if (!strcmp(argv[i], "--elements"))
            r->count = value;
        else
            return false;
    }
    return argc % 2 == 1;
}

int main(int argc, char **argv)
{
    struct run r = {.steps = 50, .deadline_ms = 400, .count = 1000000};
    r.random = (uint64_t)getpid() * 0x9e3779b97f4a7c15u;
    if (!take_options(&r, argc, argv)) {
        fprintf(stderr,
                "usage: partial_rounds [--die PERCENT] [--late PERCENT] "
                "[--rounds N] [--deadline MS] [--elements N]\n");
        return 2;
    }
    r.vector = malloc((r.count + 1) * sizeof *r.vector);
    if (!r.vector) return 1;
    (void)pcclInit();
    well(pcclConnectFromEnv(NULL, &r.comm), "connect", &r);
    for (share(&r); r.step < r.steps;) {
        average(&r);
        if (++r.step % EVERY > 0) continue;
        well(pcclUpdateTopology(r.comm), "update", &r);
        share(&r);
    }
    (void)pcclDestroyCommunicator(r.comm);
    free(r.vector);
    return 0;
}
