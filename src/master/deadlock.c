/* deadlock.c - members that wait for each other in different calls or scopes
 * (rule V4).
 *
 * Operation L waits for operation X of its tag if a member of L's scope runs X
 * instead. The lists of a flush are of one time. An operation that waits for
 * none can end, and then what waits for it alone can: those are taken away one
 * by one (Kahn, Comm. ACM 1962). Then so are those for which none waits. What
 * is left is in circles, or between two of them. */
#include "master.h"

#include "votes.h"

#include "../base/buggify.h"
#include "../base/scope.h"

#include <stdlib.h>

/* ----------------------------------------------------------------- reports */

/* Rule V4b. Nothing is searched: a round shows whether it is so. */
void deadlock_reported(struct master *m, uint32_t link,
                       const struct wire_msg *msg)
{
    struct master_peer *p = &m->peers[link];
    struct master_group *g = &m->groups[p->group];
    if (g->phase != GROUP_OPEN || g->restart || msg->epoch != g->epoch) return;
    bool early = PCCL_BUGGIFY(asked_early);
    pccl_ns age = (pccl_ns)msg->blocked.age_ms * PCCL_MS;
    pccl_ns voted = msg->blocked.votes ? m->now - p->voted_at : 0;
    /* A thread beside PENDING may launch operations: it gets more time. */
    if (p->voted[VOTE_PENDING] && voted >= 2 * m->deadline)
        votes_answer(m, VOTE_PENDING, 0xff);
    bool votes = msg->blocked.votes && master_waits(p);
    if (votes) age = voted;
    if (age < m->deadline / 2 && !early) return;
    if (p->blocked != g->epoch) g->blocked++;
    p->blocked = g->epoch;
    if (!votes && g->blocked < 2) return;
    if (m->now - g->suspected_at < age / 2) return;
    g->suspected_at = g->broken_at = m->now;
    g->restart = true;
}

/* ---------------------------------------------------------------- verdicts */

enum { WAITS, AWAITED, SIDES };

struct node {
    struct {
        uint32_t count, first; /* edges; number plus 1, 0: none */
    } sides[SIDES];
    bool over;
};

/* The first operation waits for the second one. */
struct edge {
    uint32_t ops[SIDES], next[SIDES];
};

struct search {
    struct master_table *t;
    uint32_t *runs, mask; /* a hash of the listings: number plus 1; 0: none */
    struct node *nodes;
    struct edge *edges;
    uint32_t edge_count, edge_room;
    uint32_t *todo, todo_count;
    bool failed; /* no memory: it is reported again */
};

static uint32_t *slot_of(const struct search *s, uint64_t tag, uint32_t rank)
{
    uint32_t i = (uint32_t)scope_mix(tag + scope_mix(rank)) & s->mask;
    for (;; i = (i + 1) & s->mask) {
        if (s->runs[i] == 0) return &s->runs[i];
        const struct master_listing *l = &s->t->listings[s->runs[i] - 1];
        if (l->tag == tag && l->rank == rank) return &s->runs[i];
    }
}

/* It ends at INSTALL, whatever others do. */
static bool is_decided(const struct master_op *op)
{
    return op->commit || op->forced != VERDICT_ABORT;
}

static bool begin(struct search *s)
{
    struct master_table *t = s->t;
    uint32_t room = 2;
    while (room < 2 * t->listing_count) room *= 2;
    s->mask = room - 1;
    s->runs = calloc(room, sizeof *s->runs);
    s->nodes = calloc(t->op_count, sizeof *s->nodes);
    s->todo = malloc(t->op_count * sizeof *s->todo);
    if (!s->runs || !s->nodes || !s->todo) return false;
    for (uint32_t i = 0; i < t->listing_count; i++) {
        const struct master_listing *l = &t->listings[i];
        if (!is_decided(&t->ops[l->op])) *slot_of(s, l->tag, l->rank) = i + 1;
    }
    return true;
}

static void add_edge(struct search *s, uint32_t from, uint32_t to)
{
    if (s->edge_count == s->edge_room) {
        uint32_t room = 2 * s->edge_room + 64;
        struct edge *edges = realloc(s->edges, room * sizeof *edges);
        s->failed |= !edges;
        if (!edges) return;
        s->edges = edges;
        s->edge_room = room;
    }
    struct edge *e = &s->edges[s->edge_count++];
    *e = (struct edge){.ops = {from, to}};
    for (int side = WAITS; side < SIDES; side++) {
        struct node *n = &s->nodes[e->ops[side]];
        n->sides[side].count++;
        e->next[side] = n->sides[side].first;
        n->sides[side].first = s->edge_count;
    }
}

/* The first rank of the scope from this one on; `world`: there is none. */
static uint32_t next_rank(const struct master_table *t, uint32_t scope,
                          uint32_t rank)
{
    const uint64_t *bits = t->bits + (size_t)scope * t->words;
    while (t->scopes[scope].number != 0 && rank < t->world) {
        uint64_t left = bits[rank / 64] >> rank % 64;
        if (left != 0) return rank + (uint32_t)__builtin_ctzll(left);
        rank = (rank / 64 + 1) * 64;
    }
    return rank;
}

/* The edges to what members of its scope run instead. */
static void look_at(struct search *s, uint32_t op)
{
    const struct master_table *t = s->t;
    uint32_t scope = t->ops[op].scope;
    uint64_t tag = t->ops[op].op.tag;
    uint32_t rank = next_rank(t, scope, 0);
    for (; rank < t->world; rank = next_rank(t, scope, rank + 1)) {
        uint32_t l = *slot_of(s, tag, rank);
        if (l > 0 && t->listings[l - 1].op != op)
            add_edge(s, op, t->listings[l - 1].op);
    }
}

static void take_away(struct search *s, uint32_t op)
{
    s->nodes[op].over = true;
    s->todo[s->todo_count++] = op;
}

/* Those that wait for none that is left; or for which none waits. */
static void peel(struct search *s, int side)
{
    for (uint32_t i = 0; i < s->t->op_count; i++)
        if (!s->nodes[i].over && s->nodes[i].sides[side].count == 0)
            take_away(s, i);
    while (s->todo_count > 0) {
        const struct node *n = &s->nodes[s->todo[--s->todo_count]];
        for (uint32_t k = n->sides[!side].first; k > 0;) {
            const struct edge *e = &s->edges[k - 1];
            struct node *other = &s->nodes[e->ops[side]];
            if (--other->sides[side].count == 0 && !other->over)
                take_away(s, e->ops[side]);
            k = e->next[!side];
        }
    }
}

static void find_circles(struct master_table *t)
{
    struct search s = {.t = t};
    s.failed = !begin(&s);
    for (uint32_t i = 0; i < t->op_count && !s.failed; i++)
        if (t->ops[i].doubt && !is_decided(&t->ops[i])) look_at(&s, i);
    for (int side = WAITS; side < SIDES && !s.failed; side++) peel(&s, side);
    for (uint32_t i = 0; i < t->op_count && !s.failed; i++)
        if (!s.nodes[i].over) t->ops[i].forced = VERDICT_CROSSED;
    free(s.runs);
    free(s.nodes);
    free(s.edges);
    free(s.todo);
}

/* Rule V4c: the ranks that wait in a vote. */
static bool find_voters(const struct master *m, uint32_t group,
                        uint64_t voters[PEERS_MAX / 64])
{
    bool any = false;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        bool votes = p->state == PEER_MEMBER && p->group == group;
        if (!votes || !master_waits(p)) continue;
        voters[p->rank / 64] |= (uint64_t)1 << p->rank % 64;
        any = true;
    }
    return any;
}

static void refuse_voters(struct master_table *t, const uint64_t *voters)
{
    for (uint32_t s = 0; s < t->scope_count; s++) {
        const uint64_t *bits = t->bits + (size_t)s * t->words;
        bool waits = t->scopes[s].number == 0;
        for (uint32_t w = 0; w < t->words && !waits; w++)
            waits = bits[w] & voters[w];
        for (uint32_t i = t->scopes[s].first; i != MASTER_NO_OP && waits;
             i = t->ops[i].next)
            if (!is_decided(&t->ops[i])) t->ops[i].forced = VERDICT_USAGE;
    }
}

/* Only what a survivor lacks waits for anything. Who waits in a vote has taken
 * what it launched: what it lacks it cannot join. */
void deadlock_judge(struct master *m, uint32_t group)
{
    struct master_table *t = &m->groups[group].table;
    uint64_t voters[PEERS_MAX / 64] = {0};
    if (t->op_count == 0) return;
    if (find_voters(m, group, voters)) refuse_voters(t, voters);
    if (t->scope_count > 1) find_circles(t);
}
