/* walls.c - universes in which nobody can dial most members: they reach each
 * other over others (rules N). */
#include "sim.h"

void walls_choose(struct sim_options *o, uint64_t *r)
{
    if (o->storm || o->slow || o->large || o->alive_max > SIM_FEW) return;
    o->calm = false;
    o->single = SINGLE_NONE;
    o->lasting = 0;
    o->freeze = o->reset = o->control_reset = o->refuse = o->stall = o->starve =
        o->pause = o->mute = 0;
    o->half_reset = o->cut = o->one_way = o->one_host = o->pairwise =
        o->interleaved = o->lends = false;
    o->walls = true;
    o->relays = net_pick(r, 2) == 0;
    o->groups = 1;
    if (o->procs < 3) o->procs += 2;
    o->quorum = o->procs;
    o->letters = net_pick(r, 2) == 0;
    o->steps += 6000;
    if (net_pick(r, 3) == 0) o->crash = o->leave = 0;
    sim_coverage.walls++;
}

bool walls_is_public(const struct sim *s, uint32_t uid)
{
    return (uid == 1 && !s->options.relays) ||
           sim_mix(s->seed, uid, 77, 0) % 4 == 0;
}

struct sim_proc *walls_relay(struct sim *s)
{
    uint64_t bytes;
    for (uint32_t left = s->options.walls ? s->live : 0, i;
         sim_next(s, &left, &i);) {
        struct sim_proc *p = &s->procs[i];
        if (links_relays(p->session->links, &bytes) > 0) return p;
    }
    return NULL;
}

bool walls_has_relay(const struct sim *s, const struct master_peer *peer)
{
    if (s->options.relays) return true;
    for (uint32_t i = 0; s->options.walls && i < s->master->link_end; i++) {
        const struct master_peer *p = &s->master->peers[i];
        if (p->state == PEER_MEMBER && !p->leaving && p->group == peer->group &&
            walls_is_public(s, p->info.addr.port))
            return true;
    }
    return false;
}
