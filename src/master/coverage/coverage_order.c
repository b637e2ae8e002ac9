/* coverage_order.c - the messages of the coordinator about partial all-reduces.
 * See coverage.h. */
#include "coverage.h"

#include <string.h>

static struct wire_msg order(const struct coverage_round *r,
                             enum partial_order word)
{
    struct wire_msg msg = {.type = WIRE_COVERAGE};
    msg.partial.word = (uint8_t)word;
    msg.partial.tag = r->tag;
    msg.partial.number = r->number;
    msg.partial.count = r->args.count;
    msg.partial.dtype = r->args.dtype;
    msg.partial.redop = r->args.redop;
    msg.set_size = (r->member_count + 7) / 8;
    return msg;
}

static void add_set(struct coverage_letter *x, struct wire_msg *msg,
                    const uint64_t *set)
{
    uint8_t *to = x->sets + (size_t)msg->set_count++ * msg->set_size;
    for (uint32_t i = 0; i < msg->set_size; i++)
        to[i] = (uint8_t)(set[i / 8] >> i % 8 * 8);
    msg->sets = x->sets;
}

static void add_parts(const struct coverage_round *r, struct coverage_letter *x,
                      struct wire_msg *msg)
{
    for (uint32_t i = 0; i < r->part_count; i++) {
        const struct coverage_part *p = &r->parts[i];
        x->parts[i] = (struct wire_part){.begin = p->begin,
                                         .count = p->count,
                                         .owner = p->owner,
                                         .hash = p->committed ? p->hash : 0};
    }
    msg->parts = x->parts;
    msg->part_count = r->part_count;
}

static void add_ids(const struct coverage_round *r, struct coverage_letter *x,
                    struct wire_msg *msg)
{
    for (uint32_t i = 0; i < r->member_count; i++) x->ids[i] = r->members[i].id;
    msg->ids = x->ids;
    msg->id_count = r->member_count;
}

void coverage_send_plan(struct master *m, struct coverage_round *r)
{
    struct coverage_letter x;
    struct wire_msg msg = order(r, PARTIAL_PLAN);
    for (uint32_t i = 0; i < r->member_count; i++) {
        const struct coverage_member *c = &r->members[i];
        double weight = c->called ? c->weight : 0;
        x.ids[2 * i] = c->id;
        memcpy(&x.ids[2 * i + 1], &weight, sizeof weight);
        if (!coverage_lives(m, c)) coverage_put(r->gone, i);
    }
    msg.ids = x.ids;
    msg.id_count = 2 * r->member_count;
    add_parts(r, &x, &msg);
    add_set(&x, &msg, r->gone);
    for (uint32_t i = 0; i < r->member_count; i++) {
        if (!coverage_waits(m, &r->members[i])) continue;
        msg.partial.self = i;
        master_send(m, r->members[i].link, &msg);
    }
}

void coverage_send_all(struct master *m, const struct coverage_round *r,
                       enum partial_order word)
{
    struct wire_msg msg = order(r, word);
    uint32_t count = 0;
    bool release = word == PARTIAL_RELEASE;
    for (uint32_t i = 0; i < r->member_count; i++) {
        const struct coverage_member *c = &r->members[i];
        bool takes =
            release ? coverage_lives(m, c) && c->called : coverage_waits(m, c);
        if (takes) m->links[count++] = c->link;
    }
    if (count > 0) m->out.send(m->out.user, m->links, count, &msg);
}

/* Of each committed part those that have it and live. */
static void make_fetch(const struct coverage_round *r,
                       const struct coverage_sets *s, struct coverage_letter *x)
{
    struct wire_msg *msg = &x->msg;
    x->made = true;
    *msg = order(r, PARTIAL_FETCH);
    add_ids(r, x, msg);
    add_parts(r, x, msg);
    for (uint32_t i = 0; i < r->part_count; i++) {
        uint64_t set[COVERAGE_WORDS];
        for (uint32_t w = 0; w < COVERAGE_WORDS; w++)
            set[w] = r->parts[i].holders[w] & s->lives[w];
        x->parts[i].contributors = r->parts[i].committed;
        add_set(x, msg, set);
    }
}

void coverage_send_fetch(struct master *m, struct coverage_round *r,
                         const struct coverage_sets *s, uint32_t member,
                         struct coverage_letter *letter)
{
    if (!letter->made) make_fetch(r, s, letter);
    letter->msg.partial.self = member;
    r->members[member].fetches = true;
    master_send(m, r->members[member].link, &letter->msg);
}

static double weight_of(const struct coverage_round *r,
                        const struct coverage_part *p, uint32_t *contributors)
{
    double sum = 0;
    *contributors = 0;
    for (uint32_t i = 0; i < r->member_count; i++) {
        if (!coverage_has(p->set, i)) continue;
        sum += r->members[i].weight;
        ++*contributors;
    }
    return sum;
}

static void make_end(const struct coverage_round *r, struct coverage_letter *x)
{
    static const uint64_t nobody[COVERAGE_WORDS];
    struct wire_msg *msg = &x->msg;
    x->made = true;
    *msg = order(r, PARTIAL_END);
    add_ids(r, x, msg);
    add_parts(r, x, msg);
    for (uint32_t i = 0; i < r->part_count; i++) {
        const struct coverage_part *p = &r->parts[i];
        struct wire_part *w = &x->parts[i];
        if (p->committed) w->weight = weight_of(r, p, &w->contributors);
        add_set(x, msg, p->committed ? p->set : nobody);
    }
}

void coverage_send_end(struct master *m, struct coverage_round *r,
                       uint32_t member, bool last,
                       struct coverage_letter *letter)
{
    struct coverage_member *c = &r->members[member];
    if (!letter->made) make_end(r, letter);
    letter->msg.partial.self = member;
    letter->msg.partial.contributed = c->contributed;
    letter->msg.partial.last = last;
    c->ended = c->has = true;
    master_send(m, c->link, &letter->msg);
}

void coverage_send_refusal(struct master *m, uint32_t link, uint64_t tag,
                           enum partial_refusal why, const char *text)
{
    struct wire_msg msg = {.type = WIRE_COVERAGE};
    msg.partial.word = PARTIAL_REFUSE;
    msg.partial.tag = tag;
    msg.partial.why = (uint8_t)why;
    size_t size = strnlen(text, WIRE_TEXT_MAX);
    memcpy(msg.partial.text, text, size);
    master_send(m, link, &msg);
}

void coverage_refuse(struct master *m, struct coverage_round *r,
                     uint32_t member, enum partial_refusal why,
                     const char *text)
{
    r->members[member].ended = true;
    for (uint32_t i = 0; i < r->part_count; i++) /* it drops what it has */
        r->parts[i].holders[member / 64] &= ~(1ull << member % 64);
    coverage_send_refusal(m, r->members[member].link, r->tag, why, text);
}
