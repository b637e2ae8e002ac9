/* doors.c - universes in which members announce addresses (rules N1, N2). Of
 * some members only that one leads to them, of others only the one that the
 * master sees; the other one of the two refuses, drops what comes, leads to
 * another member, or takes connections and is silent. */
#include "sim.h"

enum { SEEN = 4, ANNOUNCED = 6 }; /* families stand for the two addresses */

enum fate { FATE_REFUSED, FATE_DROPPED, FATE_OTHER, FATE_SILENT };

void doors_choose(struct sim_options *o, uint64_t *r)
{
    if (o->walls || o->one_way || o->cut || o->single) return;
    o->doors = 1 + (uint32_t)net_pick(r, 1000);
    /* Time counts: an address that leads nowhere leaves less of it. */
    if (o->pipe_min < 4096) o->pipe_max += o->pipe_min = 4096;
    sim_coverage.doors++;
}

static uint64_t pick(const struct sim *s, uint32_t uid, uint64_t what)
{
    return sim_mix(s->seed, uid, s->options.doors, what);
}

void doors_announce(const struct sim *s, uint32_t uid, struct wire_addr *addr)
{
    if (s->options.doors == 0 || pick(s, uid, 0) % 4 == 0) return;
    *addr = (struct wire_addr){
        .family = ANNOUNCED, .ip = {1}, .port = (uint16_t)uid};
}

void doors_dial(struct sim *s, int stream, const struct wire_addr *addr)
{
    struct net_stream *st = &s->streams[stream];
    uint32_t uid = addr->port;
    if (s->options.doors == 0 || pick(s, uid, 0) % 4 == 0) return;
    bool right = (addr->family == ANNOUNCED) == (pick(s, uid, 1) % 2 == 0);
    if (right) {
        sim_coverage.doors_announced += addr->family == ANNOUNCED;
        sim_coverage.doors_seen += addr->family != ANNOUNCED;
        return;
    }
    switch ((enum fate)(pick(s, uid, 2) % 4)) {
    case FATE_REFUSED:
        st->end[1].conn = 0;
        break;
    case FATE_DROPPED:
        s->dial_at[stream] = PCCL_NEVER;
        st->end[1].proc = NET_NOBODY;
        break;
    case FATE_OTHER:
        st->end[1].conn = 1 + (uint32_t)(pick(s, uid, 3) % s->uid_last);
        st->uid[1] = st->end[1].conn;
        break;
    case FATE_SILENT:
        st->silent = true;
        st->end[1].proc = NET_NOBODY;
    }
}
