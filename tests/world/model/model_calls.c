/* model_calls.c - one operation at all of its members: who has launched it with
 * which arguments, who has heard of whom, how it ended. Rules D1, D2, F3, F4
 * and contract C1, C4, C5. */
#include "model_state.h"

#include <stdlib.h>
#include <string.h>

static uint32_t place(const struct model *m, uint32_t group, uint32_t epoch,
                      const struct trace_name *n)
{
    uint64_t h = n->scope * 31 + n->tag * 0x9e3779b97f4a7c15u + n->seq;
    h = (h ^ h >> 31) * 0xd6e8feb86659fd93u + epoch * 131 + group;
    h ^= h >> 32;
    uint32_t at = (uint32_t)h & (m->call_room - 1);
    for (;; at = (at + 1) & (m->call_room - 1)) {
        const struct call *c = &m->calls[at];
        if (c->epoch == 0 ||
            (c->epoch == epoch && c->group == group && same_name(&c->name, n)))
            return at;
    }
}

/* Room for one more; places change. */
static bool make_room(struct model *m)
{
    if (2 * m->call_count < m->call_room) return true;
    uint32_t old_room = m->call_room;
    struct call *old = m->calls;
    m->call_room = old_room > 0 ? 4 * old_room : 256;
    m->calls = calloc(m->call_room, sizeof *m->calls);
    for (uint32_t i = 0; m->calls && i < old_room; i++) {
        if (old[i].epoch == 0) continue;
        m->calls[place(m, old[i].group, old[i].epoch, &old[i].name)] = old[i];
    }
    free(old);
    return m->calls != NULL;
}

static struct call *find(struct model *m, const struct process *p,
                         const struct trace_name *n)
{
    if (m->call_room == 0) return NULL;
    struct call *c = &m->calls[place(m, p->group, p->epoch, n)];
    return c->epoch > 0 ? c : NULL;
}

/* Rule F3: a number names one set of members. */
void call_scope(struct model *m, uint64_t number, const struct ids *ids)
{
    for (uint32_t i = m->scope_count; i-- > 0;) {
        const struct ids *known = &m->scopes[i].ids;
        uint32_t both = 0;
        for (uint32_t k = 0; k < ids->count; k++)
            both += find_id(known, ids->of[k]) < known->count;
        bool same = both == ids->count && both == known->count;
        if (same != (m->scopes[i].number == number))
            REFUSE(m, "F3: a scope has two numbers, or a number two scopes");
        if (same) return;
    }
    if (m->scope_count == 1024) m->scope_count = 0;
    m->scopes[m->scope_count].number = number;
    m->scopes[m->scope_count++].ids = *ids;
}

void call_starts(struct model *m, struct process *p, struct running *o)
{
    if (!make_room(m)) {
        REFUSE(m, "out of memory");
        return;
    }
    struct call *c = &m->calls[place(m, p->group, p->epoch, &o->name)];
    if (c->epoch == 0) {
        m->call_count++;
        *c = (struct call){.group = p->group,
                           .epoch = p->epoch,
                           .name = o->name,
                           .scope = o->scope};
    }
    uint32_t i = find_id(&c->scope, p->id);
    if (i == c->scope.count)
        REFUSE(m, "F3: process %llu is not in the scope",
               (unsigned long long)p->id);
    else if (c->at[i].launched)
        REFUSE(m, "D1: one name twice");
    else {
        c->at[i].launched = true;
        c->at[i].kind = o->kind;
        c->at[i].arguments = o->arguments;
    }
}

/* Each pair has sizes of its own. */
static bool has_pairs(uint8_t kind)
{
    return kind == ALLTOALL || kind == GATHER || kind == SCATTER;
}

/* Rules D2c, F1, F3: a frame counts in its epoch, as long as that is open. */
void call_hears(struct model *m, struct process *p, const struct trace *t)
{
    if (t->epoch > p->epoch)
        REFUSE(m, "F3: process %llu has taken a frame of epoch %u in epoch %u",
               (unsigned long long)p->id, t->epoch, p->epoch);
    if (m->wrong || t->epoch < p->epoch || p->frozen) return;
    struct call *c = find(m, p, &t->names[0]);
    uint32_t from = c ? find_id(&c->scope, t->number) : 0;
    if (!c || from == c->scope.count || !c->at[from].launched) {
        REFUSE(m, "a frame of %llu, who has not launched the operation",
               (unsigned long long)t->number);
        return;
    }
    uint32_t to = find_id(&c->scope, p->id);
    if (to < c->scope.count) c->at[to].heard |= 1u << from;
    bool pairs = has_pairs(c->at[from].kind);
    for (uint32_t i = 0; i < c->scope.count && !pairs; i++) {
        if (c->at[i].digest == 0 || has_pairs(c->at[i].kind) || i == from)
            continue;
        bool equal = c->at[i].arguments == c->at[from].arguments;
        if (equal != (c->at[i].digest == t->digest))
            REFUSE(m, "D2c: a digest does not tell whether arguments agree");
    }
    if (c->at[from].digest != 0 && c->at[from].digest != t->digest && !pairs)
        REFUSE(m, "D2c: two digests of one launch");
    c->at[from].digest = t->digest;
}

/* The members that launched the operation, as far as member i can know: those
 * of whom a frame of the same arguments came, and those they knew of. */
static uint32_t known_to(const struct call *c, uint32_t i, bool directly)
{
    uint32_t known = 1u << i, before = 0;
    while (known != before) {
        before = known;
        for (uint32_t k = 0; k < c->scope.count; k++) {
            if (!(before >> k & 1) || (directly && k != i)) continue;
            for (uint32_t j = 0; j < c->scope.count; j++) {
                if (c->at[k].heard >> j & 1 &&
                    c->at[j].arguments == c->at[k].arguments)
                    known |= 1u << j;
            }
        }
    }
    return known;
}

static struct call *call_of(struct model *m, struct process *p,
                            const struct running *o, uint32_t *i)
{
    struct call *c = find(m, p, &o->name);
    *i = c ? find_id(&c->scope, p->id) : 0;
    if (c && *i < c->scope.count && c->at[*i].launched) return c;
    REFUSE(m, "process %llu has not launched this operation",
           (unsigned long long)p->id);
    return NULL;
}

/* Rule D2e: a result depends on the data of members, and is complete only when
 * frames that agree have come. */
void call_held(struct model *m, struct process *p, struct running *o)
{
    uint32_t i;
    const struct call *c = call_of(m, p, o, &i);
    if (!c || c->scope.count == 1) return;
    uint32_t all = c->scope.count == 32 ? ~0u : (1u << c->scope.count) - 1;
    uint32_t known = known_to(c, i, o->kind == ALLTOALL);
    bool rooted = o->kind == BROADCAST || (o->kind == SCATTER && o->root != i);
    uint32_t needed = rooted ? 1u << o->root : all;
    if ((known & needed) != needed)
        REFUSE(m,
               "D2e: operation %llu is complete at %llu, who has heard of "
               "%x of %x",
               (unsigned long long)o->name.tag, (unsigned long long)p->id,
               known, needed);
}

/* In-band: rules D4 and D5. All of the scope have launched it with the same
 * arguments, and the member knows it. */
static void check_in_band(struct model *m, const struct call *c, uint32_t i,
                          bool fast)
{
    uint32_t all = c->scope.count == 32 ? ~0u : (1u << c->scope.count) - 1;
    if (c->scope.count > 1 && !fast && known_to(c, i, false) != all)
        REFUSE(m, "D4, D5: returned by one who has heard of %x of %x",
               known_to(c, i, false), all);
    for (uint32_t k = 0; k < c->scope.count; k++) {
        if (!c->at[k].launched)
            REFUSE(m, "D4, D5: returned before %llu has launched it",
                   (unsigned long long)c->scope.of[k]);
        else if (c->at[k].arguments != c->at[i].arguments)
            REFUSE(m, "C4: success though %llu has other arguments",
                   (unsigned long long)c->scope.of[k]);
    }
}

void call_returns(struct model *m, struct process *p, struct running *o,
                  bool fast)
{
    uint32_t i;
    struct call *c = call_of(m, p, o, &i);
    if (!c) return;
    check_in_band(m, c, i, fast);
    o->outcome = c->at[i].outcome = SUCCESS;
    o->ended = p->epoch;
}

/* Contract C1: the members of the view that is installed now agree, whether
 * they returned the operation before or end it by this INSTALL. */
void call_ends(struct model *m, struct process *p, struct running *o,
               uint8_t outcome)
{
    uint32_t i;
    struct call *c = call_of(m, p, o, &i);
    if (!c) return;
    o->outcome = c->at[i].outcome = outcome;
    o->ended = p->epoch;
    for (uint32_t k = 0; k < c->scope.count && !m->wrong; k++) {
        uint8_t other = c->at[k].outcome;
        bool stays = find_id(&p->next, c->scope.of[k]) < p->next.count;
        if (other == OPEN_END || !stays) continue;
        if ((other == SUCCESS) != (outcome == SUCCESS))
            REFUSE(m,
                   "C1: operation %llu of epoch %u ends with %u at %llu, with "
                   "%u at %llu",
                   (unsigned long long)o->name.tag, c->epoch, outcome,
                   (unsigned long long)p->id, other,
                   (unsigned long long)c->scope.of[k]);
    }
}

/* Rule D3: the bytes of a success are the same everywhere, but for an
 * all-to-all and a sum that only a root receives. */
void call_bytes(struct model *m, const struct process *p,
                const struct running *o, uint64_t hash)
{
    if (has_pairs(o->kind) || o->kind == REDUCE || o->kind == EVEN ||
        m->call_room == 0)
        return;
    struct call *c = &m->calls[place(m, p->group, o->ended, &o->name)];
    for (uint32_t k = 0; c->epoch > 0 && k < c->scope.count; k++) {
        if (c->scope.of[k] == p->id)
            c->at[k].hash = hash;
        else if (c->at[k].hash != 0 && c->at[k].hash != hash)
            REFUSE(m, "C1: two results of operation %llu",
                   (unsigned long long)o->name.tag);
    }
}
