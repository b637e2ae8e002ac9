/* view.c - see view.h. */
#include "view.h"

#include <stdlib.h>
#include <string.h>

enum { NO_RANK = UINT16_MAX };

static_assert((int)PEERS_MAX < (int)NO_RANK, "a slot names each rank");

static const struct view none;

const struct view *view_none(void)
{
    return &none;
}

/* The arrays of a view lie behind it, the widest elements first. */
static void *place(uint8_t **at, size_t count, size_t size)
{
    void *array = *at;
    *at += count * size;
    return array;
}

struct view *view_new(uint32_t size, uint32_t relays, uint32_t removed)
{
    uint32_t slots = 4;
    while (slots < 2 * size) slots *= 2;
    size_t bytes = sizeof(struct view) + relays * sizeof(struct wire_relay) +
                   (size + removed) * sizeof(uint64_t) +
                   size * (sizeof(struct wire_member) + 2 * sizeof(uint16_t)) +
                   slots * sizeof(uint16_t);
    struct view *v = calloc(1, bytes);
    if (!v) return NULL;
    uint8_t *at = (uint8_t *)(v + 1);
    atomic_init(&v->references, 1);
    v->size = size;
    v->members = place(&at, size, sizeof *v->members);
    v->ids = place(&at, size, sizeof *v->ids);
    v->removed = place(&at, removed, sizeof *v->removed);
    v->relays = place(&at, relays, sizeof *v->relays);
    v->order = place(&at, size, sizeof *v->order);
    v->sites = place(&at, size, sizeof *v->sites);
    v->slots = place(&at, slots, sizeof *v->slots);
    v->slot_mask = slots - 1;
    v->relay_count = relays;
    v->removed_count = removed;
    return v;
}

/* Where the search for an id begins. */
static uint32_t first_slot(const struct view *v, uint64_t id)
{
    return (uint32_t)(id * 0x9e3779b97f4a7c15u >> 32) & v->slot_mask;
}

/* Of an id that stands in the list twice, the first one counts. */
void view_index(struct view *v)
{
    memset(v->slots, 0xff, (v->slot_mask + 1) * sizeof *v->slots);
    v->one_host = v->size > 0 ? v->members[0].host : 0;
    for (uint32_t rank = 0; rank < v->size; rank++) {
        uint64_t id = v->ids[rank] = v->members[rank].id;
        if (v->members[rank].host != v->one_host) v->one_host = 0;
        uint32_t i = first_slot(v, id);
        while (v->slots[i] != NO_RANK && v->ids[v->slots[i]] != id)
            i = (i + 1) & v->slot_mask;
        if (v->slots[i] == NO_RANK) v->slots[i] = (uint16_t)rank;
    }
}

uint32_t view_find(const struct view *v, uint64_t id)
{
    if (v->size == 0) return 0;
    uint32_t i = first_slot(v, id);
    while (v->slots[i] != NO_RANK && v->ids[v->slots[i]] != id)
        i = (i + 1) & v->slot_mask;
    return v->slots[i] == NO_RANK ? v->size : v->slots[i];
}

const struct view *view_retain(const struct view *v)
{
    struct view *mine = (struct view *)(uintptr_t)v;
    if (v != &none) atomic_fetch_add(&mine->references, 1);
    return v;
}

void view_release(const struct view *v)
{
    struct view *mine = (struct view *)(uintptr_t)v;
    if (v && v != &none && atomic_fetch_sub(&mine->references, 1) == 1)
        free(mine);
}

/* ------------------------------------------------------------- proposals */

static bool order_valid(const struct wire_msg *msg, uint32_t size)
{
    if (msg->order_count == 0) return true;
    if (msg->order_count != size) return false;
    bool seen[PEERS_MAX] = {false};
    for (uint32_t i = 0; i < size; i++) {
        if (msg->order[i] >= size || seen[msg->order[i]]) return false;
        seen[msg->order[i]] = true;
    }
    return true;
}

/* So few members may form a hierarchy (rule D15). */
static bool sites_valid(const struct wire_msg *msg, uint32_t size)
{
    if (msg->site_count == 0) return true;
    return msg->site_count == size && size >= 2 && size <= HIERARCHY_MAX;
}

static bool relays_valid(const struct wire_msg *msg, uint32_t size)
{
    for (uint32_t i = 0; i < msg->relay_count; i++) {
        const struct wire_relay *r = &msg->relays[i];
        if (r->b >= size) return false; /* a is less */
        if (r->relay >= size && r->relay != WIRE_RELAY_MASTER) return false;
    }
    return true;
}

/* Marks the members that leave, and returns how many stay or come. */
static uint32_t next_size(const struct view *base, const struct wire_msg *msg,
                          bool *leaves)
{
    uint32_t size = base->size + msg->member_count;
    for (uint32_t i = 0; i < msg->id_count; i++) {
        uint32_t rank = view_find(base, msg->ids[i]);
        if (rank == base->size || leaves[rank]) continue;
        leaves[rank] = true;
        size--;
    }
    return size;
}

static void copy_lists(struct view *next, const struct wire_msg *msg)
{
    if (msg->order_count > 0)
        memcpy(next->order, msg->order, next->size * sizeof *next->order);
    else
        next->order = NULL;
    if (msg->site_count > 0)
        memcpy(next->sites, msg->sites, next->size * sizeof *next->sites);
    else
        next->sites = NULL;
    for (uint32_t i = 0; i < msg->relay_count; i++)
        next->relays[i] = msg->relays[i];
    for (uint32_t i = 0; i < msg->id_count; i++) next->removed[i] = msg->ids[i];
}

struct view *view_propose(const struct view *base, const struct wire_msg *msg,
                          uint64_t self, const char **why)
{
    bool leaves[PEERS_MAX] = {false};
    uint32_t size = next_size(base, msg, leaves), rank = 0;
    *why = "the master proposed a view that cannot be";
    if (msg->epoch != base->epoch || msg->round <= base->epoch) return NULL;
    if (size > PEERS_MAX || !order_valid(msg, size) ||
        !sites_valid(msg, size) || !relays_valid(msg, size))
        return NULL;
    struct view *next = view_new(size, msg->relay_count, msg->id_count);
    if (!next) {
        *why = "out of memory for the view";
        return NULL;
    }
    for (uint32_t i = 0; i < base->size; i++)
        if (!leaves[i]) next->members[rank++] = base->members[i];
    for (uint32_t i = 0; i < msg->member_count; i++)
        next->members[rank++] = msg->members[i];
    view_index(next);
    next->epoch = msg->round;
    next->ring = msg->view.ring;
    next->mesh = msg->view.mesh;
    next->tree = msg->view.tree;
    next->grid = msg->view.grid;
    next->survey = msg->view.survey;
    next->added = msg->member_count;
    next->lost = base->lost + base->size + next->added - size;
    copy_lists(next, msg);
    next->rank = view_find(next, self);
    if (next->rank < next->size) return next;
    view_release(next);
    return NULL;
}

void view_complete(struct view *v, const struct wire_msg *msg)
{
    v->mesh = msg->view.mesh;
    v->tree = msg->view.tree;
    v->grid = msg->view.grid;
    v->world = msg->view.world;
    v->groups = msg->view.groups;
    v->largest = msg->view.largest;
    v->traits = msg->view.traits;
}
