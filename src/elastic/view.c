/* view.c - see view.h. */
#include "view.h"

#include <string.h>

uint32_t view_find(const struct view *v, uint64_t id)
{
    for (uint32_t i = 0; i < v->size; i++) {
        if (v->ids[i] == id) return i;
    }
    return v->size;
}

static bool listed(const uint64_t *ids, uint32_t count, uint64_t id)
{
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] == id) return true;
    }
    return false;
}

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

bool view_propose(struct view *next, const struct view *base,
                  const struct wire_msg *msg, uint64_t self)
{
    next->size = 0;
    if (msg->epoch != base->epoch || msg->round <= base->epoch) return false;
    for (uint32_t i = 0; i < base->size; i++) {
        if (listed(msg->ids, msg->id_count, base->ids[i])) continue;
        next->members[next->size++] = base->members[i];
    }
    for (uint32_t i = 0; i < msg->member_count; i++) {
        if (next->size == PEERS_MAX) return false;
        next->members[next->size++] = msg->members[i];
    }
    for (uint32_t i = 0; i < next->size; i++)
        next->ids[i] = next->members[i].id;
    next->rank = view_find(next, self);
    next->epoch = msg->round;
    next->ring = msg->view.ring;
    next->mesh = msg->view.mesh;
    next->tree = msg->view.tree;
    next->grid = msg->view.grid;
    next->survey = msg->view.survey;
    next->has_order = msg->order_count > 0;
    next->has_sites = msg->site_count > 0;
    if (next->rank == next->size || !order_valid(msg, next->size) ||
        !sites_valid(msg, next->size) || !relays_valid(msg, next->size))
        return false;
    if (next->has_order)
        memcpy(next->order, msg->order, next->size * sizeof next->order[0]);
    next->relay_count = msg->relay_count;
    if (next->relay_count > 0)
        memcpy(next->relays, msg->relays,
               next->relay_count * sizeof next->relays[0]);
    if (next->has_sites)
        memcpy(next->sites, msg->sites, next->size * sizeof next->sites[0]);
    return true;
}

void notified_all(struct notified *t, const struct view *v)
{
    t->epoch = v->epoch;
    t->size = v->size;
    t->rank = v->rank;
    t->world = v->world;
    t->groups = v->groups;
    t->largest = v->largest;
    t->traits = 0;
    memcpy(t->members, v->members, v->size * sizeof v->members[0]);
    t->loss_first += t->loss_count;
    t->loss_count = 0;
    t->removed_count = 0;
}

bool notified_push(struct notified *t, const struct view *now,
                   const uint64_t *ids, uint32_t count, uint32_t traits)
{
    if (t->loss_count == 0) t->removed_count = 0;
    if (t->loss_count == PEERS_MAX || count > PEERS_MAX - t->removed_count)
        return false;
    t->losses[t->loss_count++] =
        (struct loss){now->epoch,       now->world, now->groups, now->largest,
                      t->removed_count, count,      traits};
    memcpy(t->removed + t->removed_count, ids, count * sizeof ids[0]);
    t->removed_count += count;
    return true;
}

static void tell_one(struct notified *t, uint64_t self)
{
    const struct loss *l = &t->losses[0];
    uint32_t size = 0;
    for (uint32_t i = 0; i < t->size; i++) {
        if (listed(t->removed + l->first, l->count, t->members[i].id)) continue;
        if (t->members[i].id == self) t->rank = size;
        t->members[size++] = t->members[i];
    }
    t->size = size;
    t->epoch = l->epoch;
    t->world = l->world;
    t->groups = l->groups;
    t->largest = l->largest;
    t->traits |= l->traits;
    t->loss_first++;
    t->loss_count--;
    memmove(t->losses, t->losses + 1, t->loss_count * sizeof t->losses[0]);
}

void notified_advance(struct notified *t, uint32_t loss, uint64_t self)
{
    if (t->loss_count > 0 && t->loss_first <= loss) t->traits = 0;
    while (t->loss_count > 0 && t->loss_first <= loss) tell_one(t, self);
}

uint32_t notified_loss_of(const struct notified *t, const uint64_t *ids,
                          uint32_t count)
{
    for (uint32_t i = 0; i < t->loss_count; i++) {
        const struct loss *l = &t->losses[i];
        for (uint32_t k = 0; k < count; k++) {
            if (listed(t->removed + l->first, l->count, ids[k]))
                return t->loss_first + i;
        }
    }
    return 0;
}
