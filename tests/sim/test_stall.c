/* test_stall.c - no call waits longer than one deadline for a single fault.
 *
 * Goal: contract C3, while the fault lasts, and in virtual time.
 * Method: universes without any other fault; one fault of each kind, for good.
 * The longest call of a survivor, counted from the fault, is the stall.
 * Replay: ./test_stall KIND SEED, with SIM_TRACE=1 for the events. */
#include "faults.h"
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    SEEDS = 24, /* of each kind of fault */
    WARM_STEPS = 25000,
    AFTER = 2, /* deadlines that each universe goes on after its fault */
};

/* The most that a call may take, with the own time of the simulated operations
 * and rounds, in thousandths of a deadline. */
static const struct {
    const char *name;
    uint32_t bound;
} kinds[SINGLE_COUNT] = {
    {"none", 0},     {"process", 100},  {"host", 1000},
    {"pair", 1000},  {"one way", 1000}, {"small packets", 1000},
    {"split", 1000}, {"lonely", 1000},  {"no master", 1000},
};

static struct sim_options choose(enum sim_single kind, uint64_t seed)
{
    uint32_t procs = 2 + (uint32_t)(seed % (SIM_ALIVE_MAX - 1));
    struct sim_options o = {.procs = procs,
                            .quorum = procs,
                            .groups = 1,
                            .pool = seed % 3 == 0 ? 2 : 1,
                            .pipe_min = 32768,
                            .pipe_max = 65536,
                            .delay_max = 1u << (10 + seed % 8),
                            .burst = true,
                            .sync = seed % 2 == 0 ? 2 : 0,
                            .single = kind};
    /* A scope without a link would separate the steps of its members. */
    bool pair =
        kind == SINGLE_PAIR || kind == SINGLE_ONE_WAY || kind == SINGLE_SMALL;
    o.scoped = !pair && seed % 5 == 0;
    return o;
}

static void cut(struct sim *s, uint32_t a, uint32_t b)
{
    s->cut[a][b] = s->cut[b][a] = true;
}

static void cut_control(struct sim *s, const struct sim_proc *p)
{
    for (int side = 0; side < 2; side++)
        s->streams[p->control].pipe[side].open_at = PCCL_NEVER;
}

/* Nothing passes to or from the process. */
static void lose_host(struct sim *s, uint32_t uid)
{
    struct sim_proc *p = &s->procs[uid - 1];
    for (uint32_t i = 1; i <= s->options.procs; i++) cut(s, uid, i);
    p->frozen = true;
    p->thaw_at = PCCL_NEVER;
    cut_control(s, p);
}

static void happen(struct sim *s)
{
    uint32_t count = s->options.procs;
    uint32_t a = 1 + sim_pick(s, count);
    uint32_t b = 1 + (a + sim_pick(s, count - 1)) % count;
    s->single_at = s->now;
    SIM_TRACE(s, "fault: %s, %u and %u", kinds[s->options.single].name, a, b);
    switch (s->options.single) {
    case SINGLE_PROCESS:
        sim_proc_end(s, &s->procs[a - 1], true);
        return;
    case SINGLE_HOST:
        lose_host(s, a);
        return;
    case SINGLE_PAIR:
        cut(s, a, b);
        return;
    case SINGLE_ONE_WAY:
        s->cut[a][b] = true;
        return;
    case SINGLE_SMALL:
        s->small[a][b] = true;
        return;
    case SINGLE_SPLIT:
        for (uint32_t i = 1; i <= a; i++)
            for (uint32_t k = a + 1; k <= count; k++) cut(s, i, k);
        return;
    case SINGLE_LONELY:
        for (uint32_t i = 1; i <= count; i++)
            if (i != a) cut(s, a, i);
        return;
    case SINGLE_MASTER:
        s->procs[a - 1].outcast = true;
        cut_control(s, &s->procs[a - 1]);
        return;
    case SINGLE_NONE:
    case SINGLE_COUNT:
        return;
    }
}

/* In thousandths of a deadline. */
static uint32_t stall_of(enum sim_single kind, uint64_t seed, bool *over)
{
    static struct sim s;
    struct sim_options options = choose(kind, seed);
    sim_init(&s, seed, &options);
    for (uint32_t i = 0; i < WARM_STEPS && !s.over; i++) sim_step(&s);
    happen(&s);
    pccl_ns until = s.now + AFTER * SIM_DEADLINE;
    while (s.now < until && !s.over) sim_step(&s);
    uint32_t stall = (uint32_t)(s.stall * 1000 / SIM_DEADLINE);
    *over = s.over;
    sim_free(&s);
    return stall;
}

static int measure(enum sim_single kind)
{
    uint32_t most = 0, overs = 0;
    uint64_t worst = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        bool over;
        uint32_t stall = stall_of(kind, seed, &over);
        overs += over;
        if (stall >= most) most = stall, worst = seed;
    }
    printf("%-14s %u.%03u deadlines (seed %llu), %u universes ended\n",
           kinds[kind].name, most / 1000, most % 1000,
           (unsigned long long)worst, overs);
    return most > kinds[kind].bound || overs > 0;
}

int main(int argc, char **argv)
{
    sim_trace = getenv("SIM_TRACE") != NULL;
    if (argc > 2) {
        bool over;
        enum sim_single kind = (enum sim_single)atoi(argv[1]);
        uint32_t stall = stall_of(kind, strtoull(argv[2], NULL, 0), &over);
        printf("%s: %u thousandths of a deadline%s\n", kinds[kind].name, stall,
               over ? ", and no ring" : "");
        return 0;
    }
    int failed = 0;
    for (int kind = SINGLE_PROCESS; kind < SINGLE_COUNT; kind++)
        failed += measure((enum sim_single)kind);
    return failed > 0;
}
