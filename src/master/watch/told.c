/* told.c - what members tell with their heartbeats (rules W1, W2). It decides
 * nothing. */
#include "told.h"

#include <stdlib.h>
#include <string.h>

static bool same_op(const struct wire_wait *a, const struct wire_wait *b)
{
    return a->kind == b->kind && a->tag == b->tag && a->seq == b->seq &&
           a->scope == b->scope;
}

static const struct wire_wait *find(const struct master_told *told,
                                    const struct wire_wait *w)
{
    for (uint32_t i = 0; i < told->wait_count; i++)
        if (same_op(&told->waits[i], w)) return &told->waits[i];
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
static void take_paces(struct master_told *told, const struct wire_msg *msg,
                       pccl_ns now, pccl_ns beat)
{
    struct told_pace paces[WIRE_WAITS_MAX];
    pccl_ns took = now - told->paced_at;
    bool close = took < beat / 2;
    for (uint32_t i = 0; i < msg->wait_count; i++) {
        const struct wire_wait *w = &msg->waits[i];
        const struct wire_wait *old = find(told, w);
        paces[i] = (struct told_pace){.moved = w->moved};
        if (!old || told->epoch != msg->epoch) continue;
        const struct told_pace *before = &told->paces[old - told->waits];
        if (close) paces[i] = *before;
        if (close || w->moved <= before->moved) continue;
        paces[i].rate = rate_of(w->moved - before->moved, took);
        if (paces[i].rate > told->best) told->best = paces[i].rate;
    }
    memcpy(told->paces, paces, msg->wait_count * sizeof *paces);
    if (!close) told->paced_at = now;
}

/* The scopes of its operations; of one that cannot be, nothing is known, as
 * for a report of another epoch. */
static bool take_sets(struct master *m, uint32_t link, struct master_told *told,
                      const struct wire_msg *msg)
{
    const struct master_group *g = &m->groups[m->peers[link].group];
    told->set_count = 0;
    if (m->peers[link].state != PEER_MEMBER || msg->epoch != g->epoch)
        return false;
    if (msg->set_count > WIRE_UNDER_WAY_MAX) return false;
    if (msg->set_count == 0) return true;
    struct master_set *sets =
        realloc(told->sets, msg->set_count * sizeof *told->sets);
    if (!sets) return false;
    told->sets = sets;
    for (uint32_t k = 0; k < msg->set_count; k++)
        if (!round_read_set(m, link, msg, k, &sets[k])) return false;
    told->set_count = msg->set_count;
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

void told_take(struct master *m, uint32_t link, const struct wire_msg *msg)
{
    struct master_told *told = m->told[link];
    if (!told) told = calloc(1, sizeof *told);
    if (!told) return;
    m->told[link] = told;
    take_paces(told, msg, m->now, PCCL_TIME_TO_PING(m->deadline));
    told->at = m->now;
    told->self = msg->waiting.self;
    add_traffic(&m->traffic, &msg->waiting.traffic, &told->traffic);
    told->traffic = msg->waiting.traffic;
    if (msg->waiting.host[0] != '\0')
        memcpy(told->host, msg->waiting.host, sizeof told->host);
    told->current = take_sets(m, link, told, msg);
    told->epoch = msg->epoch;
    told->wait_count = msg->wait_count;
    if (msg->wait_count > 0)
        memcpy(told->waits, msg->waits, msg->wait_count * sizeof *msg->waits);
    told->quiet_count =
        msg->id_count <= 2 * WIRE_QUIET_MAX ? msg->id_count & ~1u : 0;
    if (told->quiet_count > 0)
        memcpy(told->quiet, msg->ids, told->quiet_count * sizeof *msg->ids);
}

const struct master_set *told_scope(const struct master_told *told,
                                    uint64_t scope)
{
    for (uint32_t k = 0; k < told->set_count; k++)
        if (told->sets[k].number == scope) return &told->sets[k];
    return NULL;
}

const struct wire_wait *told_lists(const struct master_told *told,
                                   const struct wire_wait *op)
{
    return find(told, op);
}

uint64_t told_rate(const struct master_told *told, const struct wire_wait *op)
{
    const struct wire_wait *w = find(told, op);
    return w ? told->paces[w - told->waits].rate : 0;
}

bool told_answers(const struct master_told *told, const struct wire_wait *op,
                  enum wait_kind answer)
{
    struct wire_wait w = *op;
    w.kind = (uint8_t)answer;
    return find(told, &w) != NULL;
}

bool told_is_quiet(const struct master_told *told, uint64_t id)
{
    for (uint32_t i = 0; told && i + 1 < told->quiet_count; i += 2)
        if (told->quiet[i] == id) return true;
    return false;
}
