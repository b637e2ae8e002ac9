/* lasting.c - faults that last (contract C3): one thing fails for good, and
 * nobody may wait longer than one deadline for it. */
#include "faults.h"

#include <string.h>

enum {
    /* A universe goes on for so long after such a fault, in hundredths of a
     * deadline, and then meets the next one, or heals. */
    WATCHED = 140,
    /* Clocks differ by so many thousandths at most (strange.c), and the rounds
     * of the simulator take that part of a deadline. */
    OWN_ROUNDS = 120,
};

const char *sim_single_name(enum sim_single kind)
{
    static const char *const names[SINGLE_COUNT] = {
        "none",          "process", "host",   "pair",     "one way",
        "small packets", "split",   "lonely", "no master"};
    return names[kind];
}

struct sim_options lasting_options(enum sim_single kind, uint64_t seed)
{
    uint32_t procs = 2 + (uint32_t)(seed % (SIM_FEW - 1));
    return (struct sim_options){.procs = procs,
                                .quorum = procs,
                                .groups = 1,
                                .pool = seed % 3 == 0 ? 2 : 1,
                                .pipe_min = 32768,
                                .pipe_max = 65536,
                                .delay_max = 1u << (10 + seed % 8),
                                .burst = true,
                                .sync = seed % 2 == 0 ? 2 : 0,
                                .single = kind};
}

static void cut(struct sim *s, uint32_t a, uint32_t b)
{
    s->cut[a][b] = s->cut[b][a] = true;
}

static void cut_control(struct sim *s, const struct sim_proc *p)
{
    for (int side = 0; p->control >= 0 && side < 2; side++)
        s->streams[p->control].pipe[side].open_at = PCCL_NEVER;
}

/* Nothing passes to or from the process, and nobody can look at it. */
static void lose_machine(struct sim *s, struct sim_proc *p)
{
    for (uint32_t i = 1; i <= SIM_PROCS_MAX; i++)
        if (p->uid <= SIM_PROCS_MAX) cut(s, p->uid, i);
    p->frozen = p->unseen = true;
    p->thaw_at = PCCL_NEVER;
    cut_control(s, p);
}

static void lose_host(struct sim *s, struct sim_proc *lost)
{
    uint32_t sites = s->options.sites, host = lost->uid;
    lose_machine(s, lost);
    for (uint32_t left = s->live, i; sites > 0 && sim_next(s, &left, &i);) {
        struct sim_proc *p = &s->procs[i];
        if (p->uid % sites == host % sites) lose_machine(s, p);
    }
}

/* The network falls into two parts; `a` is in one of them, `b` in the other. */
static void split(struct sim *s, struct sim_proc *const *all, uint32_t count,
                  uint32_t a, uint32_t b)
{
    uint64_t sides = sim_mix(s->seed, 95, (uint64_t)s->now, 0);
    sides = (sides | (uint64_t)1 << a) & ~((uint64_t)1 << b);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < i; k++)
            if ((sides >> i & 1) != (sides >> k & 1))
                cut(s, all[i]->uid, all[k]->uid);
}

void lasting_happen(struct sim *s, enum sim_single kind,
                    struct sim_proc *const *all, uint32_t count)
{
    uint32_t first = sim_pick(s, count);
    uint32_t second = (first + 1 + sim_pick(s, count - 1)) % count;
    struct sim_proc *a = all[first];
    const struct sim_proc *b = all[second];
    s->single_at = s->now;
    s->stall = 0;
    SIM_TRACE(s, "fault: %s, %u and %u", sim_single_name(kind), a->uid, b->uid);
    switch (kind) {
    case SINGLE_PROCESS:
        sim_proc_end(s, a, true);
        return;
    case SINGLE_HOST:
        lose_host(s, a);
        return;
    case SINGLE_PAIR:
        cut(s, a->uid, b->uid);
        return;
    case SINGLE_ONE_WAY:
        s->cut[a->uid][b->uid] = true;
        return;
    case SINGLE_SMALL:
        s->small[a->uid][b->uid] = true;
        return;
    case SINGLE_SPLIT:
        split(s, all, count, first, second);
        return;
    case SINGLE_LONELY:
        for (uint32_t i = 0; i < count; i++)
            if (all[i] != a) cut(s, a->uid, all[i]->uid);
        return;
    case SINGLE_MASTER:
        a->outcast = true;
        cut_control(s, a);
        return;
    case SINGLE_NONE:
    case SINGLE_COUNT:
        return;
    }
}

static void count_kind(enum sim_single kind)
{
    uint64_t *counts[SINGLE_COUNT] = {
        NULL,
        &sim_coverage.last_process,
        &sim_coverage.last_host,
        &sim_coverage.last_pair,
        &sim_coverage.last_one_way,
        &sim_coverage.last_small,
        &sim_coverage.last_split,
        &sim_coverage.last_lonely,
        &sim_coverage.last_master,
    };
    ++*counts[kind];
}

/* The members that a fault may meet; none while somebody joins or is out. */
static uint32_t steady(struct sim *s, struct sim_proc **all)
{
    uint32_t count = 0;
    for (uint32_t left = s->live, i; sim_next(s, &left, &i);) {
        struct sim_proc *p = &s->procs[i];
        if (p->frozen || p->outcast) continue;
        if (p->session->state != SESSION_MEMBER && !p->joiner) return 0;
        if (p->session->state != SESSION_MEMBER) continue;
        if (p->program.stage == STAGE_JOIN || p->leave_soon) continue;
        if (p->uid <= SIM_PROCS_MAX) all[count++] = p;
    }
    return count;
}

/* Between processes that share memory there is no path that fails on its own
 * (rule R7b). */
static enum sim_single possible(const struct sim *s, enum sim_single kind)
{
    bool path = kind >= SINGLE_PAIR && kind <= SINGLE_LONELY;
    if (s->options.share == 0 || !path) return kind;
    return kind % 2 == 0 ? SINGLE_PROCESS : SINGLE_HOST;
}

void lasting_turn(struct sim *s)
{
    struct sim_proc *all[SIM_PROCS_MAX];
    pccl_ns watched = SIM_DEADLINE / 100 * WATCHED;
    bool first = s->single_at == 0;
    if (s->healing || s->lasted == s->options.lasting) return;
    if (first && s->steps < s->options.steps) return;
    if (!first && s->now - s->single_at < watched) return;
    uint32_t count = steady(s, all);
    if (count < 2) return;
    enum sim_single kind = s->options.single;
    if (!first) kind = (enum sim_single)(1 + sim_pick(s, SINGLE_COUNT - 1));
    kind = possible(s, kind);
    s->lasted++;
    sim_coverage.last_again += !first;
    sim_coverage.last_many += count > 8;
    count_kind(kind);
    lasting_happen(s, kind, all, count);
}

bool lasting_is_over(const struct sim *s)
{
    pccl_ns watched = SIM_DEADLINE / 100 * WATCHED;
    return s->lasted == s->options.lasting &&
           (s->lasted == 0 || s->now - s->single_at >= watched);
}

void lasting_heal(struct sim *s)
{
    memset(s->cut, 0, sizeof s->cut);
    memset(s->small, 0, sizeof s->small);
    for (uint32_t left = s->live, i; sim_next(s, &left, &i);)
        s->procs[i].outcast = s->procs[i].unseen = false;
    for (uint32_t i = 0; i < s->stream_end; i++)
        for (int side = 0; side < 2; side++)
            s->streams[i].pipe[side].holed = false;
}

/* How long a call of the process has lasted, since the fault at most. Before
 * the fault it shows the own time of the operations. */
void lasting_watch(struct sim *s, const struct sim_proc *p)
{
    pccl_ns from = p->program.progress_at;
    if (from < s->single_at) from = s->single_at;
    if (p->outcast || s->now - from <= s->stall) return;
    s->stall = s->now - from;
    if (s->single_at == 0) s->own = s->stall;
    if (s->single_at > 0)
        SIM_TRACE(s, "process %u stands for %lld us in stage %d", p->uid,
                  (long long)s->stall / 1000, (int)p->program.stage);
    pccl_ns most = SIM_DEADLINE / 1000 * (1000 + OWN_ROUNDS) + 2 * s->own;
    /* An update tries the pairs that are cut already again (R3h). */
    if (s->lasted > 1) most += PCCL_TIME_TO_LINK(SIM_DEADLINE);
    bool judged = s->single_at > 0 && s->options.lasting > 0;
    SIM_CHECK(s, !judged || s->stall <= most,
              "C3: process %u (id %llu) stands in stage %d for longer than a "
              "deadline",
              p->uid, (unsigned long long)p->session->id,
              (int)p->program.stage);
}
