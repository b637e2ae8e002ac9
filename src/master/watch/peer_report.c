/* peer_report.c - what members tell with their heartbeats (rules W1, W2). It
 * decides nothing. */
#include "peer_report.h"

#include <stdlib.h>
#include <string.h>

static bool same_op(const struct wire_wait *a, const struct wire_wait *b)
{
    return a->kind == b->kind && a->tag == b->tag && a->seq == b->seq &&
           a->scope == b->scope;
}

static const struct wire_wait *find(const struct peer_report *report,
                                    const struct wire_wait *w)
{
    for (uint32_t i = 0; i < report->wait_count; i++)
        if (same_op(&report->waits[i], w)) return &report->waits[i];
    return NULL;
}

static uint64_t rate_of(uint64_t bytes, pccl_ns took)
{
    const double most = 1e18;
    double rate = (double)bytes * PCCL_S / (double)took;
    return rate < most ? (uint64_t)rate : (uint64_t)most;
}

/* How fast data have moved. Of two reports that come close to each other the
 * second one tells nothing about that. */
static void take_paces(struct peer_report *report, const struct wire_msg *msg,
                       pccl_ns now, pccl_ns beat)
{
    struct report_pace paces[WIRE_WAITS_MAX];
    pccl_ns took = now - report->paced_at;
    bool close = took < beat / 2;
    for (uint32_t i = 0; i < msg->wait_count; i++) {
        const struct wire_wait *w = &msg->waits[i];
        const struct wire_wait *old = find(report, w);
        paces[i] = (struct report_pace){.moved = w->moved};
        if (!old || report->epoch != msg->epoch) continue;
        const struct report_pace *before = &report->paces[old - report->waits];
        if (close) paces[i] = *before;
        if (close || w->moved <= before->moved) continue;
        paces[i].rate = rate_of(w->moved - before->moved, took);
        if (paces[i].rate > report->best) report->best = paces[i].rate;
    }
    memcpy(report->paces, paces, msg->wait_count * sizeof *paces);
    if (!close) report->paced_at = now;
}

/* The scopes of its operations; of one that cannot be, nothing is known, as
 * for a report of another epoch. */
static bool take_sets(struct master *m, uint32_t link,
                      struct peer_report *report, const struct wire_msg *msg)
{
    const struct master_group *g = &m->groups[m->peers[link].group];
    report->set_count = 0;
    if (m->peers[link].state != PEER_MEMBER || msg->epoch != g->epoch)
        return false;
    if (msg->set_count > WIRE_UNDER_WAY_MAX) return false;
    if (msg->set_count == 0) return true;
    struct master_set *sets =
        realloc(report->sets, msg->set_count * sizeof *report->sets);
    if (!sets) return false;
    report->sets = sets;
    for (uint32_t k = 0; k < msg->set_count; k++)
        if (!round_read_set(m, link, msg, k, &sets[k])) return false;
    report->set_count = msg->set_count;
    return true;
}

/* Adds the bytes or operations since the last report. The total never goes
 * back, even if a member tells nonsense. */
static void add(uint64_t *total, uint64_t now, uint64_t before)
{
    uint64_t more = now > before ? now - before : 0;
    *total = more > UINT64_MAX - *total ? UINT64_MAX : *total + more;
}

static void add_traffic(struct wire_traffic *total,
                        const struct wire_traffic *now,
                        const struct wire_traffic *before)
{
    add(&total->operations, now->operations, before->operations);
    add(&total->sent, now->sent, before->sent);
    add(&total->received, now->received, before->received);
}

void peer_report_take(struct master *m, uint32_t link,
                      const struct wire_msg *msg)
{
    struct peer_report *report = m->reports[link];
    if (!report) report = calloc(1, sizeof *report);
    if (!report) return;
    m->reports[link] = report;
    take_paces(report, msg, m->now, PCCL_TIME_TO_PING(m->deadline));
    report->at = m->now;
    report->self = msg->waiting.self;
    add_traffic(&m->traffic, &msg->waiting.traffic, &report->traffic);
    report->traffic = msg->waiting.traffic;
    if (msg->waiting.host[0] != '\0')
        memcpy(report->host, msg->waiting.host, sizeof report->host);
    report->current = take_sets(m, link, report, msg);
    report->epoch = msg->epoch;
    report->wait_count = msg->wait_count;
    if (msg->wait_count > 0)
        memcpy(report->waits, msg->waits, msg->wait_count * sizeof *msg->waits);
    report->quiet_count =
        msg->id_count <= 2 * WIRE_QUIET_MAX ? msg->id_count & ~1u : 0;
    if (report->quiet_count > 0)
        memcpy(report->quiet, msg->ids, report->quiet_count * sizeof *msg->ids);
}

const struct master_set *peer_report_scope(const struct peer_report *report,
                                           uint64_t scope)
{
    for (uint32_t k = 0; k < report->set_count; k++)
        if (report->sets[k].number == scope) return &report->sets[k];
    return NULL;
}

uint64_t peer_report_rate(const struct peer_report *report,
                          const struct wire_wait *op)
{
    const struct wire_wait *w = find(report, op);
    return w ? report->paces[w - report->waits].rate : 0;
}

bool peer_report_is_quiet(const struct peer_report *report, uint64_t id)
{
    for (uint32_t i = 0; report && i + 1 < report->quiet_count; i += 2)
        if (report->quiet[i] == id) return true;
    return false;
}
