/* offers.c - see offers.h. */
#include "../master.h"

#include <stdio.h>
#include <stdlib.h>

static bool offers(const struct master *m, uint32_t link, uint32_t group)
{
    const struct master_peer *p = &m->peers[link];
    return p->state == PEER_MEMBER && p->group == group && !p->leaving &&
           p->offer.on;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Rule S10e: the upper median, which no minority that lies can move beyond what
 * others offer. False: nobody offers. */
static bool current(struct master *m, uint32_t group, uint64_t *revision)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->link_end; i++)
        if (offers(m, i, group)) m->ids[count++] = m->peers[i].offer.revision;
    if (count == 0) return false;
    qsort(m->ids, count, sizeof m->ids[0], compare);
    *revision = m->ids[count / 2];
    return true;
}

/* Rule S10f: newcomers that wait, and have fallen too far behind. */
static void refuse_stale(struct master *m, uint32_t group)
{
    uint64_t revision = 0;
    if (!current(m, group, &revision)) return;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        const struct master_offer *o = &p->offer;
        if (p->state != PEER_REGISTERED || p->group != group || p->proposed ||
            !o->fetched || o->revision >= revision ||
            revision - o->revision <= o->max_stale)
            continue;
        char text[WIRE_TEXT_MAX];
        (void)snprintf(text, sizeof text,
                       "the state that it has downloaded is %llu revisions "
                       "behind, and it allows %llu: download again",
                       (unsigned long long)(revision - o->revision),
                       (unsigned long long)o->max_stale);
        master_drop(m, i, text);
    }
}

void offers_take(struct master *m, uint32_t link, const struct wire_msg *msg)
{
    struct master_peer *p = &m->peers[link];
    p->offer = (struct master_offer){.on = msg->offer.on,
                                     .revision = msg->offer.revision,
                                     .guests = msg->offer.guests};
    refuse_stale(m, p->group);
}

void offers_hello(struct master *m, uint32_t link, const struct wire_msg *msg)
{
    struct master_peer *p = &m->peers[link];
    p->offer = (struct master_offer){.fetched = msg->hello.fetched,
                                     .revision = msg->hello.revision,
                                     .max_stale = msg->hello.max_stale};
    if (p->offer.fetched) refuse_stale(m, p->group);
}

static uint32_t group_of(const struct master *m, uint32_t number)
{
    for (uint32_t i = 0; i < m->group_count; i++) {
        if (m->groups[m->group_list[i]].number == number)
            return m->group_list[i];
    }
    return GROUPS_MAX;
}

/* Those that are not behind into m->sorted, at most WIRE_OFFERS_MAX of them,
 * the ones with fewest guests first. */
static uint32_t best(struct master *m, uint32_t group, uint64_t revision)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_offer *o = &m->peers[i].offer;
        if (!offers(m, i, group) || o->revision < revision) continue;
        uint32_t at = count;
        while (at > 0 && o->guests < m->peers[m->sorted[at - 1]].offer.guests)
            at--;
        if (at == WIRE_OFFERS_MAX) continue;
        if (count < WIRE_OFFERS_MAX) count++;
        for (uint32_t k = count - 1; k > at; k--)
            m->sorted[k] = m->sorted[k - 1];
        m->sorted[at] = i;
    }
    return count;
}

/* Rule S10b. */
void offers_tell(struct master *m, uint32_t link, const struct wire_msg *msg)
{
    struct wire_msg reply = {.type = WIRE_OFFERS, .members = m->members};
    if (m->succession.waits) {
        master_evict(m, link, "waits for its members", WIRE_EVICT_ELSEWHERE);
        return;
    }
    uint32_t group = group_of(m, msg->offer.group);
    reply.offer.group = msg->offer.group;
    reply.offer.key = m->key;
    reply.offer.deadline_ms = (uint32_t)(m->deadline / PCCL_MS);
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        reply.offer.group_size += p->state == PEER_MEMBER && p->group == group;
    }
    if (current(m, group, &reply.offer.revision))
        reply.member_count = best(m, group, reply.offer.revision);
    for (uint32_t i = 0; i < reply.member_count; i++)
        m->members[i] = m->peers[m->sorted[i]].info;
    master_send(m, link, &reply);
}
