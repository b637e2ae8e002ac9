/* run_metrics.c - the state of a run in the text format of Prometheus. See
 * run_status.h. */
#include "run_status.h"

#include "../search/bandwidth.h"
#include "stall.h"
#include "peer_report.h"

#include <inttypes.h>
#include <string.h>

/* The value of a label. A byte that is not printable ASCII becomes a question
 * mark: the format escapes less than JSON does. */
static void add_label(struct growing_text *out, const char *text)
{
    text_add_bytes(out, "\"", 1);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') text_add_bytes(out, "\\", 1);
        text_add_bytes(out, *text >= ' ' && *text <= '~' ? text : "?", 1);
    }
    text_add_bytes(out, "\"", 1);
}

static void begin(struct growing_text *out, const char *name, const char *type,
                  const char *help)
{
    text_add(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void one(struct growing_text *out, const char *name, const char *help,
                double value)
{
    begin(out, name, "gauge", help);
    text_add(out, "%s %.15g\n", name, value);
}

static void add_run(const struct status_source *s, struct growing_text *out)
{
    const struct master *m = s->machine;
    one(out, "pccl_start_time_seconds",
        "When the coordinator began, since the epoch of Unix.",
        (double)s->begun);
    one(out, "pccl_epoch", "Number of the newest view of the run.",
        m->round_last);
    one(out, "pccl_quorum", "Peers that wait for each other at the start.",
        m->quorum);
    one(out, "pccl_deadline_seconds",
        "The longest time that a call waits for one fault.",
        (double)m->deadline / PCCL_S);
    one(out, "pccl_groups", "Groups of members.", m->group_count);
    one(out, "pccl_status_seconds",
        "Time that the coordinator took to write its last status.", s->took);
}

static void add_traffic(const struct wire_traffic *t, struct growing_text *out)
{
    const struct {
        const char *name, *help;
        uint64_t value;
    } all[] = {
        {"pccl_operations_total",
         "Collectives that succeeded, once for each member.", t->operations},
        {"pccl_sent_bytes_total", "Bytes that members sent to each other.",
         t->sent},
        {"pccl_received_bytes_total",
         "Bytes that members received, or read from each other's memory.",
         t->received},
    };
    for (size_t i = 0; i < ARRAY_COUNT(all); i++) {
        begin(out, all[i].name, "counter", all[i].help);
        text_add(out, "%s %" PRIu64 "\n", all[i].name, all[i].value);
    }
}

static void add_states(const struct master *m, struct growing_text *out)
{
    static const char *const states[] = {"member",  "newcomer", "silent",
                                         "stopped", "traced",   "starved",
                                         "leaving", "lost",     "left"};
    uint32_t counts[ARRAY_COUNT(states)] = {0};
    for (uint32_t i = 0; i < m->link_end; i++) {
        enum master_peer_state state = m->peers[i].state;
        if (state != PEER_MEMBER && state != PEER_REGISTERED &&
            state != PEER_DEAD)
            continue;
        const char *name = run_status_state(m, i);
        for (size_t k = 0; k < ARRAY_COUNT(states); k++)
            counts[k] += strcmp(states[k], name) == 0;
    }
    begin(out, "pccl_peers", "gauge", "Peers of the run by state.");
    for (size_t k = 0; k < ARRAY_COUNT(states); k++)
        text_add(out, "pccl_peers{state=\"%s\"} %" PRIu32 "\n", states[k],
                 counts[k]);
}

static void add_noted(const uint64_t *noted, struct growing_text *out)
{
    begin(out, "pccl_events_total", "counter",
          "Events since the coordinator began, by kind.");
    for (uint32_t k = 0; k < NOTE_KIND_COUNT; k++) {
        uint64_t count = noted[k];
        if (k == NOTE_CUT) continue; /* unreachable, as NO_RING */
        if (k == NOTE_NO_RING) count += noted[NOTE_CUT];
        text_add(out, "pccl_events_total{kind=\"%s\"} %" PRIu64 "\n",
                 run_event_kind((enum master_note_kind)k), count);
    }
}

static void add_stalls(const struct master *m, struct growing_text *out)
{
    struct stall stalls[STALLS_MAX];
    uint32_t count = stall_find(m, run_status_age(m), stalls, STALLS_MAX);
    uint32_t counts[CAUSE_COUNT] = {0};
    pccl_ns longest = 0;
    for (uint32_t i = 0; i < count; i++) {
        counts[stalls[i].cause]++;
        if (stalls[i].age > longest) longest = stalls[i].age;
    }
    begin(out, "pccl_stalls", "gauge",
          "Waits of members for another one, by what that one does.");
    for (uint32_t c = 0; c < CAUSE_COUNT; c++) {
        text_add(out, "pccl_stalls{cause=");
        add_label(out, stall_cause_name((enum stall_cause)c));
        text_add(out, "} %" PRIu32 "\n", counts[c]);
    }
    one(out, "pccl_longest_stall_seconds", "Age of the oldest of these waits.",
        (double)longest / PCCL_S);
}

/* ------------------------------------------------------------ each member */

static double heard_of(const struct master *m, uint32_t link)
{
    return (double)(m->now - m->peers[link].last_recv) / PCCL_S;
}

static double cpu_of(const struct master *m, uint32_t link)
{
    return m->reports[link] ? m->reports[link]->self.cpu / 1000. : 0.;
}

static double starved_of(const struct master *m, uint32_t link)
{
    return m->reports[link] ? m->reports[link]->self.starve / 1000. : 0.;
}

static double faults_of(const struct master *m, uint32_t link)
{
    return m->reports[link] ? m->reports[link]->self.faults : 0.;
}

static double operations_of(const struct master *m, uint32_t link)
{
    return m->reports[link] ? (double)m->reports[link]->traffic.operations : 0.;
}

static double sent_of(const struct master *m, uint32_t link)
{
    return m->reports[link] ? (double)m->reports[link]->traffic.sent : 0.;
}

static double received_of(const struct master *m, uint32_t link)
{
    return m->reports[link] ? (double)m->reports[link]->traffic.received : 0.;
}

static double wait_of(const struct master *m, uint32_t link)
{
    const struct peer_report *report = m->reports[link];
    double longest = 0.;
    for (uint32_t i = 0; report && report->current && i < report->wait_count;
         i++) {
        const struct wire_wait *w = &report->waits[i];
        double age = (double)(m->now - report->at) / PCCL_S + w->age_ms / 1000.;
        if (w->blocks && w->kind < WAIT_REQUESTS && age > longest)
            longest = age;
    }
    return longest;
}

static double samples_of(const struct master *m, uint32_t link)
{
    return (double)m->peers[link].samples.total;
}

static const struct series {
    const char *name, *type, *help;
    double (*value)(const struct master *m, uint32_t link);
} series[] = {
    {"pccl_member_heard_seconds", "gauge",
     "Time since the coordinator heard the member.", heard_of},
    {"pccl_member_wait_seconds", "gauge",
     "Age of the call in which the member waits for others, or 0.", wait_of},
    {"pccl_member_cpu_ratio", "gauge",
     "Processors that the member uses: 1 is all of one.", cpu_of},
    {"pccl_member_starved_ratio", "gauge",
     "Part of the time for which its main thread waits for a processor.",
     starved_of},
    {"pccl_member_major_faults", "gauge",
     "Page faults per second that wait for a disk.", faults_of},
    {"pccl_member_operations_total", "counter",
     "Collectives of the member that succeeded.", operations_of},
    {"pccl_member_sent_bytes_total", "counter",
     "Bytes that the member sent to other members.", sent_of},
    {"pccl_member_received_bytes_total", "counter",
     "Bytes that the member received from others, or read from their memory.",
     received_of},
    {"pccl_member_samples_total", "counter",
     "Samples that the member has reported (pcclReportProgress).", samples_of},
};

static void add_series(const struct master *m, const struct series *s,
                       struct growing_text *out)
{
    begin(out, s->name, s->type, s->help);
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (p->state != PEER_MEMBER) continue;
        text_add(out,
                 "%s{group=\"%" PRIu32 "\",rank=\"%" PRIu32
                 "\",launched=\"%" PRId32 "\",host=",
                 s->name, m->groups[p->group].number, p->rank, p->info.hint);
        add_label(out, m->reports[i] ? m->reports[i]->host : "");
        text_add(out, "} %.15g\n", s->value(m, i));
    }
}

/* -------------------------------------------------------------- each link */

static void add_links(const struct master *m, const struct status_link *links,
                      uint32_t count, bool round_trip, struct growing_text *out)
{
    const char *name = round_trip ? "pccl_link_round_trip_seconds"
                                  : "pccl_link_bytes_per_second";
    begin(out, name, "gauge",
          round_trip ? "Round trip of a link, as measured last."
                     : "Rate of a link, as measured last.");
    for (uint32_t i = 0; i < count; i++) {
        const struct master_peer *from = &m->peers[links[i].from];
        const struct bandwidth_edge *e = &links[i].edge;
        if (round_trip && e->rtt == 0) continue;
        text_add(out,
                 "%s{group=\"%" PRIu32 "\",from=\"%" PRIu32 "\",to=\"%" PRIu32
                 "\"} %.15g\n",
                 name, m->groups[from->group].number, from->rank,
                 m->peers[links[i].to].rank,
                 round_trip ? (double)e->rtt / PCCL_S : (double)e->rate);
    }
}

void run_metrics(const struct status_source *s, struct growing_text *out)
{
    const struct master *m = s->machine;
    uint32_t members = master_count(m, PEER_MEMBER);
    add_run(s, out);
    add_states(m, out);
    add_noted(s->noted, out);
    add_traffic(&m->traffic, out);
    add_stalls(m, out);
    if (members <= STATUS_SERIES_MAX)
        for (size_t i = 0; i < ARRAY_COUNT(series); i++)
            add_series(m, &series[i], out);
    if (!m->edges || members > STATUS_LINKS_MAX) return;
    struct status_link links[STATUS_LINKS_MAX * STATUS_LINKS_MAX];
    uint32_t count = run_status_links(m, links);
    add_links(m, links, count, false, out);
    add_links(m, links, count, true, out);
}
