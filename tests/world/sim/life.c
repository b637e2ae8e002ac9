/* life.c - the beginning of a universe, its faults, its recovery, its end.
 * See sim.h. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "averages.h"
#include "election.h"
#include "faults.h"
#include "witness.h"

enum {
    LASTING_STEPS = 600000,  /* at most, until faults that last have been met */
    HEALING_STEPS = 1000000, /* of a small world; time is slow in a large one */
};

/* A run that needs two members: by the seed alone, which draws nothing. */
void sim_choose_minimum(struct sim_options *o, uint64_t seed)
{
    bool some = seed % 29 == 28 || seed % 29 == 17 || seed % 29 == 26;
    if (!some || o->mismatch || o->odd_vote || o->calm || o->single ||
        o->refuse || o->groups > 1)
        return;
    o->minimum = 2;
    o->local = false;
    if (o->join == 0) o->join = 500;
}

void sim_init(struct sim *s, uint64_t seed, const struct sim_options *options)
{
    memset(s->streams, 0, s->stream_end * sizeof s->streams[0]);
    memset(s->dial_at, 0, s->stream_end * sizeof s->dial_at[0]);
    memset(s->dialing, 0, s->stream_end * sizeof s->dialing[0]);
    memset(s, 0, offsetof(struct sim, procs));
    sim_seed = s->seed = s->random = seed;
    s->options = *options;
    if (s->options.alive_max == 0) s->options.alive_max = SIM_FEW;
    s->slots = options->alive_max > SIM_FEW ? SIM_PROCS_MAX : 2 * (SIM_FEW + 1);
    sim_coverage.many += options->alive_max > SIM_FEW;
    for (uint32_t i = 0; i < MASTER_LINKS_MAX; i++) s->links[i] = -1;
    averages_begin();
    s->oracle = oracle_new();
    /* The recount knows one master. */
    if (s->options.masters == 0) s->election = election_new();
    SIM_CHECK(s, s->oracle && (s->election || s->options.masters > 0),
              "no memory");
    /* The model of the rules knows no lack of memory, and one record of each
     * master (H10). */
    bool modelled = !s->options.scarce && !s->options.replicas;
    s->witness = modelled ? witness_new(s) : NULL;
    sim_master_start(s);
    for (uint32_t i = 0; i < options->procs; i++)
        (void)sim_proc_start(s, false, (int32_t)(options->procs - i),
                             i % options->groups);
    if (options->cut) { /* before there is any view */
        s->refusals[0].a = 1;
        s->refusals[0].b = 2;
        s->refusals[0].until = PCCL_NEVER;
    }
    sim_coverage.two_groups += options->groups > 1;
}

/* All live processes are members and have gone on... */
static bool running(const struct sim *s)
{
    for (uint32_t left = s->live, i; sim_next(s, &left, &i);) {
        const struct sim_proc *p = &s->procs[i];
        if (p->session->state != SESSION_MEMBER) return false;
        if (p->program.steps_done < 6) return false;
    }
    return true;
}

/* ... of one view. */
static bool healthy(const struct sim *s)
{
    if (!running(s)) return false;
    for (uint32_t left = s->live, i; sim_next(s, &left, &i);) {
        const struct sim_proc *p = &s->procs[i];
        for (uint32_t all = s->live, k; sim_next(s, &all, &k);) {
            const struct sim_proc *q = &s->procs[k];
            if (q->group != p->group) continue;
            if (view_find(p->session->view, q->session->id) ==
                p->session->view->size)
                return false;
        }
    }
    return letters_delivered(s) && counted_settled(s) && averages_delivered(s);
}

void sim_run(struct sim *s)
{
    while (!s->over && s->steps < LASTING_STEPS &&
           (s->steps < s->options.steps || !lasting_is_over(s)))
        sim_step(s);
    sim_heal(s);
    uint32_t most = HEALING_STEPS;
    if (s->options.alive_max > SIM_FEW || s->options.walls) most *= 4;
    if (s->options.alive_max > SIM_FEW && s->options.averages) most *= 2;
    /* A vote where the others launch costs two deadlines (V4c). */
    if (s->options.odd_vote) most *= 4;
    for (uint32_t i = 0; i < most && !s->over && !healthy(s); i++) sim_step(s);
    if (s->over) return;
    if (!healthy(s)) {
        for (uint32_t left = s->live, k; sim_next(s, &left, &k);) {
            const struct sim_proc *p = &s->procs[k];
            printf("process %u id %llu group %u state %d stage %d step %llu "
                   "epoch %u size %u done %llu\n",
                   p->uid, (unsigned long long)p->session->id, p->group,
                   (int)p->session->state, (int)p->program.stage,
                   (unsigned long long)p->program.step, p->session->view->epoch,
                   p->session->view->size,
                   (unsigned long long)p->program.steps_done);
        }
    }
    SIM_CHECK(s, healthy(s), "no recovery after the faults stopped");
    witness_end(s);
}

void sim_free(struct sim *s)
{
    fetch_free(s);
    witness_free(s);
    for (uint32_t left = s->live, i; sim_next(s, &left, &i);)
        sim_proc_end(s, &s->procs[i], false);
    for (uint32_t i = 0; i < s->stream_end; i++) net_free(&s->streams[i]);
    for (uint32_t i = 0; i < SIM_GROUPS; i++) free(s->checkpoints[i].bytes);
    oracle_free(s->oracle);
    election_free(s->election);
    sim_master_free(s);
    free(s->journal);
    s->journal = NULL;
}
