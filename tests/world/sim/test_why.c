/* test_why.c - the coordinator names the rank that keeps others waiting, and
 * the cause (rules W1 to W4).
 *
 * Goal: it is never somebody else, and never nobody while a member is blocked.
 * Method: universes without faults; at a random moment one process stops to
 * call, is stopped, gets no CPU time, or loses its path to another one. A few
 * heartbeats later the verdict is compared with what the processes really do.
 * More universes of each kind: ./test_why UNIVERSES.
 * Replay: ./test_why KIND SEED, with SIM_TRACE=1 for the events. */
#include "faults.h"
#include "sim.h"

#include "../../../src/master/watch/stall.h"

#include <stdio.h>
#include <stdlib.h>

enum { SEEDS = 80, WARM_STEPS = 6000 };

enum kind { IDLE, STOPPED, STARVED, HALF_OPEN, PARTED, KIND_COUNT };

static const char *const names[KIND_COUNT] = {"idle", "stopped", "starved",
                                              "half open", "parted"};

#define BEAT PCCL_TIME_TO_PING(SIM_DEADLINE)

struct fault {
    enum kind kind;
    struct sim_proc *victim, *other;
};

struct result {
    uint32_t right, blocked, wrong;
    uint32_t first[CAUSE_COUNT]; /* of the answer; NONE: nobody waits */
};

static struct sim_options choose(uint64_t seed)
{
    struct sim_options o = lasting_options(SINGLE_PROCESS, seed);
    o.reports = true;
    o.scoped = seed % 3 == 0;
    return o;
}

static bool is_waiting(const struct sim_proc *p)
{
    if (p->idle || p->frozen) return false;
    if (p->program.waiting) return true;
    for (uint32_t i = 0; p->program.stage == STAGE_TAKE && i < p->program.count;
         i++) {
        const struct sim_op *o = &p->program.ops[i];
        if (o->op && !o->taken && op_is_active(o->op)) return true;
    }
    return false;
}

static bool anybody_waits(const struct sim *s)
{
    for (uint32_t i = 0; i < s->slots; i++)
        if (sim_lives(s, i) && is_waiting(&s->procs[i])) return true;
    return false;
}

static uint64_t id_of(const struct sim *s, uint32_t link)
{
    return link == MASTER_NO_LINK ? 0 : s->master->peers[link].info.id;
}

static bool is_right(const struct sim *s, const struct fault *f,
                     const struct stall *t)
{
    uint64_t a = f->victim->session->id;
    uint64_t b = f->other->session->id;
    uint64_t culprit = id_of(s, t->culprit);
    uint64_t other = id_of(s, t->other);
    bool link = t->cause == CAUSE_HALF_OPEN || t->cause == CAUSE_PARTITION;
    switch (f->kind) {
    case IDLE:
        return culprit == a && t->cause == CAUSE_NOT_CALLED;
    case STOPPED:
        return culprit == a &&
               (t->cause == CAUSE_STOPPED || t->cause == CAUSE_SILENT);
    case STARVED:
        return culprit == a &&
               (t->cause == CAUSE_STARVED || t->cause == CAUSE_SILENT);
    case HALF_OPEN: /* nothing passes from a to b */
        return culprit == a && other == b && t->cause == CAUSE_HALF_OPEN;
    default:
        return link &&
               ((culprit == a && other == b) || (culprit == b && other == a));
    }
}

/* A member that waits itself is named after those that do not. That no data
 * move is known before a link counts as silent, and blames nobody. */
static bool is_derived(const struct fault *f, const struct stall *t)
{
    if (f->kind >= HALF_OPEN && t->cause == CAUSE_NO_DATA) return true;
    if (t->cause == CAUSE_MOVES) return true;
    return t->cause == CAUSE_OTHER_CALL || t->cause == CAUSE_RECEIVES ||
           t->cause == CAUSE_SENDS;
}

static void happen(struct sim *s, struct fault *f)
{
    struct sim_proc *all[SIM_PROCS_MAX];
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->slots; i++)
        if (sim_lives(s, i)) all[n++] = &s->procs[i];
    uint32_t first = sim_pick(s, n);
    f->victim = all[first];
    f->other = all[(first + 1 + sim_pick(s, n - 1)) % n];
    SIM_TRACE(s, "fault: %s, %u and %u", names[f->kind], f->victim->uid,
              f->other->uid);
    if (f->kind == IDLE) f->victim->idle = true;
    if (f->kind == STOPPED || f->kind == STARVED) {
        f->victim->frozen = true;
        f->victim->starved = f->kind == STARVED;
        f->victim->starved_at = s->now;
        f->victim->thaw_at = PCCL_NEVER;
    }
    if (f->kind < HALF_OPEN) return;
    s->cut[f->victim->uid][f->other->uid] = true;
    if (f->kind == PARTED) s->cut[f->other->uid][f->victim->uid] = true;
}

static void judge(struct sim *s, const struct fault *f, struct result *r)
{
    struct stall stalls[STALLS_MAX];
    uint32_t count = stall_find(s->master, 2 * BEAT, stalls, STALLS_MAX);
    uint32_t right = 0;
    uint32_t wrong = 0;
    r->first[count > 0 ? stalls[0].cause : CAUSE_NONE]++;
    for (uint32_t i = 0; i < count; i++) {
        char text[STALL_TEXT_MAX];
        stall_print(s->master, &stalls[i], text);
        SIM_TRACE(s, "%s: %s", stall_cause_name(stalls[i].cause), text);
        bool good = is_right(s, f, &stalls[i]);
        right += good;
        wrong += !good && !is_derived(f, &stalls[i]);
    }
    bool blocked = f->kind < HALF_OPEN && anybody_waits(s);
    r->blocked += blocked;
    r->right += right > 0;
    if (wrong == 0 && (right > 0 || !blocked)) return;
    r->wrong++;
    printf("%s, seed %llu: %u right, %u wrong verdicts\n", names[f->kind],
           (unsigned long long)s->seed, right, wrong);
}

static void run(enum kind kind, uint64_t seed, struct result *r)
{
    static struct sim s;
    struct sim_options options = choose(seed);
    struct fault f = {.kind = kind};
    sim_init(&s, seed, &options);
    for (uint32_t i = 0; i < WARM_STEPS + seed % 977 && !s.over; i++)
        sim_step(&s);
    happen(&s, &f);
    /* A link that is silent for half a deadline is closed. */
    pccl_ns until = s.now + BEAT * (kind < HALF_OPEN ? 5 : 9) / 2;
    if (kind < HALF_OPEN) until = s.now + 6 * BEAT;
    while (s.now < until && !s.over) sim_step(&s);
    /* A round may have begun: nothing else is judged then. */
    bool open = s.master->groups[s.master->group_list[0]].phase == GROUP_OPEN;
    if (!s.over && open) judge(&s, &f, r);
    sim_free(&s);
}

int main(int argc, char **argv)
{
    sim_trace = getenv("SIM_TRACE") != NULL;
    struct result r = {0};
    if (argc > 2) {
        run((enum kind)atoi(argv[1]), strtoull(argv[2], NULL, 0), &r);
        return r.wrong > 0;
    }
    uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 0) : SEEDS;
    uint32_t wrong = 0;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        r = (struct result){0};
        for (uint64_t seed = 1; seed <= seeds; seed++)
            run((enum kind)kind, seed, &r);
        printf("%-10s %u universes, %u with blocked members, %u named, %u "
               "wrong\n",
               names[kind], (unsigned)seeds, r.blocked, r.right, r.wrong);
        for (int cause = 0; cause < CAUSE_COUNT; cause++)
            if (r.first[cause] > 0)
                printf("    %u: %s\n", r.first[cause],
                       stall_cause_name((enum stall_cause)cause));
        wrong += r.wrong + (r.right < seeds / 10 * 9);
    }
    return wrong > 0;
}
