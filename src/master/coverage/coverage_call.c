/* coverage_call.c - calls of partial all-reduces: which round each is for, and
 * whether its arguments are those of the others. See coverage.h; rules A1 to A3
 * and A9 of COVERAGE.md. */
#include "coverage.h"

#include <stdio.h>
#include <stdlib.h>

static struct coverage_member *
add_member(const struct master *m, struct coverage_round *r, uint32_t link)
{
    if (r->member_count == WIRE_AVERAGED_MAX) return NULL;
    struct coverage_member *c = &r->members[r->member_count++];
    r->places[link] = (uint16_t)r->member_count;
    *c = (struct coverage_member){.id = m->peers[link].info.id, .link = link};
    return c;
}

/* The members of the group, by rank: in this order contributions are summed. */
static bool add_members(const struct master *m, struct coverage_round *r,
                        uint32_t group)
{
    uint16_t links[PEERS_MAX] = {0}; /* by rank, plus 1 */
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (p->state == PEER_MEMBER && p->group == group && !p->leaving)
            links[p->rank] = (uint16_t)(i + 1);
    }
    for (uint32_t i = 0; i < PEERS_MAX; i++)
        if (links[i] > 0 && !add_member(m, r, links[i] - 1u)) return false;
    return true;
}

/* Rounds of other tags that are kept for their counts alone; the oldest one of
 * them makes room for a new tag. */
static bool make_room(struct master_group *g, uint64_t tag)
{
    uint32_t tags = 0;
    struct coverage_round **oldest = NULL;
    for (struct coverage_round **at = &g->averages; *at; at = &(*at)->next) {
        bool newest = true; /* of its tag */
        if ((*at)->tag == tag) return true;
        for (const struct coverage_round *l = (*at)->next; l; l = l->next)
            newest &= l->tag != (*at)->tag;
        tags += newest;
        if (newest && (*at)->released && !oldest) oldest = at;
    }
    if (tags < COVERAGE_TAGS_MAX) return true;
    if (oldest) coverage_free(oldest);
    return oldest != NULL;
}

static struct coverage_round *open_round(struct master *m, uint32_t link,
                                         const struct wire_msg *msg)
{
    uint32_t group = m->peers[link].group;
    struct master_group *g = &m->groups[group];
    uint64_t tag = msg->partial.tag;
    if (!make_room(g, tag)) {
        coverage_send_refusal(m, link, tag, PARTIAL_LIMIT,
                              "too many tags of partial all-reduces are in "
                              "use");
        return NULL;
    }
    struct coverage_round *r = calloc(1, sizeof *r);
    if (!r || !add_members(m, r, group)) {
        coverage_send_refusal(m, link, tag, r ? PARTIAL_LIMIT : PARTIAL_MEMORY,
                              r ? "too many members for a partial all-reduce"
                                : "the coordinator is out of memory");
        free(r);
        return NULL;
    }
    r->tag = tag;
    r->number = ++m->sync_last;
    r->opened_at = m->now;
    r->args = (struct coverage_args){.count = msg->partial.count,
                                     .dtype = msg->partial.dtype,
                                     .redop = msg->partial.redop,
                                     .deadline_ms = msg->partial.deadline_ms,
                                     .gather_ms = msg->partial.gather_ms,
                                     .evict_after = msg->partial.evict_after};
    struct coverage_round **end = &g->averages;
    while (*end) end = &(*end)->next;
    *end = r;
    return r;
}

/* Rule A2: the round that a call is for, or NULL; *lapsed: the caller has
 * missed rounds that are not kept. */
static struct coverage_round *find_round(struct master *m, uint32_t link,
                                         uint64_t tag, bool *lapsed)
{
    const struct master_group *g = &m->groups[m->peers[link].group];
    struct coverage_round *open = NULL;
    *lapsed = false;
    for (struct coverage_round *r = g->averages; r; r = r->next) {
        const struct coverage_member *c = NULL;
        if (r->tag == tag) c = coverage_find(m, r, link);
        if (c && c->lapsed) *lapsed = true;
    }
    if (*lapsed) {
        coverage_missed(m, tag, link);
        return NULL;
    }
    for (struct coverage_round *r = g->averages; r; r = r->next) {
        if (r->tag != tag) continue;
        const struct coverage_member *c = coverage_find(m, r, link);
        if (c && !c->called && !c->out) return r;
        if (!coverage_is_decided(r)) open = r;
    }
    return open;
}

/* What members disagree on, or NULL. */
static const char *difference(const struct coverage_args *a,
                              const struct wire_msg *msg, uint64_t *mine,
                              uint64_t *other)
{
    const struct {
        const char *name;
        uint64_t a, b;
    } fields[] = {
        {"count", a->count, msg->partial.count},
        {"datatype", a->dtype, msg->partial.dtype},
        {"op", a->redop, msg->partial.redop},
        {"deadline_ms", a->deadline_ms, msg->partial.deadline_ms},
        {"gather_ms", a->gather_ms, msg->partial.gather_ms},
        {"evict_after", a->evict_after, msg->partial.evict_after},
    };
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++) {
        if (fields[i].a == fields[i].b) continue;
        *mine = fields[i].a;
        *other = fields[i].b;
        return fields[i].name;
    }
    return NULL;
}

/* Rule A3. Before the decision the round is over for all. */
static bool disagrees(struct master *m, struct coverage_round *r,
                      struct coverage_member *c, const struct wire_msg *msg)
{
    uint64_t theirs, own;
    const char *name = difference(&r->args, msg, &theirs, &own);
    uint32_t self = (uint32_t)(c - r->members);
    if (r->state != COVERAGE_REFUSED && !name) return false;
    if (name && r->state != COVERAGE_REFUSED)
        (void)snprintf(r->text, sizeof r->text,
                       "members disagree on %s of the partial all-reduce with "
                       "tag %llu: %llu at rank %u, %llu at the first to call",
                       name, (unsigned long long)r->tag,
                       (unsigned long long)own, m->peers[c->link].rank,
                       (unsigned long long)theirs);
    coverage_refuse(m, r, self, PARTIAL_DIFFERS, r->text);
    if (r->state == COVERAGE_DECIDED) coverage_missed(m, r->tag, c->link);
    if (coverage_is_decided(r)) return true;
    r->state = COVERAGE_REFUSED;
    r->decided_at = m->now;
    for (uint32_t i = 0; i < r->member_count; i++) {
        if (coverage_waits(m, &r->members[i]))
            coverage_refuse(m, r, i, PARTIAL_DIFFERS, r->text);
    }
    return true;
}

static bool is_valid(const struct wire_msg *msg)
{
    bool redop = msg->partial.redop <= 1; /* REDOP_SUM, REDOP_AVG */
    return redop && msg->partial.weight > 0 &&
           msg->partial.weight <= PARTIAL_WEIGHT_MAX &&
           msg->partial.deadline_ms > 0 &&
           msg->partial.deadline_ms <= INT32_MAX &&
           msg->partial.gather_ms <= msg->partial.deadline_ms &&
           msg->partial.count <= INT64_MAX;
}

void coverage_call(struct master *m, uint32_t link, const struct wire_msg *msg)
{
    struct master_peer *p = &m->peers[link];
    bool lapsed;
    if (!is_valid(msg)) {
        master_drop(m, link, "called a partial all-reduce that cannot be");
        return;
    }
    /* A message that came twice. */
    if (msg->partial.version <= p->average_calls) return;
    p->average_calls = msg->partial.version;
    struct coverage_round *r = find_round(m, link, msg->partial.tag, &lapsed);
    if (lapsed) {
        coverage_send_refusal(m, link, msg->partial.tag, PARTIAL_LATE,
                              "this member has missed rounds of the partial "
                              "all-reduce that are not kept any more");
        return;
    }
    if (!r) r = open_round(m, link, msg);
    if (!r) return;
    struct coverage_member *c = coverage_find(m, r, link);
    if (c && c->failed) {
        coverage_send_refusal(m, link, r->tag, PARTIAL_LATE,
                              "this member's last call of the partial "
                              "all-reduce has failed, and its round is still "
                              "under way");
        return;
    }
    if (!c) c = add_member(m, r, link);
    if (!c || c->called) { /* in its own round still: not by our library */
        master_drop(m, link, "called a partial all-reduce twice");
        return;
    }
    c->called = true;
    c->called_at = m->now;
    c->untaken = p->sync.voted; /* A14: its state was given before */
    c->weight = msg->partial.weight;
    if (!disagrees(m, r, c, msg)) r->changed |= r->state == COVERAGE_MOVING;
}
