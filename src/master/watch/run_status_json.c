/* run_status_json.c - the state of a run as JSON. See run_status.h. */
#include "run_status.h"

#include "../search/bandwidth.h"
#include "stall.h"
#include "wait_graph.h"

#include <inttypes.h>

static void add_rank(struct growing_text *out, const struct master *m,
                     const char *name, uint32_t link)
{
    if (link == MASTER_NO_LINK || m->peers[link].state == PEER_REGISTERED)
        text_add(out, "\"%s\":null,", name);
    else
        text_add(out, "\"%s\":%" PRIu32 ",", name, m->peers[link].rank);
}

static void add_stalls(const struct master *m, struct growing_text *out)
{
    struct stall stalls[STALLS_MAX];
    uint32_t count = stall_find(m, run_status_age(m), stalls, STALLS_MAX);
    text_add(out, ",\n\"why\":[");
    for (uint32_t i = 0; i < count; i++) {
        const struct stall *s = &stalls[i];
        char line[STALL_TEXT_MAX];
        stall_print(m, s, line);
        text_add(out, "%s\n{", i > 0 ? "," : "");
        add_rank(out, m, "rank", s->culprit);
        add_rank(out, m, "other", s->other);
        text_add(out,
                 "\"object\":\"%s\",\"cause\":", stall_object_name(s->object));
        text_add_json(out, stall_cause_name(s->cause));
        text_add(out, ",\"seconds\":%.3f,\"waiting\":[",
                 (double)s->age / PCCL_S);
        for (uint32_t k = 0; k < s->waiter_count && k < STALL_WAITERS_MAX; k++)
            text_add(out, "%s%" PRIu32, k > 0 ? "," : "",
                     m->peers[s->waiters[k]].rank);
        text_add(out,
                 "],\"waiting_count\":%" PRIu32 ",\"text\":", s->waiter_count);
        text_add_json(out, line);
        text_add(out, "}");
    }
    text_add(out, "]");
}

static void add_wait(const struct wire_wait *w, struct growing_text *out)
{
    static const char *const kinds[WAIT_KIND_COUNT] = {
        "collective", "receive", "send", "requests", "lacks", "past"};
    text_add(out, "{\"kind\":\"%s\",\"call\":", kinds[w->kind]);
    text_add_json(out, w->call);
    text_add(out, ",\"on\":");
    text_add_json(out, w->where);
    text_add(out,
             ",\"tag\":%" PRIu64 ",\"sequence\":%" PRIu32 ",\"count\":%" PRIu64
             ",\"bytes_moved\":%" PRIu64 ",\"missing\":%" PRIu32
             ",\"peer\":%" PRIu64 ",\"blocks\":%s,\"seconds\":%.3f}",
             w->tag, w->seq, w->count, w->moved, w->missing, w->peer,
             w->blocks ? "true" : "false", w->age_ms / 1000.);
}

static void add_traffic(const struct wire_traffic *t, struct growing_text *out)
{
    text_add(out,
             "\"operations\":%" PRIu64 ",\"sent_bytes\":%" PRIu64
             ",\"received_bytes\":%" PRIu64,
             t->operations, t->sent, t->received);
}

static void add_peer(const struct master *m, uint32_t link,
                     struct growing_text *out)
{
    const struct master_peer *p = &m->peers[link];
    const struct peer_report *report = m->reports[link];
    const struct peer_report *current = wait_report(m, link);
    char activity[384];
    text_add(out, "{");
    add_rank(out, m, "rank", link);
    run_status_activity(m, link, activity, sizeof activity);
    if (p->place != MASTER_NO_PLACE && p->state != PEER_REGISTERED)
        text_add(out, "\"place\":%" PRIu32 ",", p->place);
    text_add(out,
             "\"launched\":%" PRId32 ",\"id\":%" PRIu64 ",\"pid\":%" PRIu32
             ",\"group\":%" PRIu32 ",\"heard_seconds\":%.3f,\"state\":\"%s\","
             "\"host\":",
             p->info.hint, p->info.id, p->info.pid, m->groups[p->group].number,
             (double)(m->now - p->last_recv) / PCCL_S,
             run_status_state(m, link));
    text_add_json(out, report ? report->host : "");
    text_add(out, ",\"activity\":");
    text_add_json(out, activity);
    if (p->grant.name[0] != '\0') text_add(out, ",\"name\":");
    if (p->grant.name[0] != '\0') text_add_json(out, p->grant.name);
    if (p->offer.on)
        text_add(out,
                 ",\"offers\":{\"revision\":%" PRIu64 ",\"newcomers\":%" PRIu32
                 "}",
                 p->offer.revision, p->offer.guests);
    if (report)
        text_add(out, ",\"cpu\":%.3f,\"starved\":%.3f,\"faults\":%" PRIu32,
                 report->self.cpu / 1000., report->self.starve / 1000.,
                 report->self.faults);
    if (report) text_add(out, ",");
    if (report) add_traffic(&report->traffic, out);
    if (p->samples.used)
        text_add(out,
                 ",\"step\":%" PRIu64 ",\"samples\":%" PRIu64
                 ",\"samples_total\":%" PRIu64
                 ",\"samples_per_second\":%" PRIu64,
                 p->samples.step, p->samples.count, p->samples.total,
                 samples_rate(m, link));
    text_add(out, ",\"waits\":[");
    for (uint32_t i = 0; current && i < current->wait_count; i++) {
        if (i > 0) text_add(out, ",");
        add_wait(&current->waits[i], out);
    }
    text_add(out, "]}");
}

static void add_peers(const struct master *m, struct growing_text *out)
{
    bool more = false;
    text_add(out, ",\n\"members\":[");
    for (uint32_t i = 0; i < m->link_end; i++) {
        enum master_peer_state s = m->peers[i].state;
        if (s != PEER_MEMBER && s != PEER_REGISTERED && s != PEER_DEAD)
            continue;
        text_add(out, "%s\n", more ? "," : "");
        more = true;
        add_peer(m, i, out);
    }
    text_add(out, "]");
}

static void add_links(const struct master *m, struct growing_text *out)
{
    struct status_link links[STATUS_LINKS_MAX * STATUS_LINKS_MAX];
    uint32_t count = run_status_links(m, links);
    text_add(out, ",\n\"links\":[");
    for (uint32_t i = 0; i < count; i++) {
        const struct bandwidth_edge *e = &links[i].edge;
        text_add(out,
                 "%s\n{\"from\":%" PRIu32 ",\"to\":%" PRIu32
                 ",\"bytes_per_second\":%" PRIu64
                 ",\"round_trip_seconds\":%.9f,\"age_seconds\":%.3f}",
                 i > 0 ? "," : "", m->peers[links[i].from].rank,
                 m->peers[links[i].to].rank, e->rate, (double)e->rtt / PCCL_S,
                 (double)(m->now - e->since) / PCCL_S);
    }
    text_add(out, "]");
}

/* One a line: a reader may leave out those that it has (http_gate.h). */
static void add_events(const struct run_events *events,
                       struct growing_text *out)
{
    for (uint32_t i = 0; i < events_kept(events); i++) {
        const struct run_event *e = events_get(events, i);
        text_add(out, "%s\n{\"time\":%lld,\"epoch\":%" PRIu32 ",\"kind\":",
                 i > 0 ? "," : "", (long long)e->at, e->epoch);
        text_add_json(out, e->kind);
        text_add(out, ",\"text\":");
        text_add_json(out, e->text);
        text_add(out, "}");
    }
    text_add(out, "\n]");
}

/* Time, collectives and bytes of all members, the oldest first. */
static void add_history(const struct status_source *s, struct growing_text *out)
{
    const struct run_history *h = s->history;
    uint64_t kept = h->count < HISTORY_MAX ? h->count : HISTORY_MAX;
    text_add(out, ",\n\"history\":[");
    for (uint64_t i = h->count - kept; i < h->count; i++) {
        const struct run_sample *t = &h->list[i % HISTORY_MAX];
        text_add(out, "%s[%.3f,%" PRIu64 ",%" PRIu64 "]",
                 i > h->count - kept ? "," : "",
                 (double)(t->at - s->first) / PCCL_S, t->operations,
                 t->received);
    }
    text_add(out, "]");
}

void run_status_json(const struct status_source *s, struct growing_text *out,
                     size_t *events, size_t *history)
{
    const struct master *m = s->machine;
    text_add(out, "{\"address\":");
    text_add_json(out, s->address);
    text_add(
        out,
        ",\"begun\":%lld,\"time\":%lld,\"up_seconds\":%.1f,\"epoch\":%" PRIu32
        ",\"member_count\":%" PRIu32 ",\"newcomer_count\":%" PRIu32
        ",\"quorum\":%" PRIu32 ",\"minimum\":%" PRIu32
        ",\"deadline_seconds\":%.3f",
        (long long)s->begun, (long long)s->now, s->up, m->round_last,
        master_count(m, PEER_MEMBER), master_count(m, PEER_REGISTERED),
        m->quorum, m->minimum, (double)m->deadline / PCCL_S);
    text_add(out, ",\n\"groups\":[");
    for (uint32_t i = 0; i < m->group_count; i++) {
        const struct master_group *g = &m->groups[m->group_list[i]];
        text_add(out,
                 "%s{\"number\":%" PRIu32 ",\"epoch\":%" PRIu32
                 ",\"changing\":%s,\"all_linked\":%s",
                 i > 0 ? "," : "", g->number, g->epoch,
                 g->phase == GROUP_OPEN ? "false" : "true",
                 g->mesh ? "true" : "false");
        if (g->samples.used)
            text_add(out,
                     ",\"step\":%" PRIu64 ",\"samples\":%" PRIu64
                     ",\"samples_target\":%" PRIu64,
                     g->samples.step, g->samples.sum, g->samples.target);
        text_add(out, "}");
    }
    text_add(out, "],\n\"traffic\":{\"at_seconds\":%.3f,",
             (double)(m->now - s->first) / PCCL_S);
    add_traffic(&m->traffic, out);
    text_add(out, "}");
    add_stalls(m, out);
    add_peers(m, out);
    add_links(m, out);
    text_add(out, ",\n\"event_count\":%" PRIu64 ",\"events\":[",
             s->events->count);
    *events = out->size;
    add_events(s->events, out);
    *history = out->size;
    add_history(s, out);
    text_add(out, "}\n");
}
