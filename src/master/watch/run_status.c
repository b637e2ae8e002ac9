/* run_status.c - the state of a run as text. See run_status.h. */
#include "run_status.h"

#include "../admission.h"
#include "../votes.h"
#include "../search/bandwidth.h"
#include "stall.h"
#include "wait_graph.h"

#include <inttypes.h>
#include <string.h>

pccl_ns run_status_age(const struct master *m)
{
    const pccl_ns shortest = 200 * PCCL_MS;
    pccl_ns beat = PCCL_TIME_TO_PING(m->deadline);
    return beat < shortest ? beat : shortest;
}

const char *run_event_kind(enum master_note_kind kind)
{
    switch (kind) {
    case NOTE_LOST:
        return "lost";
    case NOTE_LEFT:
        return "left";
    case NOTE_JOINED:
        return "joined";
    case NOTE_VIEW:
        return "view";
    case NOTE_EVICTED:
        return "evicted";
    case NOTE_SILENT:
        return "silent";
    case NOTE_HEARD:
        return "heard";
    case NOTE_ABORTED:
        return "aborted";
    case NOTE_DIFFERS:
        return "refused";
    case NOTE_STALLED:
        return "stalled";
    case NOTE_SUCCESSION:
        return "succession";
    case NOTE_CUT:
    case NOTE_NO_RING:
        return "unreachable";
    case NOTE_RELAYED:
        return "relayed";
    case NOTE_REGISTERED:
        return "registered";
    }
    return "";
}

static bool is_shown(const struct master_peer *p)
{
    return p->state == PEER_MEMBER || p->state == PEER_REGISTERED ||
           p->state == PEER_DEAD;
}

const char *run_status_state(const struct master *m, uint32_t link)
{
    const struct master_peer *p = &m->peers[link];
    if (p->state == PEER_REGISTERED) return "newcomer";
    if (p->state == PEER_DEAD) return p->lost ? "lost" : "left";
    if (p->leaving) return "leaving";
    if (!silence_is_suspect(m, link)) return "member";
    switch (p->silence.evidence) {
    case EVIDENCE_STOPPED:
        return "stopped";
    case EVIDENCE_TRACED:
        return "traced";
    case EVIDENCE_RUNNABLE:
        return "starved";
    default:
        return "silent";
    }
}

static const char *vote_text(const struct master_peer *p)
{
    if (p->voted[VOTE_UPDATE]) return "waits in a topology update";
    if (p->voted[VOTE_PENDING]) return "asks whether newcomers wait";
    if (p->voted[VOTE_OPTIMIZE]) return "waits in a topology optimization";
    if (p->sync.voted || p->sync.part != PART_NONE)
        return "waits in a synchronization of shared state";
    return NULL;
}

/* Rule M14. */
static bool few_wait(const struct master *m, uint32_t *have)
{
    return votes_all(m, VOTE_UPDATE) && admission_lacks(m, have);
}

static void newcomer_activity(const struct master *m, char *text, size_t size)
{
    uint32_t have;
    if (few_wait(m, &have))
        snprintf(text, size,
                 "waits for others: %" PRIu32 " of %" PRIu32 " are there", have,
                 m->minimum);
    else if (master_count(m, PEER_MEMBER) > 0)
        snprintf(text, size, "waits for a topology update of the members");
    else
        snprintf(text, size,
                 "waits for others: %" PRIu32 " of %" PRIu32 " are there",
                 m->founders, m->quorum);
}

void run_status_activity(const struct master *m, uint32_t link, char *text,
                         size_t size)
{
    const struct master_peer *p = &m->peers[link];
    const struct peer_report *report = m->reports[link];
    const struct wire_wait *w = wait_blocked_in(m, link);
    const char *vote = vote_text(p);
    uint32_t have;
    char name[256];
    if (p->state == PEER_REGISTERED) {
        newcomer_activity(m, text, size);
    } else if (few_wait(m, &have)) {
        snprintf(text, size,
                 "waits for newcomers: %" PRIu32 " of %" PRIu32 " are there",
                 have, m->minimum);
    } else if (vote) {
        snprintf(text, size, "%s", vote);
    } else if (w) {
        stall_print_wait(w, name, sizeof name);
        snprintf(text, size, "waits in %s for %.1f s, %" PRIu64 " elements",
                 name,
                 (double)(m->now - report->at) / PCCL_S + w->age_ms / 1000.,
                 w->count);
    } else if (report &&
               (report->self.state == 'R' || report->self.cpu >= 100)) {
        snprintf(text, size, "computes (%.0f %% CPU)", report->self.cpu / 10.);
    } else {
        snprintf(text, size, "%s",
                 report ? "sleeps outside of the library" : "");
    }
}

static void add_stalls(const struct master *m, struct growing_text *out)
{
    struct stall stalls[STALLS_MAX];
    uint32_t count = stall_find(m, run_status_age(m), stalls, STALLS_MAX);
    text_add(out, "\nwhy\n");
    if (count == 0) text_add(out, "  nobody waits for another one\n");
    for (uint32_t i = 0; i < count; i++) {
        char line[STALL_TEXT_MAX];
        stall_print(m, &stalls[i], line);
        text_add(out, "  %s\n", line);
    }
}

static void add_peer(const struct master *m, uint32_t link,
                     struct growing_text *out)
{
    const struct master_peer *p = &m->peers[link];
    const struct peer_report *report = m->reports[link];
    char rank[16] = "-";
    char launched[16] = "-";
    char activity[384];
    if (p->state != PEER_REGISTERED)
        snprintf(rank, sizeof rank, "%" PRIu32, p->rank);
    if (p->info.hint >= 0)
        snprintf(launched, sizeof launched, "%" PRId32, p->info.hint);
    run_status_activity(m, link, activity, sizeof activity);
    text_add(out, "  %5s %8s  %-16s %8" PRIu32 "  %5.1f s  %-8s  %s", rank,
             launched, report && report->host[0] ? report->host : "-",
             p->info.pid, (double)(m->now - p->last_recv) / PCCL_S,
             run_status_state(m, link), activity);
    if (p->samples.used)
        text_add(out, "; %" PRIu64 " samples/s", samples_rate(m, link));
    if (p->grant.name[0] != '\0')
        text_add(out, "; by the token of %s", p->grant.name);
    text_add(out, "\n");
}

/* Members by rank, then newcomers. */
static void add_peers(const struct master *m, uint32_t group,
                      struct growing_text *out)
{
    text_add(out, "   rank launched  host                  pid    heard  state "
                  "    operation\n");
    uint16_t links[PEERS_MAX] = {0}; /* by rank, plus 1 */
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (is_shown(p) && p->group == group && p->state != PEER_REGISTERED)
            links[p->rank] = (uint16_t)(i + 1);
    }
    for (uint32_t rank = 0; rank < PEERS_MAX; rank++)
        if (links[rank] > 0) add_peer(m, links[rank] - 1u, out);
    for (uint32_t i = 0; i < m->link_end; i++)
        if (m->peers[i].state == PEER_REGISTERED && m->peers[i].group == group)
            add_peer(m, i, out);
}

static bool is_measured(const struct master *m, uint32_t from, uint32_t to,
                        struct bandwidth_edge *edge)
{
    const struct master_peer *a = &m->peers[from];
    const struct master_peer *b = &m->peers[to];
    if (from == to || a->group != b->group || a->slot == MASTER_NO_PLACE ||
        b->slot == MASTER_NO_PLACE)
        return false;
    *edge = bandwidth_look(m->edges, a->slot, b->slot);
    return edge->state == EDGE_MEASURED;
}

uint32_t run_status_links(const struct master *m, struct status_link *links)
{
    uint32_t members[STATUS_LINKS_MAX], count = 0, found = 0;
    if (!m->edges || master_count(m, PEER_MEMBER) > STATUS_LINKS_MAX) return 0;
    for (uint32_t i = 0; i < m->link_end; i++)
        if (m->peers[i].state == PEER_MEMBER) members[count++] = i;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < count; k++) {
            struct status_link *l = &links[found];
            *l = (struct status_link){.from = members[i], .to = members[k]};
            found += is_measured(m, l->from, l->to, &l->edge);
        }
    }
    return found;
}

static void add_links(const struct master *m, struct growing_text *out)
{
    struct status_link links[STATUS_LINKS_MAX * STATUS_LINKS_MAX];
    uint32_t count = run_status_links(m, links);
    if (count > 0) text_add(out, "\nlinks\n");
    for (uint32_t i = 0; i < count; i++) {
        const struct bandwidth_edge *e = &links[i].edge;
        text_add(out,
                 "  %" PRIu32 " -> %" PRIu32
                 "  %8.1f MB/s  %7.2f ms  %.0f s ago\n",
                 m->peers[links[i].from].rank, m->peers[links[i].to].rank,
                 (double)e->rate / 1e6, (double)e->rtt / PCCL_MS,
                 (double)(m->now - e->since) / PCCL_S);
    }
}

static void add_events(const struct run_events *events,
                       struct growing_text *out)
{
    if (events_kept(events) > 0) text_add(out, "\nevents\n");
    for (uint32_t i = 0; i < events_kept(events); i++) {
        const struct run_event *e = events_get(events, i);
        struct tm tm;
        char time[32] = "";
        if (localtime_r(&e->at, &tm))
            (void)strftime(time, sizeof time, "%Y-%m-%d %H:%M:%S", &tm);
        text_add(out, "  %s  %s\n", time, e->text);
    }
}

/* Rule S10: who offers its state, and to how many. */
static void add_offers(const struct master *m, uint32_t group,
                       struct growing_text *out)
{
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (p->state != PEER_MEMBER || p->group != group || !p->offer.on)
            continue;
        text_add(out,
                 "  rank %" PRIu32 " offers revision %" PRIu64
                 " of the state; %" PRIu32 " download%s\n",
                 p->rank, p->offer.revision, p->offer.guests,
                 p->offer.guests == 1 ? "s" : "");
    }
}

/* Rule N10: the pairs that are linked over a third one. */
static void add_relays(const struct master *m, uint32_t group,
                       struct growing_text *out)
{
    const struct master_group *g = &m->groups[group];
    for (uint32_t i = 0; i < g->edge_count; i++) {
        const struct master_edge *e = &g->edges[i];
        uint32_t a = master_link_of(m, group, e->a);
        uint32_t b = master_link_of(m, group, e->b);
        uint32_t relay = master_link_of(m, group, e->relay);
        if (!e->told || a == MASTER_NO_LINK || b == MASTER_NO_LINK) continue;
        text_add(out, "  ranks %" PRIu32 " and %" PRIu32 " are linked over ",
                 m->peers[a].rank, m->peers[b].rank);
        if (relay == MASTER_NO_LINK)
            text_add(out, "this coordinator\n");
        else
            text_add(out, "rank %" PRIu32 "\n", m->peers[relay].rank);
    }
}

void run_status_text(const struct status_source *s, struct growing_text *out)
{
    const struct master *m = s->machine;
    uint32_t members = master_count(m, PEER_MEMBER);
    uint32_t waiting = master_count(m, PEER_REGISTERED);
    text_add(out,
             "run at %s: %" PRIu32 " member%s, %" PRIu32 " newcomer%s, epoch "
             "%" PRIu32 ", quorum %" PRIu32 ", deadline %.1f s, up %.0f s\n",
             s->address, members, members == 1 ? "" : "s", waiting,
             waiting == 1 ? "" : "s", m->round_last, m->quorum,
             (double)m->deadline / PCCL_S, s->up);
    add_stalls(m, out);
    for (uint32_t i = 0; i < m->group_count; i++) {
        const struct master_group *g = &m->groups[m->group_list[i]];
        text_add(out, "\ngroup %" PRIu32 ": epoch %" PRIu32 "%s", g->number,
                 g->epoch,
                 g->phase == GROUP_OPEN ? "" : ", its view is changing");
        if (g->samples.used)
            text_add(out,
                     ", step %" PRIu64 ": %" PRIu64 " of %" PRIu64 " samples",
                     g->samples.step, g->samples.sum, g->samples.target);
        text_add(out, "\n");
        add_peers(m, m->group_list[i], out);
        add_offers(m, m->group_list[i], out);
        add_relays(m, m->group_list[i], out);
    }
    add_links(m, out);
    add_events(s->events, out);
}
