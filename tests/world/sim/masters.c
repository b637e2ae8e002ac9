/* masters.c - universes whose coordinator dies, and another one takes its place
 * (rules H). */
#include "faults.h"
#include "sim.h"
#include "witness.h"

#include <stdlib.h>
#include <string.h>

/* The master dies, beside losses of members. */
void masters_choose(struct sim_options *o, uint64_t seed)
{
    o->mismatch = o->variant_resync = false;
    if (seed % 3 == 0) o->mismatch = o->variant_resync = true;
    if (seed % 5 == 1) o->crash = o->leave = 0;
    if (seed % 5 == 2) o->freeze = 300;
    if (seed % 5 == 3) o->reset = 1000;
    if (seed % 7 == 1) o->join = 0;
    o->optimize = o->liars = o->letters = false;
    o->doors = o->minimum = o->fetch = 0;
    o->walls = o->relays = false;
    o->well = seed % 2 == 1;
    o->spares = seed % 5 == 1 && o->freeze == 0 && o->reset == 0;
    if (o->spares) o->share_fails = o->scarce = false;
    o->replicas = seed / 5 % 2 == 1;
    o->masters = 150 + (uint32_t)(seed % 11) * 40;
    o->steps += 20000;
}

/* It dies amid what it does, once in so many chances. */
bool sim_master_may_die(struct sim *s, uint32_t one_in)
{
    bool can = s->options.masters > 0 && !s->healing && s->master->founded &&
               s->now >= s->master_down_until && !s->dying;
    return can && sim_pick(s, one_in) == 0;
}

/* Killed: what the kernel has taken from it may still arrive, or a part. */
static void cut_all(struct sim *s)
{
    for (uint32_t i = 0; i < s->stream_end; i++) {
        struct net_stream *st = &s->streams[i];
        if (!st->used || !st->control) continue;
        if (st->end[1].proc == NET_NOBODY || st->end[1].proc == NET_DIALED)
            continue;
        struct net_pipe *out = &st->pipe[1];
        st->pending = false;
        if (sim_pick(s, 3) == 0)
            net_cut(out, sim_pick(s, (uint32_t)out->count + 1));
        sim_stream_leave(s, (int)i, 1);
    }
    for (uint32_t i = 0; i < MASTER_LINKS_MAX; i++) s->links[i] = -1;
    s->link_count = 0;
    s->called = false;
}

void sim_master_dies(struct sim *s)
{
    uint32_t turn = sim_turn;
    sim_turn = 0;
    sim_coverage.masters++;
    witness_dies(s);
    sim_coverage.masters_again += s->master->succession.waits;
    SIM_TRACE(s, "the master of term %llu dies",
              (unsigned long long)s->master->succession.term);
    uint64_t term = s->master->succession.term;
    cut_all(s);
    sim_master_free(s);
    memset(s->searches, 0, sizeof s->searches);
    s->dying = false;
    pccl_ns down = sim_pick(s, 2) ? sim_pick(s, (uint32_t)SIM_DEADLINE / 8)
                                  : sim_pick(s, 2 * (uint32_t)SIM_DEADLINE);
    s->master_down_until = s->now + 1 + down;
    s->last_fault = s->master_down_until + 2 * SIM_GRACE;
    s->master_tick_at = s->master_down_until;
    sim_master_start(s);
    SIM_CHECK(s, s->options.replicas || s->master->succession.term > term,
              "H1: the term");
    /* Rule H1: before anybody is answered. */
    SIM_CHECK(s, memory_keep(s->master), "the disk");
    sim_turn = turn;
}

/* Its master has died: it calls until another one is there (rule H2). */
bool sim_dial_again(struct sim *s, struct sim_proc *p)
{
    if (p->control >= 0 || !session_may_resume(p->session)) return false;
    if (p->redial_at > s->now) return false;
    p->redial_at = s->now + sim_pick(s, (uint32_t)SIM_DEADLINE / 20);
    if (s->master_down_until > s->now) return true; /* refused */
    p->rx.count = p->rx.first = 0;
    p->control = sim_stream_new(s, true);
    s->streams[p->control].joins = p->uid;
    s->streams[p->control].end[0] = (struct net_end){(int)(p - s->procs), 0};
    sim_master_accept(s, p->control);
    session_resume(p->session);
    return true;
}

/* Nobody has come who could tell of the run: another one begins. */
void sim_run_begins(struct sim *s)
{
    sim_coverage.keep_begins++;
    s->installed = s->master->round_last;
    s->run_ids_from = s->ids_from;
    for (uint32_t i = 0; i < SIM_GROUPS; i++) {
        free(s->checkpoints[i].bytes);
        s->checkpoints[i] = (struct sim_checkpoint){.bytes = NULL};
    }
}
