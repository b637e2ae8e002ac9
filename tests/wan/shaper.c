/* shaper.c - per-flow queues, fair queueing, and the serializer of a link. */
#include "shaper.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static wan_ns duration(uint64_t bytes, uint64_t rate)
{
    return (wan_ns)(bytes * (uint64_t)WAN_S / rate);
}

bool shaper_rule_limits(const struct shaper_rule *rule)
{
    return rule->rate > 0 || rule->flow_rate > 0;
}

void shaper_free(struct shaper *p)
{
    for (uint32_t i = 0; i < p->flow_count; i++) {
        struct packet *packet = p->flows[i].first;
        while (packet) {
            struct packet *next = packet->next;
            free(packet);
            packet = next;
        }
    }
    free(p->flows);
    memset(p, 0, sizeof *p);
}

/* Removes flows that are idle and owe nothing, so that connections may come and
 * go. Tail pointers of the queues point into the table; they are moved with
 * it. */
static void forget_idle(struct shaper *p, wan_ns now)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->flow_count; i++) {
        struct shaper_flow *f = &p->flows[i];
        if (!f->first && f->ready_at <= now) continue;
        p->flows[kept] = *f;
        if (!f->first) p->flows[kept].last = &p->flows[kept].first;
        kept++;
    }
    p->flow_count = kept;
}

static void anchor_tails(struct shaper *p)
{
    for (uint32_t i = 0; i < p->flow_count; i++) {
        struct shaper_flow *f = &p->flows[i];
        if (!f->first) f->last = &f->first;
    }
}

static struct shaper_flow *flow_of(struct shaper *p, uint64_t key, wan_ns now)
{
    for (uint32_t i = 0; i < p->flow_count; i++) {
        if (p->flows[i].key == key) return &p->flows[i];
    }
    if (p->flow_count == p->flow_room) forget_idle(p, now);
    if (p->flow_count == p->flow_room) {
        uint32_t room = p->flow_room ? 2 * p->flow_room : 4;
        struct shaper_flow *more = realloc(p->flows, room * sizeof *more);
        assert(more && "out of memory");
        p->flows = more;
        p->flow_room = room;
        anchor_tails(p);
    }
    struct shaper_flow *f = &p->flows[p->flow_count++];
    *f = (struct shaper_flow){.key = key};
    f->last = &f->first;
    return f;
}

static uint64_t room_of(const struct shaper_rule *rule, uint64_t rate)
{
    if (rule->queue > 0) return rule->queue;
    wan_ns ns = rule->queue_ns > 0 ? rule->queue_ns : SHAPER_QUEUE_NS_DEFAULT;
    return (uint64_t)((double)rate * (double)ns / (double)WAN_S);
}

/* An empty queue always takes a packet: a burst of segments may be larger than
 * a short queue. */
static bool overflows(const struct shaper_rule *rule, uint64_t rate,
                      uint64_t waiting, uint32_t wire)
{
    return rate > 0 && waiting > wire && waiting > room_of(rule, rate);
}

static struct packet *cut_tail(struct shaper *p, struct shaper_flow *f)
{
    struct packet **at = &f->first;
    while ((*at)->next) at = &(*at)->next;
    struct packet *victim = *at;
    *at = NULL;
    f->last = at;
    f->bytes -= victim->wire_size;
    p->bytes -= victim->wire_size;
    return victim;
}

struct packet *shaper_offer(struct shaper *p, const struct shaper_rule *rule,
                            wan_ns now, struct packet *packet)
{
    bool apart = rule->fair || rule->flow_rate > 0;
    struct shaper_flow *f = flow_of(p, apart ? packet->flow : 0, now);
    packet->at = now;
    packet->next = NULL;
    if (!f->first && f->tag < p->virtual_) f->tag = p->virtual_;
    *f->last = packet;
    f->last = &packet->next;
    f->bytes += packet->wire_size;
    p->bytes += packet->wire_size;
    if (overflows(rule, rule->flow_rate, f->bytes, packet->wire_size))
        return cut_tail(p, f);
    if (!overflows(rule, rule->rate, p->bytes, packet->wire_size)) return NULL;
    for (uint32_t i = 0; rule->fair && i < p->flow_count; i++) {
        if (p->flows[i].bytes > f->bytes) f = &p->flows[i];
    }
    return cut_tail(p, f);
}

static wan_ns later(wan_ns a, wan_ns b)
{
    return a > b ? a : b;
}

/* Earliest service of the flow's first packet, if the serializer is free. */
static wan_ns flow_due(const struct shaper_flow *f)
{
    return later(f->first->at, f->ready_at);
}

wan_ns shaper_due(const struct shaper *p)
{
    wan_ns due = WAN_NEVER;
    for (uint32_t i = 0; i < p->flow_count; i++) {
        const struct shaper_flow *f = &p->flows[i];
        if (f->first && flow_due(f) < due) due = flow_due(f);
    }
    return due == WAN_NEVER ? due : later(due, p->free_at);
}

static bool goes_before(const struct shaper_rule *rule,
                        const struct shaper_flow *a,
                        const struct shaper_flow *b)
{
    if (rule->fair && a->tag != b->tag) return a->tag < b->tag;
    if (a->first->at != b->first->at) return a->first->at < b->first->at;
    return a->first->order < b->first->order;
}

struct packet *shaper_take(struct shaper *p, const struct shaper_rule *rule,
                           wan_ns now, wan_ns *leaves)
{
    struct shaper_flow *best = NULL;
    for (uint32_t i = 0; i < p->flow_count; i++) {
        struct shaper_flow *f = &p->flows[i];
        if (!f->first || flow_due(f) > now) continue;
        if (!best || goes_before(rule, f, best)) best = f;
    }
    assert(best && p->free_at <= now && "nothing is due");
    struct packet *packet = best->first;
    best->first = packet->next;
    if (!best->first) best->last = &best->first;
    packet->next = NULL;
    best->bytes -= packet->wire_size;
    p->bytes -= packet->wire_size;
    p->virtual_ = best->tag;
    best->tag += packet->wire_size;
    p->free_at = now;
    if (rule->rate > 0) p->free_at += duration(packet->wire_size, rule->rate);
    best->ready_at = now;
    if (rule->flow_rate > 0)
        best->ready_at += duration(packet->wire_size, rule->flow_rate);
    *leaves = later(p->free_at, best->ready_at);
    return packet;
}
