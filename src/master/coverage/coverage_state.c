/* coverage_state.c - which rounds a shared state contains. See coverage.h; rule
 * A14 of COVERAGE.md. */
#include "coverage.h"

static bool in_state(const struct coverage_member *c)
{
    return c->has && !c->untaken;
}

static bool lists(const struct wire_msg *msg, uint64_t tag)
{
    for (uint32_t i = 0; i < msg->id_count; i++)
        if (msg->ids[i] == tag) return true;
    return false;
}

void coverage_votes(struct master *m, uint32_t link, const struct wire_msg *msg)
{
    const struct master_peer *p = &m->peers[link];
    struct coverage_round *first = m->groups[p->group].averages;
    for (struct coverage_round *r = first; r; r = r->next) {
        struct coverage_member *c = coverage_find(m, r, link);
        if (c) c->untaken = c->called && lists(msg, r->tag);
        if (!c || !c->untaken) continue;
        /* Only the last one that it has called for. */
        for (struct coverage_round *b = first; b != r; b = b->next) {
            struct coverage_member *before =
                b->tag == r->tag ? coverage_find(m, b, link) : NULL;
            if (before) before->untaken = false;
        }
    }
}

/* Of those whose content was elected the first that knows the round. */
static const struct coverage_member *holder_of(const struct master *m,
                                               const struct coverage_round *r)
{
    const struct coverage_member *first = NULL;
    for (uint32_t i = 0; i < r->member_count; i++) {
        const struct coverage_member *c = &r->members[i];
        const struct master_peer *p = &m->peers[c->link];
        if (p->info.id != c->id || p->sync.part != PART_SERVES) continue;
        if (in_state(c)) return c;
        if (!first) first = c;
    }
    return first;
}

/* The state of this member is to be that of the holder; NULL: the round is for
 * none of them, and nobody knows whether they have it. */
static void follow(struct master *m, struct coverage_round *r,
                   struct coverage_member *c,
                   const struct coverage_member *holder)
{
    bool in = holder && in_state(holder);
    if (!c->called && !holder) {
        c->lapsed |= coverage_is_decided(r) && !c->out;
        return;
    }
    if (!c->called) {
        bool missed = holder->out && !holder->called;
        c->lapsed = !in && (holder->lapsed || (missed && !c->out));
        c->out = in || missed;
        c->has = in;
    } else if (in && coverage_waits(m, c)) {
        coverage_refuse(m, r, (uint32_t)(c - r->members), PARTIAL_LATE,
                        "the state that this member receives has this round");
    }
    c->has |= in;
    c->untaken &= !in;
}

void coverage_elected(struct master *m, uint32_t group)
{
    struct coverage_round *r = m->groups[group].averages;
    for (; r; r = r->next) {
        const struct coverage_member *holder = holder_of(m, r);
        for (uint32_t i = 0; i < r->member_count; i++) {
            struct coverage_member *c = &r->members[i];
            const struct master_peer *p = &m->peers[c->link];
            if (p->info.id == c->id && p->sync.part == PART_LACKS)
                follow(m, r, c, holder);
        }
    }
}
