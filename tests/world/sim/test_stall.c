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
static const uint32_t bounds[SINGLE_COUNT] = {0,    100,  1000, 1000, 1000,
                                              1000, 1000, 1000, 1000};

static struct sim_options choose(enum sim_single kind, uint64_t seed)
{
    struct sim_options o = lasting_options(kind, seed);
    /* A scope without a link would separate the steps of its members. */
    bool pair =
        kind == SINGLE_PAIR || kind == SINGLE_ONE_WAY || kind == SINGLE_SMALL;
    o.scoped = !pair && seed % 5 == 0;
    return o;
}

static void happen(struct sim *s)
{
    struct sim_proc *all[SIM_PROCS_MAX];
    for (uint32_t i = 0; i < s->options.procs; i++) all[i] = &s->procs[i];
    lasting_happen(s, s->options.single, all, s->options.procs);
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
           sim_single_name(kind), most / 1000, most % 1000,
           (unsigned long long)worst, overs);
    return most > bounds[kind] || overs > 0;
}

int main(int argc, char **argv)
{
    sim_trace = getenv("SIM_TRACE") != NULL;
    if (argc > 2) {
        bool over;
        enum sim_single kind = (enum sim_single)atoi(argv[1]);
        uint32_t stall = stall_of(kind, strtoull(argv[2], NULL, 0), &over);
        printf("%s: %u thousandths of a deadline%s\n", sim_single_name(kind),
               stall, over ? ", and no ring" : "");
        return 0;
    }
    int failed = 0;
    for (int kind = SINGLE_PROCESS; kind < SINGLE_COUNT; kind++)
        failed += measure((enum sim_single)kind);
    return failed > 0;
}
