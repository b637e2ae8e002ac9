/* wait_graph.c - see wait_graph.h. */
#include "wait_graph.h"

#include "../../base/scope.h"

#include <stdlib.h>
#include <string.h>

bool wait_is_member(const struct master_peer *p)
{
    return p->state == PEER_MEMBER && !p->leaving;
}

bool wait_is_silent(const struct master *m, uint32_t link)
{
    const struct master_peer *p = &m->peers[link];
    return m->now - p->last_recv >= 2 * PCCL_TIME_TO_PING(m->deadline);
}

uint32_t wait_link_of(const struct master *m, uint32_t group, uint64_t id)
{
    return id == 0 ? MASTER_NO_LINK : master_link_of(m, group, id);
}

const struct peer_report *wait_report(const struct master *m, uint32_t link)
{
    const struct master_peer *p = &m->peers[link];
    const struct peer_report *report = m->reports[link];
    if (!report || !report->current || !wait_is_member(p)) return NULL;
    return report->epoch == m->groups[p->group].epoch ? report : NULL;
}

const struct wire_wait *wait_blocked_in(const struct master *m, uint32_t link)
{
    const struct peer_report *report = wait_report(m, link);
    for (uint32_t i = 0; report && i < report->wait_count; i++) {
        const struct wire_wait *w = &report->waits[i];
        if (w->blocks && w->kind < WAIT_REQUESTS) return w;
    }
    return NULL;
}

/* ------------------------------------------------------------------- making */

/* The members of a group, by rank. */
struct wait_ranks {
    uint64_t live[PEERS_MAX / 64], silent[PEERS_MAX / 64];
    uint64_t open[PEERS_MAX / 64]; /* of wait_graph_visit() */
    uint32_t live_count, silent_count, open_count;
    uint16_t links[PEERS_MAX];
};

static uint32_t *head_of(const struct wait_graph *g, uint32_t group,
                         const struct wire_wait *w)
{
    uint64_t hash = scope_mix(w->tag + scope_mix(w->scope + group));
    return &g->heads[scope_mix(hash + w->seq) & g->mask];
}

struct wait_op *wait_graph_find(const struct wait_graph *g, uint32_t group,
                                const struct wire_wait *w)
{
    uint32_t i = g->heads ? *head_of(g, group, w) : 0;
    for (; i > 0; i = g->ops[i - 1].same_hash) {
        struct wait_op *op = &g->ops[i - 1];
        if (op->group == group && op->wait->tag == w->tag &&
            op->wait->seq == w->seq && op->wait->scope == w->scope)
            return op;
    }
    return NULL;
}

static void add_op(struct wait_graph *g, uint32_t link,
                   const struct wire_wait *w)
{
    uint32_t group = g->m->peers[link].group;
    if (wait_graph_find(g, group, w)) return;
    uint32_t *head = head_of(g, group, w);
    g->ops[g->op_count++] = (struct wait_op){
        .group = group,
        .waiter = link,
        .wait = w,
        .whole = w->scope == 0,
        .scope = peer_report_scope(g->m->reports[link], w->scope),
        .same_hash = *head};
    *head = g->op_count;
}

static void add_ops(struct wait_graph *g, uint32_t link)
{
    const struct peer_report *report = wait_report(g->m, link);
    for (uint32_t k = 0; report && k < report->wait_count; k++) {
        const struct wire_wait *w = &report->waits[k];
        if (w->kind == WAIT_COLLECTIVE && w->blocks) add_op(g, link, w);
    }
}

static enum wait_part part_in(const struct wire_wait *w)
{
    if (w->kind == WAIT_COLLECTIVE) return WAIT_PART_SAME;
    if (w->kind == WAIT_PAST) return WAIT_PART_PAST;
    return w->kind == WAIT_LACKS ? WAIT_PART_LACKS : WAIT_PART_NONE;
}

static bool is_of_scope(const struct wait_graph *g, const struct wait_op *op,
                        uint32_t link)
{
    const struct master_peer *p = &g->m->peers[link];
    if (!wait_is_member(p) || p->group != op->group) return false;
    if (op->whole) return true;
    return op->scope && (op->scope->bits[p->rank / 64] >> p->rank % 64 & 1);
}

/* A member that says several things of an operation has it, if it says so, or
 * had it. */
static void add_entry(struct wait_graph *g, uint32_t link,
                      const struct wire_wait *w)
{
    enum wait_part part = part_in(w);
    if (part == WAIT_PART_NONE) return;
    struct wait_op *op = wait_graph_find(g, g->m->peers[link].group, w);
    if (!op || !is_of_scope(g, op, link)) return;
    struct wait_entry *e = NULL;
    if (op->entries > 0) e = &g->entries[op->entries - 1];
    if (!e || e->link != link) {
        e = &g->entries[g->entry_count++];
        *e = (struct wait_entry){link, op->entries, part, w};
        op->entries = g->entry_count;
    } else if (part <= e->part) {
        e->part = part;
        e->wait = w;
    }
}

/* From the last one on: the first of several is what counts, and lists are
 * built from their ends. */
static void add_entries(struct wait_graph *g, uint32_t link)
{
    const struct master_peer *p = &g->m->peers[link];
    const struct peer_report *report = g->m->reports[link];
    if (!report || !wait_is_member(p)) return;
    if (report->epoch != g->m->groups[p->group].epoch) return;
    for (uint32_t k = report->wait_count; k-- > 0;)
        add_entry(g, link, &report->waits[k]);
}

static void add_rank(struct wait_graph *g, uint32_t link)
{
    const struct master_peer *p = &g->m->peers[link];
    struct wait_ranks *r = &g->ranks[p->group];
    uint64_t bit = 1ull << p->rank % 64;
    if (!wait_is_member(p)) return;
    bool silent = wait_is_silent(g->m, link);
    r->links[p->rank] = (uint16_t)link;
    r->live[p->rank / 64] |= bit;
    r->live_count++;
    if (silent) r->silent[p->rank / 64] |= bit;
    r->silent_count += silent;
    if (!silent) r->open[p->rank / 64] |= bit;
    r->open_count += !silent;
}

static bool make_room(struct wait_graph *g, uint32_t waits)
{
    uint32_t room = 2;
    while (room < 2 * waits) room *= 2;
    g->mask = room - 1;
    g->heads = calloc(room, sizeof *g->heads);
    g->ops = malloc((waits + 1) * sizeof *g->ops);
    g->entries = malloc((waits + 1) * sizeof *g->entries);
    g->ranks = calloc(g->m->group_end + 1, sizeof *g->ranks);
    return g->heads && g->ops && g->entries && g->ranks;
}

struct wait_graph *wait_graph_new(const struct master *m)
{
    struct wait_graph *g = calloc(1, sizeof *g);
    uint32_t waits = 0;
    if (!g) return NULL;
    g->m = m;
    for (uint32_t i = 0; i < m->link_end; i++)
        if (m->reports[i]) waits += m->reports[i]->wait_count;
    if (waits == 0) return g;
    if (!make_room(g, waits)) {
        wait_graph_free(g);
        return NULL;
    }
    for (uint32_t i = 0; i < m->link_end; i++) add_ops(g, i);
    for (uint32_t i = m->link_end; i-- > 0;) add_entries(g, i);
    for (uint32_t i = 0; i < m->link_end; i++) add_rank(g, i);
    return g;
}

void wait_graph_free(struct wait_graph *g)
{
    if (!g) return;
    free(g->heads);
    free(g->ops);
    free(g->entries);
    free(g->ranks);
    free(g);
}

/* ------------------------------------------------------------ one operation */

const struct wait_entry *wait_graph_first(const struct wait_graph *g,
                                          const struct wait_op *op)
{
    return op->entries > 0 ? &g->entries[op->entries - 1] : NULL;
}

const struct wait_entry *wait_graph_next(const struct wait_graph *g,
                                         const struct wait_entry *e)
{
    return e->next > 0 ? &g->entries[e->next - 1] : NULL;
}

void wait_graph_choose(struct wait_graph *g, const struct wait_op *op)
{
    if (g->of == op) return;
    const struct wait_entry *e = g->of ? wait_graph_first(g, g->of) : NULL;
    for (; e; e = wait_graph_next(g, e)) g->of_link[e->link] = NULL;
    g->of = op;
    for (e = wait_graph_first(g, op); e; e = wait_graph_next(g, e))
        g->of_link[e->link] = e;
}

enum wait_part wait_part(const struct wait_graph *g, uint32_t link)
{
    if (!is_of_scope(g, g->of, link)) return WAIT_PART_NONE;
    if (g->of_link[link]) return g->of_link[link]->part;
    return wait_is_silent(g->m, link) ? WAIT_PART_LACKS : WAIT_PART_UNKNOWN;
}

void wait_graph_count(const struct wait_graph *g, const struct wait_op *op,
                      uint32_t *lacks, uint32_t *unknown)
{
    const struct wait_ranks *r = &g->ranks[op->group];
    uint32_t size = r->live_count, silent = r->silent_count;
    if (!op->whole) size = silent = 0;
    for (uint32_t k = 0; op->scope && k < PEERS_MAX / 64; k++) {
        uint64_t live = op->scope->bits[k] & r->live[k];
        size += (uint32_t)__builtin_popcountll(live);
        silent += (uint32_t)__builtin_popcountll(live & r->silent[k]);
    }
    *lacks = 0;
    const struct wait_entry *e = wait_graph_first(g, op);
    for (; e; e = wait_graph_next(g, e)) {
        size--;
        silent -= wait_is_silent(g->m, e->link);
        *lacks += e->part == WAIT_PART_LACKS;
    }
    *lacks += silent;
    *unknown = size - silent;
}

void wait_graph_visit(struct wait_graph *g, const struct wait_op *op,
                      wait_visitor *visit, void *user)
{
    struct wait_ranks *r = &g->ranks[op->group];
    if (r->open_count == 0) return;
    wait_graph_choose(g, op);
    for (uint32_t k = 0; k < PEERS_MAX / 64; k++) {
        uint64_t left = r->open[k];
        if (!op->whole) left &= op->scope ? op->scope->bits[k] : 0;
        for (; left != 0; left &= left - 1) {
            uint32_t rank = 64 * k + (uint32_t)__builtin_ctzll(left);
            if (visit(user, r->links[rank])) continue;
            r->open[k] &= ~(1ull << rank % 64);
            r->open_count--;
        }
    }
}

/* ------------------------------------------------------------------- chains */

struct chain {
    struct wait_graph *g;
    const uint32_t *targets;
    uint32_t target_count, count;
    uint8_t seen[MASTER_LINKS_MAX];
    uint16_t todo[MASTER_LINKS_MAX];
};

static void reach(struct chain *c, uint32_t link)
{
    if (c->seen[link]) return;
    c->seen[link] = 1;
    c->todo[c->count++] = (uint16_t)link;
}

static bool is_target(const struct chain *c, uint32_t link)
{
    for (uint32_t i = 0; i < c->target_count; i++)
        if (c->targets[i] == link) return true;
    return false;
}

/* Those that lack the operation. Of silent ones only a target matters: it waits
 * for nobody. Once for all that wait in it. */
static void reach_lackers(struct chain *c, struct wait_op *op)
{
    if (op->visit == c->g->visit) return;
    op->visit = c->g->visit;
    wait_graph_choose(c->g, op);
    for (uint32_t i = 0; i < c->target_count; i++)
        if (wait_part(c->g, c->targets[i]) == WAIT_PART_LACKS)
            reach(c, c->targets[i]);
    const struct wait_entry *e = wait_graph_first(c->g, op);
    for (; e; e = wait_graph_next(c->g, e))
        if (e->part == WAIT_PART_LACKS) reach(c, e->link);
}

bool wait_leads_to(struct wait_graph *g, uint32_t from, const uint32_t *targets,
                   uint32_t count)
{
    struct chain c = {.g = g, .targets = targets, .target_count = count};
    const struct master *m = g->m;
    g->visit++;
    reach(&c, from);
    while (c.count > 0) {
        uint32_t at = c.todo[--c.count], group = m->peers[at].group;
        const struct wire_wait *w = wait_blocked_in(m, at);
        if (is_target(&c, at)) return true;
        if (!w || wait_is_silent(m, at)) continue;
        if (w->kind == WAIT_COLLECTIVE) {
            reach_lackers(&c, wait_graph_find(g, group, w));
            continue;
        }
        uint32_t to = wait_link_of(m, group, w->peer);
        if (to != MASTER_NO_LINK && wait_is_member(&m->peers[to]))
            reach(&c, to);
    }
    return false;
}
