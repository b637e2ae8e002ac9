/* bandwidth.c - the store of measured links, and estimates for the others. */
#include "bandwidth_store.h"

#include <string.h>

/* Estimates for scopes without any measurement: loopback, a 10 Gbit/s network,
 * a gigabit line across a continent. Mainly their order matters: before any
 * measurement it makes peers of one host neighbours, then peers of one site. */
static const struct {
    uint64_t rate, rtt;
} scope_default[SCOPE_COUNT] = {
    [SCOPE_HOST] = {10000000000u, 30000},
    [SCOPE_SITE] = {1250000000u, 500000},
    [SCOPE_FAR] = {125000000u, 50000000},
};

/* Round trips within a site are shorter than this. */
#define SITE_RTT_MAX ((uint64_t)3000000)

static size_t sorted_size(uint32_t peers_max)
{
    return (peers_max * sizeof(uint16_t) + 7) & ~(size_t)7;
}

size_t bandwidth_size(uint32_t peers_max)
{
    return sizeof(struct bandwidth) + sorted_size(peers_max) +
           peers_max * sizeof(struct bandwidth_peer);
}

struct bandwidth *bandwidth_init(void *memory, size_t size, uint32_t peers_max)
{
    PCCL_ASSERT(peers_max >= 1 && peers_max <= PEERS_MAX);
    PCCL_ASSERT(size >= bandwidth_size(peers_max));
    PCCL_ASSERT((uintptr_t)memory % _Alignof(struct bandwidth) == 0);
    memset(memory, 0, bandwidth_size(peers_max));
    struct bandwidth *store = memory;
    char *rest = (char *)(store + 1);
    store->peers_max = peers_max;
    store->sorted = (void *)rest;
    store->peers = (void *)(rest + sorted_size(peers_max));
    return store;
}

static bool slot_used(const struct bandwidth *store, uint32_t slot)
{
    return slot < store->peers_max && store->peers[slot].used;
}

void bandwidth_add(struct bandwidth *store, uint32_t slot, uint64_t host,
                   uint64_t site)
{
    PCCL_ASSERT(slot < store->peers_max && !store->peers[slot].used);
    struct bandwidth_peer *peer = &store->peers[slot];
    peer->used = true;
    peer->host = host;
    peer->site = site;
    peer->count = 0;
    store->changed = true;
}

static void entry_drop(struct bandwidth_peer *peer, uint32_t i)
{
    peer->row[i] = peer->row[--peer->count];
}

void bandwidth_remove(struct bandwidth *store, uint32_t slot)
{
    PCCL_ASSERT(slot_used(store, slot));
    store->peers[slot].used = false;
    store->peers[slot].count = 0;
    for (uint32_t p = 0; p < store->peers_max; p++) {
        struct bandwidth_peer *peer = &store->peers[p];
        for (uint32_t i = 0; i < peer->count; i++) {
            if (peer->row[i].to != slot) continue;
            entry_drop(peer, i);
            break;
        }
    }
    store->changed = true;
}

const struct bandwidth_entry *bandwidth_find(const struct bandwidth *store,
                                             uint32_t from, uint32_t to)
{
    const struct bandwidth_peer *peer = &store->peers[from];
    for (uint32_t i = 0; i < peer->count; i++)
        if (peer->row[i].to == to) return &peer->row[i];
    return NULL;
}

static bool is_barred(const struct bandwidth_entry *entry)
{
    return entry->rate == 0 && !entry->rtt_only;
}

/* Victims are measurements before unreachable links: a forgotten rate costs a
 * probe, a forgotten firewall costs a failed ring. */
static uint32_t entry_victim(const struct bandwidth_peer *peer)
{
    uint32_t victim = 0;
    for (uint32_t i = 1; i < peer->count; i++) {
        const struct bandwidth_entry *e = &peer->row[i];
        const struct bandwidth_entry *v = &peer->row[victim];
        bool e_barred = is_barred(e), v_barred = is_barred(v);
        if (e_barred != v_barred ? v_barred : e->since < v->since) victim = i;
    }
    return victim;
}

/* The entry of the edge; a new one (rate 0, delay 0) if there was none. */
static struct bandwidth_entry *entry_get(struct bandwidth *store, uint32_t from,
                                         uint32_t to, bool *fresh)
{
    PCCL_ASSERT(slot_used(store, from) && slot_used(store, to) && from != to);
    store->changed = true;
    struct bandwidth_peer *peer = &store->peers[from];
    *fresh = false;
    for (uint32_t i = 0; i < peer->count; i++)
        if (peer->row[i].to == to) return &peer->row[i];
    *fresh = true;
    uint32_t at =
        peer->count < BANDWIDTH_ROW_MAX ? peer->count++ : entry_victim(peer);
    peer->row[at] = (struct bandwidth_entry){.to = (uint16_t)to};
    return &peer->row[at];
}

void bandwidth_measured(struct bandwidth *store, uint32_t from, uint32_t to,
                        uint64_t rate, pccl_ns rtt,
                        enum bandwidth_source source, pccl_ns now)
{
    bool fresh;
    struct bandwidth_entry *entry = entry_get(store, from, to, &fresh);
    uint16_t code = topology_encode(rate ? rate : 1);
    if (rtt > 0) entry->delay = topology_encode((uint64_t)rtt);
    bool known = !fresh && entry->rate != 0;
    if (source == BANDWIDTH_AT_LEAST && known && code <= entry->rate) return;
    entry->at_least = source == BANDWIDTH_AT_LEAST;
    entry->rtt_only = false;
    entry->rate = code;
    entry->since = now;
}

void bandwidth_unreachable(struct bandwidth *store, uint32_t from, uint32_t to,
                           pccl_ns now)
{
    bool fresh;
    struct bandwidth_entry *entry = entry_get(store, from, to, &fresh);
    *entry = (struct bandwidth_entry){.to = (uint16_t)to, .since = now};
}

void bandwidth_rtt(struct bandwidth *store, uint32_t from, uint32_t to,
                   pccl_ns rtt, pccl_ns now)
{
    for (uint32_t back = 0; back < 2; back++) {
        uint32_t a = back ? to : from, b = back ? from : to;
        bool known = bandwidth_find(store, a, b) != NULL, fresh;
        if (!known && store->peers[a].count == BANDWIDTH_ROW_MAX) continue;
        struct bandwidth_entry *entry = entry_get(store, a, b, &fresh);
        if (fresh) entry->rtt_only = true, entry->since = now;
        if (is_barred(entry) || (back && entry->delay != 0)) continue;
        entry->delay = topology_encode((uint64_t)rtt);
    }
}

bool bandwidth_rtts_known(const struct bandwidth *store, const uint16_t *slots,
                          uint32_t n)
{
    if (n > BANDWIDTH_ROW_MAX + 1) return false;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++) {
            if (i == j) continue;
            const struct bandwidth_entry *entry =
                bandwidth_find(store, slots[i], slots[j]);
            if (!entry || (entry->delay == 0 && !is_barred(entry)))
                return false;
        }
    return true;
}

void bandwidth_retry(struct bandwidth *store, uint32_t slot)
{
    PCCL_ASSERT(slot_used(store, slot));
    struct bandwidth_peer *peer = &store->peers[slot];
    for (uint32_t i = peer->count; i-- > 0;)
        if (is_barred(&peer->row[i])) entry_drop(peer, i);
    store->changed = true;
}

static bool is_high_rtt(uint16_t delay)
{
    return topology_decode(delay) >= SITE_RTT_MAX;
}

/* Addresses of one network may still be far apart: the delay decides, if it is
 * known (not 0). */
static enum scope edge_scope(const struct bandwidth *store, uint32_t from,
                             uint32_t to, uint16_t delay)
{
    const struct bandwidth_peer *a = &store->peers[from], *b;
    b = &store->peers[to];
    if (a->host != 0 && a->host == b->host) return SCOPE_HOST;
    if (a->site != 0 && a->site == b->site && !is_high_rtt(delay))
        return SCOPE_SITE;
    return SCOPE_FAR;
}

static void best_merge(struct bandwidth_best *best,
                       const struct bandwidth_entry *entry)
{
    if (is_barred(entry)) return;
    /* A lower bound does not tell the capacity of other links. */
    if (!entry->at_least && entry->rate > best->rate) best->rate = entry->rate;
    if (entry->delay == 0) return;
    if (best->delay == 0 || entry->delay < best->delay)
        best->delay = entry->delay;
}

static void reach_merge(struct bandwidth *store,
                        const struct bandwidth_entry *entry)
{
    if (entry->at_least || entry->delay == 0) return;
    uint16_t *reach = &store->reach[entry->delay >> RTT_CLASS_BITS];
    if (entry->rate > *reach) *reach = entry->rate;
}

void bandwidth_refresh(struct bandwidth *store)
{
    if (!store->changed) return;
    store->changed = false;
    memset(store->reach, 0, sizeof(store->reach));
    for (uint32_t p = 0; p < store->peers_max; p++) {
        memset(store->peers[p].out, 0, sizeof(store->peers[p].out));
        memset(store->peers[p].in, 0, sizeof(store->peers[p].in));
    }
    for (uint32_t p = 0; p < store->peers_max; p++) {
        struct bandwidth_peer *peer = &store->peers[p];
        for (uint32_t i = 0; i < peer->count; i++) {
            const struct bandwidth_entry *entry = &peer->row[i];
            enum scope scope = edge_scope(store, p, entry->to, entry->delay);
            best_merge(&peer->out[scope], entry);
            best_merge(&store->peers[entry->to].in[scope], entry);
            reach_merge(store, entry);
        }
    }
    for (uint32_t c = RTT_CLASSES - 1; c-- > 0;)
        if (store->reach[c + 1] > store->reach[c])
            store->reach[c] = store->reach[c + 1];
}

struct topology_edge bandwidth_guess(const struct bandwidth *store,
                                     uint32_t from, uint32_t to, uint16_t delay)
{
    enum scope scope = edge_scope(store, from, to, delay);
    struct bandwidth_best out = store->peers[from].out[scope];
    struct bandwidth_best in = store->peers[to].in[scope];
    struct topology_edge guess = {out.rate, out.delay};
    if (guess.rate == 0 || (in.rate != 0 && in.rate < guess.rate))
        guess.rate = in.rate;
    if (in.delay > guess.delay) guess.delay = in.delay;
    if (guess.rate == 0)
        guess.rate = topology_encode(scope_default[scope].rate);
    if (guess.delay == 0)
        guess.delay = topology_encode(scope_default[scope].rtt);
    if (delay == 0) return guess;
    guess.delay = delay;
    /* An edge of the next shorter class counts as equally long. */
    uint32_t class = delay >> RTT_CLASS_BITS;
    uint16_t reach = store->reach[class > 0 ? class - 1 : 0];
    if (is_high_rtt(delay) && reach > 0 && reach < guess.rate)
        guess.rate = reach;
    return guess;
}

struct bandwidth_edge bandwidth_look(struct bandwidth *store, uint32_t from,
                                     uint32_t to)
{
    PCCL_ASSERT(slot_used(store, from) && slot_used(store, to) && from != to);
    bandwidth_refresh(store);
    const struct bandwidth_entry *entry = bandwidth_find(store, from, to);
    struct topology_edge guess =
        bandwidth_guess(store, from, to, entry ? entry->delay : 0);
    struct bandwidth_edge edge = {EDGE_UNKNOWN, topology_decode(guess.rate),
                                  topology_decode(guess.delay), PCCL_NEVER};
    if (!entry || entry->rtt_only) return edge;
    edge.state = entry->rate ? EDGE_MEASURED : EDGE_UNREACHABLE;
    edge.rate = topology_decode(entry->rate);
    if (entry->delay) edge.rtt = topology_decode(entry->delay);
    edge.since = entry->since;
    return edge;
}

static struct topology_edge view_guess(const struct bandwidth *store,
                                       uint32_t from, uint32_t to,
                                       uint16_t delay,
                                       struct bandwidth_view view)
{
    struct topology_edge guess = bandwidth_guess(store, from, to, delay);
    if (view.caution == 0 || edge_scope(store, from, to, delay) != SCOPE_FAR)
        return guess;
    guess.rate = topology_encode(topology_decode(guess.rate) >> view.caution);
    if (guess.rate == 0) guess.rate = 1;
    return guess;
}

static struct topology_edge view_known(const struct bandwidth *store,
                                       uint32_t from,
                                       const struct bandwidth_entry *entry,
                                       struct bandwidth_view view)
{
    struct topology_edge guess =
        view_guess(store, from, entry->to, entry->delay, view);
    if (entry->rtt_only) return guess;
    struct topology_edge edge = {entry->rate, entry->delay};
    if (entry->at_least && view.caution == 0 && guess.rate > edge.rate)
        edge.rate = guess.rate;
    if (edge.delay == 0) edge.delay = guess.delay;
    return edge;
}

void bandwidth_fill(struct bandwidth *store, const uint16_t *slots, uint32_t n,
                    struct bandwidth_view view, struct topology_edge *edges)
{
    PCCL_ASSERT(view.caution < 32 && view.coarse_bits <= 11);
    bandwidth_refresh(store);
    for (uint32_t i = 0; i < n; i++) {
        PCCL_ASSERT(slot_used(store, slots[i]));
        store->peers[slots[i]].index = (uint16_t)i;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct bandwidth_peer *peer = &store->peers[slots[i]];
        struct topology_edge *row = &edges[(size_t)i * n];
        for (uint32_t j = 0; j < n; j++)
            row[j] = view_guess(store, slots[i], slots[j], 0, view);
        for (uint32_t e = 0; e < peer->count; e++) {
            uint32_t j = store->peers[peer->row[e].to].index;
            /* The row may contain peers outside this world. */
            if (j >= n || slots[j] != peer->row[e].to) continue;
            row[j] = view_known(store, slots[i], &peer->row[e], view);
        }
        for (uint32_t j = 0; j < n; j++) {
            uint32_t rate = row[j].rate, mask = (1u << view.coarse_bits) - 1;
            if (rate > mask) row[j].rate = (uint16_t)(rate & ~mask);
        }
        row[i] = (struct topology_edge){0, 0};
    }
}
