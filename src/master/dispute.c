/* dispute.c - an operation whose members disagree on its arguments: asks for
 * their arguments in the flush, and makes a text of them. Rule F9 of
 * PROTOCOL.md. */
#include "master.h"

#include "../base/dtype.h"

#include <string.h>

void dispute_begin(struct master_group *g, const struct wire_op *name,
                   uint64_t reporter, uint64_t other)
{
    g->dispute = (struct master_dispute){
        .open = true, .op = *name, .pair = {reporter, other}};
}

void dispute_ask(const struct master_group *g, struct wire_msg *flush)
{
    flush->flush.disputed = g->dispute.open;
    flush->flush.op = g->dispute.op;
    memcpy(flush->flush.pair, g->dispute.pair, sizeof g->dispute.pair);
}

void dispute_answer(struct master *m, uint32_t link, const struct wire_msg *msg)
{
    struct master_peer *p = &m->peers[link];
    const struct master_dispute *d = &m->groups[p->group].dispute;
    for (uint32_t i = 0; i < msg->op_count && msg->flushed.described; i++) {
        if (!d->open || !wire_same_op(&msg->ops[i], &d->op)) continue;
        p->described = true;
        p->args = msg->flushed.args;
    }
}

/* ------------------------------------------------------------------- text */

enum field {
    FIELD_COLL,
    FIELD_COUNT,
    FIELD_DTYPE,
    FIELD_REDOP,
    FIELD_QUANT,
    FIELD_ROOT,
    FIELD_REST, /* of the arguments, known by the digest alone */
    FIELD_COUNT_OF,
};

static const char *const field_names[FIELD_COUNT_OF] = {
    [FIELD_COLL] = "kind",
    [FIELD_COUNT] = "count",
    [FIELD_DTYPE] = "datatype",
    [FIELD_REDOP] = "operator",
    [FIELD_QUANT] = "quantization",
    [FIELD_ROOT] = "root",
    [FIELD_REST] = "further arguments",
};

static const char *const coll_names[WIRE_COLLS] = {
    "all-reduce", "broadcast", "barrier", "all-gather", "all-to-all"};
static const char *const quant_names[WIRE_QUANTS] = {"none", "min-max",
                                                     "zero-point"};

static uint64_t value_of(const struct wire_args *a, enum field field)
{
    switch (field) {
    case FIELD_COLL:
        return a->coll;
    case FIELD_COUNT:
        return a->count;
    case FIELD_DTYPE:
        return a->dtype;
    case FIELD_REDOP:
        return a->redop;
    case FIELD_QUANT:
        return a->quant > 0 ? a->quant * 256u + a->code : 0;
    case FIELD_ROOT:
        return a->root;
    case FIELD_REST:
    case FIELD_COUNT_OF:
        break;
    }
    return a->digest;
}

/* A text that ends where it would exceed WIRE_TEXT_MAX bytes. */
struct text {
    char *bytes;
    size_t size;
};

static void add(struct text *t, const char *more)
{
    size_t size = strnlen(more, WIRE_TEXT_MAX - t->size);
    memcpy(t->bytes + t->size, more, size);
    t->size += size;
    t->bytes[t->size] = '\0';
}

static void add_number(struct text *t, uint64_t value)
{
    char digits[24];
    char *at = digits + sizeof digits;
    *--at = '\0';
    do *--at = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    add(t, at);
}

static void add_value(struct text *t, const struct wire_args *a,
                      enum field field, uint32_t nth)
{
    static const char *const others[] = {"one set", "another", "a third"};
    switch (field) {
    case FIELD_COLL:
        add(t, coll_names[a->coll]);
        return;
    case FIELD_DTYPE:
        add(t, dtype_name((enum dtype)a->dtype));
        return;
    case FIELD_REDOP:
        add(t, redop_name((enum redop)a->redop));
        return;
    case FIELD_QUANT:
        add(t, quant_names[a->quant]);
        if (a->quant == 0) return;
        add(t, " to ");
        add(t, dtype_name((enum dtype)a->code));
        return;
    case FIELD_REST:
        add(t, nth < ARRAY_COUNT(others) ? others[nth] : "others");
        return;
    case FIELD_COUNT:
    case FIELD_ROOT:
    case FIELD_COUNT_OF:
        break;
    }
    add_number(t, value_of(a, field));
}

/* The members that have described the operation, by rank: those of a round are
 * in m->ids, as links, MASTER_NO_LINK between them. Returns their end. */
static uint32_t by_rank(struct master *m, uint32_t group)
{
    uint32_t end = 0;
    for (uint32_t i = 0; i < PEERS_MAX; i++) m->ids[i] = MASTER_NO_LINK;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (p->state != PEER_MEMBER || p->group != group || !p->described)
            continue;
        m->ids[p->rank] = i;
        if (p->rank >= end) end = p->rank + 1;
    }
    return end;
}

static const struct wire_args *args_at(const struct master *m, uint32_t rank)
{
    uint64_t link = m->ids[rank];
    return link == MASTER_NO_LINK ? NULL : &m->peers[link].args;
}

/* The ranks up to `end` whose value is this one. */
static void add_ranks(struct text *t, const struct master *m, uint32_t end,
                      enum field field, uint64_t value)
{
    uint32_t count = 0;
    for (uint32_t r = 0; r < end; r++) {
        const struct wire_args *a = args_at(m, r);
        count += a && value_of(a, field) == value;
    }
    add(t, count > 1 ? " on ranks " : " on rank ");
    uint32_t listed = 0;
    for (uint32_t r = 0; r < end; r++) {
        const struct wire_args *a = args_at(m, r);
        if (!a || value_of(a, field) != value) continue;
        if (listed++ > 0) add(t, ", ");
        add_number(t, r);
    }
}

static bool is_first_of_its_value(const struct master *m, uint32_t rank,
                                  enum field field)
{
    for (uint32_t r = 0; r < rank; r++) {
        const struct wire_args *a = args_at(m, r);
        if (a && value_of(a, field) == value_of(args_at(m, rank), field))
            return false;
    }
    return true;
}

/* The values of a field, each with its ranks. False: there is only one. */
static bool add_field(struct text *t, const struct master *m, uint32_t end,
                      enum field field)
{
    uint32_t values = 0;
    size_t begin = t->size;
    for (uint32_t r = 0; r < end; r++) {
        const struct wire_args *a = args_at(m, r);
        if (!a || !is_first_of_its_value(m, r, field)) continue;
        add(t, values > 0 ? "; " : ": ");
        add_value(t, a, field, values++);
        add_ranks(t, m, end, field, value_of(a, field));
    }
    if (values > 1) return true;
    t->size = begin;
    t->bytes[begin] = '\0';
    return false;
}

/* What one of a pair sends and the other expects. */
static bool add_sizes(struct text *t, const struct master_peer *from,
                      const struct master_peer *to)
{
    if (from->args.sends == to->args.recvs) return false;
    add(t, "members disagree on the bytes from rank ");
    add_number(t, from->rank);
    add(t, " to rank ");
    add_number(t, to->rank);
    add(t, ": ");
    add_number(t, from->args.sends);
    add(t, " sent, ");
    add_number(t, to->args.recvs);
    add(t, " expected");
    return true;
}

static bool add_pair(struct text *t, const struct master *m,
                     const struct master_dispute *d, uint32_t end)
{
    const struct master_peer *pair[2] = {NULL, NULL};
    for (uint32_t r = 0; r < end; r++) {
        if (!args_at(m, r)) continue;
        const struct master_peer *p = &m->peers[m->ids[r]];
        if (p->info.id == d->pair[0]) pair[0] = p;
        if (p->info.id == d->pair[1]) pair[1] = p;
    }
    return pair[0] && pair[1] &&
           (add_sizes(t, pair[0], pair[1]) || add_sizes(t, pair[1], pair[0]));
}

void dispute_text(struct master *m, uint32_t group, char *text)
{
    const struct master_dispute *d = &m->groups[group].dispute;
    struct text t = {.bytes = text};
    text[0] = '\0';
    uint32_t end = by_rank(m, group);
    if (end == 0) return;
    const struct wire_args *last = args_at(m, end - 1);
    for (enum field f = FIELD_COLL; f < FIELD_COUNT_OF; f++) {
        t.size = 0;
        add(&t, f == FIELD_COLL ? "collective" : coll_names[last->coll]);
        add(&t, " (tag ");
        add_number(&t, d->op.tag);
        add(&t, "): ");
        if (f == FIELD_REST && add_pair(&t, m, d, end)) return;
        add(&t, "members disagree on the ");
        add(&t, field_names[f]);
        if (add_field(&t, m, end, f)) return;
    }
    text[0] = '\0';
}
