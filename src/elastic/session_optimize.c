/* session_optimize.c - the links as one peer measures them, and its part in
 * the order of the ring. Rules O1.. */
#include "session.h"

#include "../link/probe.h"

#include <string.h>

/* Rule O3. Only inside the vote no other work is under way. */
void session_probe(struct session *s, const struct wire_msg *msg)
{
    if (s->votes[VOTE_OPTIMIZE] != VOTE_WAITING || links_is_frozen(s->links))
        return;
    struct probe_order order = {.step = msg->round,
                                .peer = msg->probe.peer,
                                .gives = msg->probe.gives,
                                .takes = msg->probe.takes,
                                .bytes = msg->probe.bytes,
                                .time = (pccl_ns)msg->probe.time_us * 1000};
    probe_begin(s->links, &order);
    links_resume(s->links);
}

void session_probed(void *user, uint32_t step, const struct wire_edge *edge)
{
    struct session *s = user;
    struct wire_msg msg = {.type = WIRE_MEASURED,
                           .round = step,
                           .epoch = s->view->epoch,
                           .edges = edge,
                           .edge_count = 1};
    session_send(s, &msg);
}

/* Rule O1: reports new measurements with the heartbeat. */
void session_report_links(struct session *s)
{
    struct wire_edge edges[WIRE_EDGES_MAX];
    struct wire_msg msg = {
        .type = WIRE_MEASURED, .epoch = s->view->epoch, .edges = edges};
    if (s->state != SESSION_MEMBER) return;
    msg.edge_count = measure_report(s->links, edges);
    if (msg.edge_count == 0) return;
    for (uint32_t i = 0; i < msg.edge_count; i++)
        edges[i].rtt = links_round_trip(s->links, edges[i].peer);
    session_send(s, &msg);
}

/* Rule O3: the round trips to the members that are connected. */
void session_report_ways(struct session *s)
{
    struct wire_edge edges[WIRE_EDGES_MAX];
    struct wire_msg msg = {
        .type = WIRE_MEASURED, .epoch = s->view->epoch, .edges = edges};
    if (s->state != SESSION_MEMBER || !links_has_round_trips(s->links)) return;
    for (uint32_t i = 0; i < s->view->size; i++) {
        uint64_t id = s->view->ids[i];
        if (id == s->id || msg.edge_count == WIRE_EDGES_MAX) continue;
        uint64_t rtt = links_round_trip(s->links, id);
        if (rtt == 0) continue;
        edges[msg.edge_count++] =
            (struct wire_edge){.peer = id, .rtt = rtt, .kind = EDGE_RTT};
    }
    if (msg.edge_count > 0) session_send(s, &msg);
}

/* Rule R4: the reason why there is no ring, for the call that asks. */
void session_keep_blockers(struct session *s, const struct wire_msg *msg)
{
    s->blocker_count = 0;
    if (msg->view.ring) return;
    for (uint32_t i = 0; i + 1 < msg->id_count; i += 2) {
        if (s->blocker_count == BLOCKERS_MAX) return;
        s->blockers[s->blocker_count][0] = msg->ids[i];
        s->blockers[s->blocker_count++][1] = msg->ids[i + 1];
    }
}
