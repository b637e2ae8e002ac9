/* coverage.c - rounds of partial all-reduces, from the first call to the last
 * copy. See coverage.h; rules A of COVERAGE.md. */
#include "coverage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool stays(const struct master *m, const struct coverage_member *c)
{
    const struct master_peer *p = &m->peers[c->link];
    return p->state == PEER_MEMBER && p->info.id == c->id && !p->leaving;
}

bool coverage_lives(const struct master *m, const struct coverage_member *c)
{
    return !c->failed && stays(m, c);
}

bool coverage_waits(const struct master *m, const struct coverage_member *c)
{
    return c->called && !c->ended && coverage_lives(m, c);
}

bool coverage_is_decided(const struct coverage_round *r)
{
    return r->state == COVERAGE_DECIDED || r->state == COVERAGE_REFUSED;
}

static pccl_ns after(const struct coverage_round *r, uint32_t eighths)
{
    pccl_ns whole = (pccl_ns)r->args.deadline_ms * PCCL_MS;
    return r->opened_at + whole / 8 * eighths;
}

static pccl_ns gathered_at(const struct coverage_round *r)
{
    if (r->args.gather_ms == 0) return after(r, 2);
    return r->opened_at + (pccl_ns)r->args.gather_ms * PCCL_MS;
}

/* When this member has missed the round (A9). */
static pccl_ns lapses_at(const struct coverage_round *r,
                         const struct coverage_member *c)
{
    pccl_ns from = r->decided_at > c->called_at ? r->decided_at : c->called_at;
    return from + (pccl_ns)r->args.deadline_ms * PCCL_MS;
}

void coverage_free(struct coverage_round **slot)
{
    struct coverage_round *r = *slot;
    *slot = r->next;
    free(r->parts);
    free(r);
}

void coverage_clear(struct master_group *g)
{
    while (g->averages) coverage_free(&g->averages);
}

struct coverage_member *coverage_find(const struct master *m,
                                      struct coverage_round *r, uint32_t link)
{
    uint32_t place = r->places[link];
    if (place == 0 || r->members[place - 1].id != m->peers[link].info.id)
        return NULL;
    return &r->members[place - 1];
}

/* Rule A13. What it has called for is over for it. */
void coverage_missed(struct master *m, uint64_t tag, uint32_t link)
{
    struct coverage_round *r = m->groups[m->peers[link].group].averages;
    for (; r; r = r->next) {
        struct coverage_member *c = NULL;
        if (r->tag == tag) c = coverage_find(m, r, link);
        if (!c) continue;
        c->lapsed = false;
        c->out = true;
    }
}

static void find_sets(const struct master *m, const struct coverage_round *r,
                      struct coverage_sets *s)
{
    memset(s, 0, sizeof *s);
    for (uint32_t i = 0; i < r->member_count; i++) {
        const struct coverage_member *c = &r->members[i];
        if (!coverage_lives(m, c)) continue;
        coverage_put(s->lives, i);
        if (c->called && !c->ended) coverage_put(s->waits, i);
    }
}

static uint32_t count_both(const uint64_t *a, const uint64_t *b)
{
    uint32_t count = 0;
    for (uint32_t w = 0; w < COVERAGE_WORDS; w++)
        count += (uint32_t)__builtin_popcountll(a[w] & b[w]);
    return count;
}

/* ---------------------------------------------------------------- reports */

static void on_folded(struct coverage_round *r, uint32_t self,
                      const struct wire_msg *msg)
{
    if (r->state != COVERAGE_MOVING || msg->partial.part >= r->part_count ||
        msg->set_count != 1 || msg->set_size > sizeof r->parts[0].set)
        return;
    struct coverage_part *p = &r->parts[msg->partial.part];
    if (p->owner != self || p->folded) return;
    uint64_t set[COVERAGE_WORDS] = {0};
    for (uint32_t i = 0; i < 8 * msg->set_size; i++) {
        if (!(msg->sets[i / 8] >> i % 8 & 1)) continue;
        if (i >= r->member_count || !r->members[i].called) return;
        coverage_put(set, i);
    }
    if (!coverage_has(set, self)) return;
    memcpy(p->set, set, sizeof set);
    p->folded = true;
    p->hash = msg->partial.hash;
    coverage_put(p->holders, self);
    /* HOLDS of others may have been faster than this. */
    for (uint32_t w = 0; w < COVERAGE_WORDS && p->claimed == p->hash; w++)
        p->holders[w] |= p->claims[w];
}

static void note_claim(struct coverage_part *p, uint32_t member, uint64_t hash)
{
    bool any = false;
    for (uint32_t w = 0; w < COVERAGE_WORDS; w++) any |= p->claims[w] != 0;
    if (!any) p->claimed = hash;
    if (p->claimed == hash) coverage_put(p->claims, member);
}

static void on_holds(struct coverage_round *r, uint32_t self,
                     const struct wire_msg *msg)
{
    for (uint32_t i = 0; i + 1 < msg->id_count; i += 2) {
        if (msg->ids[i] >= r->part_count) return;
        struct coverage_part *p = &r->parts[msg->ids[i]];
        uint64_t hash = msg->ids[i + 1];
        if (p->folded && p->hash == hash) coverage_put(p->holders, self);
        if (!p->folded && !coverage_is_decided(r)) note_claim(p, self, hash);
    }
    if (r->reports) r->members[self].reported = true;
}

/* Rule A12. Whatever was said of the round before has been read by then. */
static void on_failed(struct master *m, uint32_t link,
                      const struct coverage_round *r, struct coverage_member *c,
                      const struct wire_msg *msg)
{
    if (c && c->called) {
        c->failed = true;
        coverage_missed(m, r->tag, link);
    }
    struct wire_msg answer = {.type = WIRE_COVERAGE};
    answer.partial.word = PARTIAL_RELEASE;
    answer.partial.tag = msg->partial.tag;
    answer.partial.number = msg->partial.number;
    master_send(m, link, &answer);
}

void coverage_received(struct master *m, uint32_t link,
                       const struct wire_msg *msg)
{
    const struct master_peer *p = &m->peers[link];
    if (msg->partial.word == PARTIAL_CALL) {
        coverage_call(m, link, msg);
        return;
    }
    struct coverage_round *r = m->groups[p->group].averages;
    while (r && r->number != msg->partial.number) r = r->next;
    struct coverage_member *c = r ? coverage_find(m, r, link) : NULL;
    if (msg->partial.word == PARTIAL_FAILED) {
        on_failed(m, link, r, c, msg);
        return;
    }
    if (!c || !coverage_waits(m, c)) return; /* it is over */
    uint32_t self = (uint32_t)(c - r->members);
    if (msg->partial.word == PARTIAL_FOLDED)
        on_folded(r, self, msg);
    else
        on_holds(r, self, msg);
}

/* --------------------------------------------------------------- decision */

static uint32_t count_waiting(const struct master *m,
                              const struct coverage_round *r)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->member_count; i++)
        count += coverage_waits(m, &r->members[i]);
    return count;
}

/* Rule A10: counted from round to round of the tag; a round without any part
 * hands on the counts of the one before. */
static void count_absences(const struct master *m, const struct master_group *g,
                           struct coverage_round *r, bool any)
{
    struct coverage_round *before = NULL;
    for (struct coverage_round *b = g->averages; b != r; b = b->next) {
        if (b->tag == r->tag && b->state == COVERAGE_DECIDED) before = b;
    }
    for (uint32_t i = 0; i < r->member_count; i++) {
        struct coverage_member *c = &r->members[i];
        const struct coverage_member *past = NULL;
        if (before && stays(m, c)) past = coverage_find(m, before, c->link);
        c->absences = any;
        if (past) c->absences += past->absences;
        if (c->contributed) c->absences = 0;
    }
}

/* Whose call has failed is absent like any other. */
static void evict_absent(struct master *m, const struct coverage_round *r)
{
    for (uint32_t i = 0; i < r->member_count; i++) {
        const struct coverage_member *c = &r->members[i];
        if (r->args.evict_after == 0 || !stays(m, c) ||
            c->absences < r->args.evict_after)
            continue;
        master_drop(m, c->link,
                    "it contributed to no part of several partial all-reduces "
                    "in a row");
    }
}

/* Their contributions are in some committed part. */
static void find_contributors(struct coverage_round *r)
{
    uint64_t all[COVERAGE_WORDS] = {0};
    for (uint32_t i = 0; i < r->part_count; i++) {
        const struct coverage_part *p = &r->parts[i];
        for (uint32_t w = 0; w < COVERAGE_WORDS && p->committed; w++)
            all[w] |= p->set[w];
    }
    for (uint32_t i = 0; i < r->member_count; i++)
        r->members[i].contributed = coverage_has(all, i);
}

/* Rule A7: a part is committed if at least half of those that wait have it. */
static void decide(struct master *m, struct master_group *g,
                   struct coverage_round *r, const struct coverage_sets *s)
{
    uint32_t waiting = count_both(s->waits, s->waits);
    bool any = false;
    r->state = COVERAGE_DECIDED;
    r->decided_at = m->now;
    r->changed = true;
    for (uint32_t i = 0; i < r->part_count; i++) {
        struct coverage_part *p = &r->parts[i];
        uint32_t holders = p->folded ? count_both(p->holders, s->lives) : 0;
        p->committed = holders > 0 && 2 * holders >= waiting;
        any |= p->committed;
    }
    find_contributors(r);
    count_absences(m, g, r, any);
    if (any) evict_absent(m, r);
}

/* Everything that can still come has come everywhere. */
static bool is_complete(const struct coverage_round *r,
                        const struct coverage_sets *s)
{
    for (uint32_t i = 0; i < r->part_count; i++) {
        const struct coverage_part *p = &r->parts[i];
        for (uint32_t w = 0;
             w < COVERAGE_WORDS && coverage_has(s->lives, p->owner); w++)
            if (s->waits[w] & ~p->holders[w]) return false;
    }
    return true;
}

static bool all_reported(const struct master *m, const struct coverage_round *r)
{
    for (uint32_t i = 0; i < r->member_count; i++) {
        if (coverage_waits(m, &r->members[i]) && !r->members[i].reported)
            return false;
    }
    return true;
}

/* A member was lost since the last PLAN or FETCH. */
static bool note_gone(const struct master *m, struct coverage_round *r)
{
    bool news = false;
    for (uint32_t i = 0; i < r->member_count; i++) {
        if (coverage_has(r->gone, i) || coverage_lives(m, &r->members[i]))
            continue;
        coverage_put(r->gone, i);
        news = true;
    }
    return news;
}

static void gather(struct master *m, struct coverage_round *r)
{
    bool all = true;
    for (uint32_t i = 0; i < r->member_count; i++) {
        const struct coverage_member *c = &r->members[i];
        all &= c->called || c->out || !coverage_lives(m, c);
    }
    if (!all && m->now < gathered_at(r)) return;
    if (!coverage_cut(m, r)) {
        for (uint32_t i = 0; i < r->member_count; i++) {
            if (coverage_waits(m, &r->members[i]))
                coverage_refuse(m, r, i, PARTIAL_MEMORY,
                                "the coordinator is out of memory");
        }
        return;
    }
    r->state = COVERAGE_MOVING;
    r->changed = true;
}

static void move(struct master *m, struct master_group *g,
                 struct coverage_round *r)
{
    r->changed |= note_gone(m, r);
    if (r->changed) coverage_send_plan(m, r);
    r->changed = false;
    if (m->now >= after(r, 4) && !r->folds) {
        r->folds = true;
        coverage_send_all(m, r, PARTIAL_FOLD);
    }
    if (m->now >= after(r, 7) && !r->reports) {
        r->reports = true;
        coverage_send_all(m, r, PARTIAL_REPORT);
    }
    struct coverage_sets sets;
    find_sets(m, r, &sets);
    bool over = is_complete(r, &sets) || m->now >= after(r, 8) ||
                (r->reports && all_reported(m, r));
    if (over) decide(m, g, r, &sets);
}

/* ------------------------------------------------------- after the decision */

/* Those that have all committed parts. */
static void find_complete(const struct coverage_round *r, uint64_t *set)
{
    memset(set, 0xff, COVERAGE_WORDS * sizeof *set);
    for (uint32_t i = 0; i < r->part_count; i++) {
        const struct coverage_part *p = &r->parts[i];
        for (uint32_t w = 0; w < COVERAGE_WORDS && p->committed; w++)
            set[w] &= p->holders[w];
    }
}

/* Rule A8: a part whose holders are all lost is missing, after all. No survivor
 * was told that it is committed: who was told held it. */
static void give_up_lost_parts(struct coverage_round *r,
                               const struct coverage_sets *s)
{
    for (uint32_t i = 0; i < r->part_count; i++) {
        struct coverage_part *p = &r->parts[i];
        if (!p->committed || count_both(p->holders, s->lives) > 0) continue;
        p->committed = false;
        r->changed = true;
    }
}

/* The round is not over for this member. */
static bool is_due(const struct master *m, const struct coverage_member *c)
{
    return coverage_lives(m, c) && !c->ended && (c->called || !c->out);
}

static bool is_over(const struct master *m, const struct coverage_round *r)
{
    for (uint32_t i = 0; i < r->member_count; i++) {
        if (is_due(m, &r->members[i])) return false;
    }
    return true;
}

static void refuse_late(struct master *m, struct coverage_round *r,
                        uint32_t member, const char *text)
{
    coverage_refuse(m, r, member, PARTIAL_LATE, text);
    coverage_missed(m, r->tag, r->members[member].link);
}

/* END, FETCH or REFUSE to those that wait. */
static void deliver_to(struct master *m, struct coverage_round *r,
                       const struct coverage_sets *s, const uint64_t *complete,
                       bool last)
{
    struct coverage_letter end, fetch;
    end.made = fetch.made = false;
    for (uint32_t i = 0; i < r->member_count; i++) {
        struct coverage_member *c = &r->members[i];
        if (!coverage_has(s->waits, i)) continue;
        if (coverage_has(complete, i)) {
            coverage_send_end(m, r, i, last, &end);
        } else if (m->now >= lapses_at(r, c)) {
            refuse_late(m, r, i,
                        "this member did not get the parts within a deadline "
                        "after the decision");
            fetch.made = false; /* others do not get them from it */
        } else if (r->changed || !c->fetches) {
            coverage_send_fetch(m, r, s, i, &fetch);
        }
    }
}

static void deliver(struct master *m, struct coverage_round *r)
{
    struct coverage_sets sets;
    uint64_t complete[COVERAGE_WORDS];
    find_sets(m, r, &sets);
    r->changed |= note_gone(m, r);
    give_up_lost_parts(r, &sets);
    if (r->changed) find_contributors(r);
    find_complete(r, complete);
    bool all = true;   /* all that live have all */
    bool first = true; /* nobody has ended: END releases at once */
    for (uint32_t i = 0; i < r->member_count; i++) {
        const struct coverage_member *c = &r->members[i];
        all &= !is_due(m, c) || (c->called && coverage_has(complete, i));
        first &= !c->ended || !coverage_lives(m, c);
    }
    deliver_to(m, r, &sets, complete, all && first);
    r->changed = false;
    if (!is_over(m, r)) return;
    if (!(all && first)) coverage_send_all(m, r, PARTIAL_RELEASE);
    r->released = true;
}

/* Rule A9: no more than so many decided rounds of a tag are kept. True: for a
 * member that waited others are over, too. */
static bool drop_round(struct master *m, struct coverage_round **slot)
{
    struct coverage_round *r = *slot;
    bool refused = false;
    for (uint32_t i = 0; i < r->member_count; i++) {
        struct coverage_member *c = &r->members[i];
        if (!is_due(m, c)) continue;
        if (c->called) {
            refuse_late(m, r, i,
                        "the parts of this round are not kept any more");
            refused = true;
            continue;
        }
        for (struct coverage_round *l = r->next; l; l = l->next) {
            struct coverage_member *later = NULL;
            if (l->tag == r->tag) later = coverage_find(m, l, c->link);
            if (later) later->lapsed = true;
        }
    }
    /* Of one that was refused nobody has copies. */
    if (r->state == COVERAGE_DECIDED) coverage_send_all(m, r, PARTIAL_RELEASE);
    coverage_free(slot);
    return refused;
}

/* Of the decided rounds of a tag the last one is kept for its counts, and those
 * before it as long as somebody needs them, within the limit. */
static bool drop_old(struct master *m, struct master_group *g)
{
    bool refused = false;
    for (struct coverage_round **at = &g->averages; *at;) {
        uint32_t later = 0;
        for (const struct coverage_round *l = (*at)->next; l; l = l->next)
            later += l->tag == (*at)->tag && coverage_is_decided(l);
        if (coverage_is_decided(*at) && later > 0 && (*at)->released)
            coverage_free(at);
        else if (coverage_is_decided(*at) && later >= COVERAGE_KEPT)
            refused |= drop_round(m, at);
        else
            at = &(*at)->next;
    }
    return refused;
}

static void settle_rounds(struct master *m, struct master_group *g)
{
    for (struct coverage_round **at = &g->averages; *at;) {
        struct coverage_round *r = *at;
        bool dead = !coverage_is_decided(r) && count_waiting(m, r) == 0;
        if (dead) { /* nobody is left who has called: as if it never was */
            coverage_free(at);
            continue;
        }
        if (r->state == COVERAGE_GATHERING) gather(m, r);
        if (r->state == COVERAGE_MOVING) move(m, g, r);
        if (r->state == COVERAGE_DECIDED && !r->released) deliver(m, r);
        if (r->state == COVERAGE_REFUSED) r->released |= is_over(m, r);
        at = &r->next;
    }
}

void coverage_settle(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    settle_rounds(m, g);
    while (drop_old(m, g)) settle_rounds(m, g);
}

/* --------------------------------------------------------------------- time */

static pccl_ns next_of(const struct master *m, const struct coverage_round *r)
{
    pccl_ns next = PCCL_NEVER;
    if (r->state == COVERAGE_GATHERING) return gathered_at(r);
    if (r->state == COVERAGE_MOVING)
        return after(r, !r->folds ? 4 : !r->reports ? 7 : 8);
    if (r->state != COVERAGE_DECIDED || r->released) return next;
    for (uint32_t i = 0; i < r->member_count; i++) {
        if (!coverage_waits(m, &r->members[i])) continue;
        pccl_ns lapses = lapses_at(r, &r->members[i]);
        if (lapses < next) next = lapses;
    }
    return next;
}

pccl_ns coverage_next(const struct master *m)
{
    pccl_ns next = PCCL_NEVER;
    for (uint32_t i = 0; i < m->group_count; i++) {
        const struct master_group *g = &m->groups[m->group_list[i]];
        for (const struct coverage_round *r = g->averages; r; r = r->next) {
            pccl_ns at = next_of(m, r);
            if (at < next) next = at;
        }
    }
    return next > m->now ? next : m->now;
}
