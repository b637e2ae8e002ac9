/* round_ops.c - the operations of a round: the members' lists, the questions
 * about operations in doubt, donations, verdicts. Rules F4 to F6 and F8 of
 * AGREEMENT.md.
 *
 * What a member sends about an operation is checked against what the master
 * knows itself: who is in the scope, who of them lives, whom it has asked what.
 * A member that sends something else has broken the protocol and is out. */
#include "master.h"

#include "votes.h"

#include "../base/buggify.h"
#include "../base/scope.h"

#include <stdlib.h>
#include <string.h>

enum { TEXTS_MAX = 64 }; /* about scopes, in one round: each looks at all */

static const char lie[] = "sent a list of operations that cannot be";

/* ----------------------------------------------------------------- tables */

void round_ops_clear(struct master_group *g)
{
    free(g->table.ops);
    free(g->table.scopes);
    free(g->table.bits);
    free(g->table.heads);
    free(g->table.listings);
    free(g->table.scope_heads);
    free(g->table.links);
    g->table = (struct master_table){0};
}

static uint32_t *head_of(const struct master_table *t,
                         const struct wire_op *name)
{
    uint64_t hash = scope_mix(name->tag + scope_mix(name->scope + name->seq));
    return &t->heads[hash & (2 * t->op_room - 1)];
}

static struct master_op *find_op(const struct master_table *t,
                                 const struct wire_op *name)
{
    if (t->op_count == 0) return NULL;
    uint32_t i = *head_of(t, name);
    while (i != 0 && !wire_same_op(&t->ops[i - 1].op, name))
        i = t->ops[i - 1].same_head;
    return i != 0 ? &t->ops[i - 1] : NULL;
}

static void enter(struct master_table *t, uint32_t i)
{
    uint32_t *head = head_of(t, &t->ops[i].op);
    t->ops[i].same_head = *head;
    *head = i + 1;
}

static bool make_room_for_op(struct master_table *t)
{
    if (t->op_count < t->op_room) return true;
    uint32_t room = t->op_room > 0 ? 2 * t->op_room : 64;
    struct master_op *ops = realloc(t->ops, room * sizeof *ops);
    if (ops) t->ops = ops;
    uint32_t *heads = calloc(2 * (size_t)room, sizeof *heads);
    if (!ops || !heads) {
        free(heads);
        return false;
    }
    free(t->heads);
    t->heads = heads;
    t->op_room = room;
    for (uint32_t i = 0; i < t->op_count; i++) enter(t, i);
    return true;
}

static struct master_op *add_op(struct master_table *t,
                                const struct wire_op *name, uint32_t scope)
{
    if (!make_room_for_op(t)) return NULL;
    uint32_t i = t->op_count++;
    t->ops[i] = (struct master_op){.op = *name,
                                   .scope = scope,
                                   .next = MASTER_NO_OP,
                                   .lister = MASTER_NO_LINK,
                                   .donor = MASTER_NO_LINK};
    struct master_scope *s = &t->scopes[scope];
    if (s->last == MASTER_NO_OP)
        s->first = i;
    else
        t->ops[s->last].next = i;
    s->last = i;
    enter(t, i);
    return &t->ops[i];
}

static uint32_t *scope_head_of(const struct master_table *t, uint64_t number)
{
    return &t->scope_heads[scope_mix(number) & (2 * t->scope_room - 1)];
}

static void enter_scope(struct master_table *t, uint32_t i)
{
    uint32_t *head = scope_head_of(t, t->scopes[i].number);
    t->scopes[i].same_head = *head;
    *head = i + 1;
}

static bool make_room_for_scope(struct master_table *t)
{
    if (t->scope_count < t->scope_room) return true;
    uint32_t room = t->scope_room > 0 ? 2 * t->scope_room : 16;
    struct master_scope *scopes = realloc(t->scopes, room * sizeof *scopes);
    if (scopes) t->scopes = scopes;
    uint64_t *bits = realloc(t->bits, ((size_t)room * t->words + 1) * 8);
    if (bits) t->bits = bits;
    uint32_t *heads = calloc(2 * (size_t)room, sizeof *heads);
    if (!scopes || !bits || !heads) {
        free(heads);
        return false;
    }
    free(t->scope_heads);
    t->scope_heads = heads;
    t->scope_room = room;
    for (uint32_t i = 1; i < t->scope_count; i++) enter_scope(t, i);
    return true;
}

/* A scope of these members, or of the whole view. MASTER_NO_OP: no memory. */
static uint32_t add_scope(struct master_table *t, uint64_t number,
                          const uint64_t *bits, uint32_t survivors)
{
    if (!make_room_for_scope(t)) return MASTER_NO_OP;
    uint32_t i = t->scope_count++;
    t->scopes[i] = (struct master_scope){.number = number,
                                         .survivors = survivors,
                                         .first = MASTER_NO_OP,
                                         .last = MASTER_NO_OP,
                                         .lister = MASTER_NO_LINK};
    if (bits) memcpy(t->bits + (size_t)i * t->words, bits, t->words * 8);
    if (i > 0) enter_scope(t, i);
    return i;
}

void round_ops_begin(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    round_ops_clear(g);
    uint32_t world = 0;
    for (uint32_t i = 0; i < m->link_end; i++) {
        struct master_peer *p = &m->peers[i];
        bool stood = p->state == PEER_MEMBER || p->state == PEER_DEAD;
        if (p->group == group && stood && p->rank >= world) world = p->rank + 1;
    }
    g->table.world = world;
    g->table.words = (world + 63) / 64;
    g->table.links = calloc(world + (size_t)1, sizeof *g->table.links);
    if (!g->table.links) return; /* the first list fails */
    uint32_t live = master_live_links(m, group);
    for (uint32_t i = 0; i < live; i++)
        g->table.links[m->peers[m->links[i]].rank] =
            (uint16_t)(m->links[i] + 1);
    (void)add_scope(&g->table, 0, NULL, live); /* likewise */
}

/* ------------------------------------------------------------------ lists */

bool round_read_set(struct master *m, uint32_t link, const struct wire_msg *msg,
                    uint32_t k, struct master_set *set)
{
    const struct master_peer *self = &m->peers[link];
    const uint8_t *bytes = msg->sets + (size_t)k * msg->set_size;
    uint32_t count = 0;
    uint32_t named = 0;
    *set = (struct master_set){0};
    if (msg->set_size > sizeof set->bits) return false;
    for (uint32_t i = 0; i < msg->set_size; i++) {
        set->bits[i / 8] |= (uint64_t)bytes[i] << i % 8 * 8;
        named += (uint32_t)__builtin_popcount(bytes[i]);
    }
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        bool stood = p->state == PEER_MEMBER || p->state == PEER_DEAD;
        if (!stood || p->group != self->group) continue;
        if (!(set->bits[p->rank / 64] >> p->rank % 64 & 1)) continue;
        m->ids[count++] = p->info.id;
        set->live += p->state == PEER_MEMBER;
    }
    set->number = scope_number(m->ids, count);
    return count == named && set->bits[self->rank / 64] >> self->rank % 64 & 1;
}

static uint32_t find_scope(struct master_table *t, const struct master_set *set)
{
    uint32_t i = *scope_head_of(t, set->number);
    while (i != 0 && (t->scopes[i - 1].number != set->number ||
                      memcmp(t->bits + (size_t)(i - 1) * t->words, set->bits,
                             t->words * 8) != 0))
        i = t->scopes[i - 1].same_head;
    if (i != 0) return i - 1;
    return add_scope(t, set->number, set->bits, set->live);
}

/* Of those that this list names. */
static uint32_t scope_of(const struct master_table *t, uint32_t link,
                         uint64_t number)
{
    uint32_t i = number == 0 ? 1 : *scope_head_of(t, number);
    while (i > 1 && (t->scopes[i - 1].number != number ||
                     t->scopes[i - 1].lister != link))
        i = t->scopes[i - 1].same_head;
    return i > 0 ? i - 1 : MASTER_NO_OP;
}

static bool make_room_for_listing(struct master_table *t)
{
    if (t->listing_count < t->listing_room) return true;
    uint32_t room = 2 * t->listing_room + 64;
    struct master_listing *all = realloc(t->listings, room * sizeof *all);
    if (!all) return false;
    t->listings = all;
    t->listing_room = room;
    return true;
}

/* One operation of a member's list. NULL: it can be. */
static const char *list_op(struct master_table *t, uint32_t link, uint32_t rank,
                           const struct wire_op *w, uint32_t scope)
{
    if (scope == MASTER_NO_OP) return lie;
    if (w->state != OP_RUNNING && w->state != OP_COMPLETE) return lie;
    struct master_op *op = find_op(t, w);
    if (!op) op = add_op(t, w, scope);
    if (!op || !make_room_for_listing(t))
        return "the coordinator is out of memory";
    if (op->scope != scope || op->lister == link) return lie;
    op->lister = link;
    op->complete += w->state == OP_COMPLETE;
    op->running += w->state == OP_RUNNING;
    t->listings[t->listing_count++] =
        (struct master_listing){w->tag, (uint32_t)(op - t->ops), rank};
    return NULL;
}

const char *round_ops_list(struct master *m, uint32_t link,
                           const struct wire_msg *msg)
{
    struct master_group *g = &m->groups[m->peers[link].group];
    struct master_table *t = &g->table;
    const char *wrong = NULL;
    if (t->scope_count == 0) return "the coordinator is out of memory";
    for (uint32_t k = 0; k < msg->set_count; k++) {
        struct master_set set;
        if (!round_read_set(m, link, msg, k, &set)) return lie;
        uint32_t scope = find_scope(t, &set);
        if (scope == MASTER_NO_OP) return "the coordinator is out of memory";
        t->scopes[scope].lister = link;
    }
    for (uint32_t i = 0; i < msg->op_count && !wrong; i++) {
        const struct wire_op *w = &msg->ops[i];
        uint32_t scope = scope_of(t, link, w->scope);
        wrong = list_op(t, link, m->peers[link].rank, w, scope);
    }
    return wrong;
}

/* Rule F4, first half: the decisions that follow from the lists alone. An
 * operation is in doubt if a survivor of its scope did not list it: the
 * survivor returned it, or never began it. */
bool round_ops_in_doubt(struct master_group *g)
{
    struct master_table *t = &g->table;
    bool doubt = false;
    for (uint32_t i = 0; i < t->op_count; i++) {
        struct master_op *op = &t->ops[i];
        uint32_t survivors = t->scopes[op->scope].survivors;
        op->commit = op->complete == survivors;
        op->relayed = true;
        op->doubt = op->complete + op->running < survivors;
        doubt |= op->doubt;
    }
    return doubt;
}

/* -------------------------------------------------------------- questions */

/* The ranks of a scope in the word k of its set. */
static uint64_t ranks_in(const struct master_table *t, uint32_t scope,
                         uint32_t k)
{
    if (t->scopes[scope].number == 0) return UINT64_MAX;
    return t->bits[(size_t)scope * t->words + k];
}

/* The peer that had the rank when the round began, if it is a member still. */
static uint32_t link_of(const struct master *m, uint32_t group, uint32_t rank)
{
    const struct master_table *t = &m->groups[group].table;
    uint32_t link = rank < t->world ? t->links[rank] : 0;
    if (link == 0 || m->peers[link - 1].state != PEER_MEMBER)
        return MASTER_NO_LINK;
    return link - 1;
}

/* Live members of a scope, into m->links, by rank; `proposed`: those of the
 * next view among them. */
static uint32_t links_of(struct master *m, uint32_t group, uint32_t scope,
                         bool proposed)
{
    const struct master_table *t = &m->groups[group].table;
    uint32_t count = 0;
    for (uint32_t k = 0; k < t->words; k++) {
        uint64_t left = ranks_in(t, scope, k);
        for (; left != 0; left &= left - 1) {
            uint32_t rank = 64 * k + (uint32_t)__builtin_ctzll(left);
            uint32_t link = link_of(m, group, rank);
            if (link == MASTER_NO_LINK) continue;
            if (!proposed || m->peers[link].proposed) m->links[count++] = link;
        }
    }
    return count;
}

/* The operation that a member is asked about after this one: those in doubt,
 * scope by scope. */
static uint32_t next_asked(const struct master_table *t, uint32_t rank,
                           uint32_t scope, uint32_t op)
{
    for (;;) {
        while (op != MASTER_NO_OP && !t->ops[op].doubt) op = t->ops[op].next;
        if (op != MASTER_NO_OP) return op;
        do scope++;
        while (scope < t->scope_count && !table_has_rank(t, scope, rank));
        if (scope == t->scope_count) return MASTER_NO_OP;
        op = t->scopes[scope].first;
    }
}

/* Rule F9: the text about an operation among the verdicts. */
static void explain(struct master *m, uint32_t group, struct wire_msg *msg)
{
    struct master_group *g = &m->groups[group];
    const struct master_dispute *d = &g->dispute;
    msg->verdict.about = msg->op_count;
    for (uint32_t i = 0; i < msg->op_count; i++) {
        uint8_t verdict = msg->ops[i].state;
        bool disputed = d->open && verdict == VERDICT_INVALID &&
                        wire_same_op(&msg->ops[i], &d->op);
        bool crossed = verdict == VERDICT_CROSSED && g->table.texts < TEXTS_MAX;
        if (!disputed && !crossed) continue;
        g->table.texts += crossed;
        msg->verdict.about = i;
        if (disputed)
            dispute_text(m, group, msg->verdict.text);
        else
            dispute_text_crossed(m, group, msg->ops[i].tag, msg->verdict.text);
        return;
    }
}

/* Sends m->ops to members of a scope. */
static void send_ops(struct master *m, uint32_t group, uint32_t scope,
                     enum wire_type type, uint32_t count)
{
    const struct master_group *g = &m->groups[group];
    struct wire_msg msg = {.type = type,
                           .round = g->round,
                           .epoch = g->epoch,
                           .ops = m->ops,
                           .op_count = count};
    if (count == 0) return;
    if (type == WIRE_VERDICT) explain(m, group, &msg);
    uint32_t links = links_of(m, group, scope, type == WIRE_VERDICT);
    if (links > 0) m->out.send(m->out.user, m->links, links, &msg);
}

/* Each member owes first what is in doubt in the first of its scopes. */
static void ask_first(struct master *m, uint32_t group)
{
    const struct master_table *t = &m->groups[group].table;
    uint64_t open[PEERS_MAX / 64]; /* ranks that owe nothing so far */
    memset(open, 0xff, sizeof open);
    uint32_t count = master_live_links(m, group);
    for (uint32_t i = 0; i < count; i++)
        m->peers[m->links[i]].asked = MASTER_NO_OP;
    for (uint32_t s = 0; s < t->scope_count; s++) {
        uint32_t op = t->scopes[s].first;
        while (op != MASTER_NO_OP && !t->ops[op].doubt) op = t->ops[op].next;
        for (uint32_t k = 0; k < t->words && op != MASTER_NO_OP; k++) {
            uint64_t left = ranks_in(t, s, k) & open[k];
            open[k] &= ~left;
            for (; left != 0; left &= left - 1) {
                uint32_t rank = 64 * k + (uint32_t)__builtin_ctzll(left);
                uint32_t link = link_of(m, group, rank);
                if (link != MASTER_NO_LINK) m->peers[link].asked = op;
            }
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        struct master_peer *p = &m->peers[m->links[i]];
        if (p->asked == MASTER_NO_OP) p->answer = ANSWER_TOLD;
    }
}

void round_ops_ask(struct master *m, uint32_t group)
{
    struct master_table *t = &m->groups[group].table;
    for (uint32_t s = 0; s < t->scope_count; s++) {
        uint32_t count = 0;
        for (uint32_t i = t->scopes[s].first; i != MASTER_NO_OP;
             i = t->ops[i].next) {
            struct master_op *op = &t->ops[i];
            if (!op->doubt) continue;
            op->complete = op->running = 0;
            m->ops[count++] = op->op;
            if (count < WIRE_OPS_MAX && !PCCL_BUGGIFY(questions_few)) continue;
            send_ops(m, group, s, WIRE_QUERY, count);
            count = 0;
        }
        send_ops(m, group, s, WIRE_QUERY, count);
    }
    ask_first(m, group);
}

const char *round_ops_reply(struct master *m, uint32_t link,
                            const struct wire_msg *msg)
{
    struct master_peer *p = &m->peers[link];
    struct master_table *t = &m->groups[p->group].table;
    for (uint32_t i = 0; i < msg->op_count; i++) {
        const struct wire_op *w = &msg->ops[i];
        if (p->asked == MASTER_NO_OP) return lie;
        struct master_op *op = &t->ops[p->asked];
        if (!wire_same_op(&op->op, w) || w->state >= OP_STATE_COUNT) return lie;
        op->complete += w->state == OP_COMPLETE;
        op->running += w->state == OP_RUNNING;
        op->returned += w->state == OP_RETURNED;
        if (w->donor && w->state == OP_RETURNED) op->donor = link;
        p->asked = next_asked(t, p->rank, op->scope, op->next);
    }
    if (p->asked == MASTER_NO_OP) p->answer = ANSWER_TOLD;
    return NULL;
}

/* Rule F4, second half: an operation is committed if a survivor has returned
 * it or all survivors have the result. Rule F5: a survivor that lacks the
 * result gets it from one that has it. */
void round_ops_decide(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    for (uint32_t i = 0; i < g->table.op_count; i++) {
        struct master_op *op = &g->table.ops[i];
        if (!op->doubt) continue;
        uint32_t survivors = g->table.scopes[op->scope].survivors;
        op->commit = op->returned > 0 || op->complete == survivors;
        if (!op->commit || op->running == 0) continue;
        if (op->donor == MASTER_NO_LINK) {
            op->commit = false; /* a peer broke rule D5: nobody has it */
            continue;
        }
        op->relayed = false;
        struct wire_msg donate = {.type = WIRE_DONATE, .round = g->round};
        donate.result.scope = op->op.scope;
        donate.result.tag = op->op.tag;
        donate.result.seq = op->op.seq;
        master_send(m, op->donor, &donate);
    }
}

void round_ops_result(struct master *m, uint32_t link,
                      const struct wire_msg *msg)
{
    uint32_t group = m->peers[link].group;
    struct wire_op name = {.scope = msg->result.scope,
                           .tag = msg->result.tag,
                           .seq = msg->result.seq};
    struct master_op *op = find_op(&m->groups[group].table, &name);
    if (!op || op->relayed || op->donor != link) return;
    op->relayed = true;
    uint32_t count = links_of(m, group, op->scope, false);
    m->out.send(m->out.user, m->links, count, msg);
}

bool round_ops_relayed(const struct master_group *g)
{
    for (uint32_t i = 0; i < g->table.op_count; i++) {
        const struct master_op *op = &g->table.ops[i];
        if (op->commit && !op->relayed) return false;
    }
    return true;
}

void round_ops_owing(const struct master_group *g, bool *links)
{
    for (uint32_t i = 0; i < g->table.op_count; i++) {
        const struct master_op *op = &g->table.ops[i];
        if (op->commit && !op->relayed && op->donor != MASTER_NO_LINK)
            links[op->donor] = true;
    }
}

/* --------------------------------------------------------------- verdicts */

void round_force(struct master_group *g, uint32_t rank,
                 const struct wire_op *name, enum op_verdict verdict)
{
    /* One message closes the epoch, and has no more operations. */
    if (g->forced_count == MASTER_FORCED_MAX) return;
    g->forced[g->forced_count] =
        (struct master_forced){.op = *name, .rank = rank};
    g->forced[g->forced_count++].op.state = (uint8_t)verdict;
}

/* Rule F6. A complaint counts if its sender is in the scope. */
static void apply_forced(struct master_group *g)
{
    for (uint32_t i = 0; i < g->forced_count; i++) {
        const struct master_forced *f = &g->forced[i];
        struct master_op *op = find_op(&g->table, &f->op);
        if (op && table_has_rank(&g->table, op->scope, f->rank))
            op->forced = f->op.state;
    }
}

void round_ops_judge(struct master *m, uint32_t group)
{
    apply_forced(&m->groups[group]);
    deadlock_judge(m, group);
}

/* Rule F6: who waits in a vote is refused by USAGE. */
void round_ops_refuse(struct master *m, uint32_t group)
{
    const struct master_group *g = &m->groups[group];
    const struct master_table *t = &g->table;
    for (uint32_t s = 0; s < t->scope_count; s++) {
        uint32_t i = t->scopes[s].first;
        while (i != MASTER_NO_OP &&
               (t->ops[i].commit || t->ops[i].forced != VERDICT_USAGE))
            i = t->ops[i].next;
        if (i == MASTER_NO_OP) continue;
        uint32_t count = links_of(m, group, s, true);
        for (uint32_t k = 0; k < count; k++)
            votes_end(m, m->links[k], g->round);
    }
}

/* Into m->ops. Returns their number, 0 once they have been sent. */
static uint32_t add_verdict(struct master *m, uint32_t group, uint32_t scope,
                            uint32_t count, const struct wire_op *op,
                            uint8_t verdict)
{
    m->ops[count] = *op;
    m->ops[count++].state = verdict;
    if (count < WIRE_OPS_MAX && !PCCL_BUGGIFY(questions_few)) return count;
    send_ops(m, group, scope, WIRE_VERDICT, count);
    return 0;
}

/* A commit precedes a complaint about the same operation: a member may have
 * returned it (F4). */
void round_ops_send_verdicts(struct master *m, uint32_t group)
{
    struct master_group *g = &m->groups[group];
    struct master_table *t = &g->table;
    for (uint32_t s = 0; s < t->scope_count; s++) {
        uint32_t count = 0;
        for (uint32_t i = t->scopes[s].first; i != MASTER_NO_OP;
             i = t->ops[i].next) {
            const struct master_op *op = &t->ops[i];
            uint8_t verdict = op->commit ? VERDICT_COMMIT : op->forced;
            if (verdict == VERDICT_ABORT) continue;
            count = add_verdict(m, group, s, count, &op->op, verdict);
        }
        send_ops(m, group, s, WIRE_VERDICT, count);
    }
}
