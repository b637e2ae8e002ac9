/* pieces.c - see pieces.h. */
#include "pieces.h"

#include "algorithm.h"
#include "geometry.h"

#include "../reduce/reduce.h"

/* In `came`: the place of a part that waits for its turn. */
enum {
    CAME_NOT,
    CAME_QUEUE, /* it came through a queue and is in the slot */
    CAME_LENT,  /* it is in this slot of its sender's region, and so on */
};

void pieces_cut(const struct plan *p, uint32_t piece, struct plan_xfer *x)
{
    plan_chunk_cut(p, piece / p->segments, piece % p->segments, x);
}

void pieces_add(struct op *op, uint32_t piece, unsigned turns, size_t at,
                const uint8_t *bytes, size_t size)
{
    const struct plan *p = &op->plan;
    struct plan_xfer x;
    pieces_cut(p, piece, &x);
    size_t count = size / p->r.element;
    uint8_t *to =
        (uint8_t *)op->r.recvbuf + (x.offset - plan_result_first(p)) + at;
    const uint8_t *own = (const uint8_t *)op->r.sendbuf + x.offset + at;
    input_overwrite(op, to, size);
    reduce_apply(op->r.dtype, op->r.redop, to, bytes,
                 turns & TURN_FIRST ? own : to, count);
    if ((turns & TURN_LAST) && op->r.redop == REDOP_AVG)
        reduce_divide(op->r.dtype, to, count, p->r.world);
}

void *pieces_begin(struct engine *e, struct op *op, size_t own,
                   uint32_t partners, uint32_t places)
{
    const struct plan *p = &op->plan;
    size_t pieces = pieces_count(p), count = (size_t)partners * places;
    size_t added = (own + 63) / 64 * 64;
    size_t ready = added + pieces * sizeof(uint16_t);
    size_t came = ready + 2 * pieces / 8 + 1;
    size_t slots = (came + count + 63) / 64 * 64;
    size_t room = p->segments > 1 ? p->segment : plan_chunk_size(p, 0);
    uint8_t *state = op_take_state(e, op, slots, count * room);
    struct pieces *s = (struct pieces *)(void *)state;
    if (!s) return NULL;
    s->added = (uint16_t *)(void *)(state + added);
    s->ready = state + ready;
    s->came = state + came;
    s->slots = state + slots;
    s->places = places;
    s->room = room;
    return s;
}

bool pieces_has(const struct op *op, uint32_t after)
{
    const struct pieces *s = op->state;
    return op_bit_get(s->ready, after);
}

void pieces_mark(struct engine *e, struct op *op, uint32_t bit)
{
    struct pieces *s = op->state;
    op_bit_set(s->ready, bit);
    op_wake(e, op);
}

/* -------------------------------------------------------- parts, in turn */

static uint32_t place_of(const struct pieces *s, const struct pieces_part *part)
{
    return part->place + (part->turn - 1) * s->places;
}

static uint8_t *slot_of(const struct pieces *s, const struct pieces_part *part)
{
    return s->slots + place_of(s, part) * s->room;
}

static void add(struct op *op, const struct pieces_part *part, size_t at,
                const uint8_t *bytes, size_t size)
{
    unsigned turns = part->turn == 1 ? TURN_FIRST : 0;
    if (part->all && part->turn == part->turns) turns |= TURN_LAST;
    if (size > 0) pieces_add(op, part->piece, turns, at, bytes, size);
}

/* False: the data cannot be read any more, because the sender has left the
 * operation; this end will soon learn why. The transfer never counts (rule
 * L8). */
static bool add_lent(struct op *op, const struct pieces_part *part,
                     uint32_t slot, uint32_t size)
{
    const struct plan *p = &op->plan;
    uint32_t rank = (p->r.rank + part->turn) % p->r.world;
    const struct endpoint *ep = &op->eps[rank < p->r.rank ? rank : rank - 1];
    const uint8_t *region = region_of(ep->link);
    if (!region) return false;
    size_t at = p->algorithm->lent(p, slot, part->piece);
    add(op, part, 0, region + at, size);
    return single_copy_is_valid(op, region, slot);
}

/* Adds the parts that came before their turn, as far as possible. */
static void take_waiting(struct engine *e, struct op *op,
                         struct pieces_part part, uint32_t size)
{
    struct pieces *s = op->state;
    uint16_t *added = &s->added[part.piece];
    while ((part.turn = *added + 1u) <= part.turns) {
        uint8_t *where = &s->came[place_of(s, &part)];
        if (*where == CAME_NOT) return;
        if (*where == CAME_QUEUE)
            add(op, &part, 0, slot_of(s, &part), size);
        else if (!add_lent(op, &part, *where - (uint32_t)CAME_LENT, size))
            return;
        *where = CAME_NOT;
        ++*added;
    }
    pieces_mark(e, op, part.piece);
}

void pieces_arrived(struct engine *e, struct op *op,
                    const struct pieces_part *part, const uint8_t *body,
                    uint32_t size)
{
    struct pieces *s = op->state;
    if (body && body == slot_of(s, part)) {
        s->came[place_of(s, part)] = CAME_QUEUE;
    } else {
        if (body) add(op, part, 0, body, size);
        s->added[part->piece]++;
    }
    take_waiting(e, op, *part, size);
}

void pieces_lent(struct engine *e, struct op *op,
                 const struct pieces_part *part, uint32_t slot, uint32_t size)
{
    struct pieces *s = op->state;
    s->came[place_of(s, part)] = (uint8_t)(CAME_LENT + slot);
    take_waiting(e, op, *part, size);
}

uint8_t *pieces_place(struct op *op, const struct endpoint *ep, uint32_t k,
                      const struct plan_xfer *x)
{
    const struct pieces *s = op->state;
    struct pieces_part part;
    if (!op->plan.algorithm->part(&op->plan, ep->rank, k, &part))
        return (uint8_t *)op->r.recvbuf + x->offset;
    return s->added[part.piece] + 1u == part.turn ? NULL : slot_of(s, &part);
}

void pieces_reduce(struct op *op, const struct endpoint *ep, uint32_t k,
                   size_t at, const uint8_t *bytes, size_t size)
{
    struct pieces_part part;
    if (op->plan.algorithm->part(&op->plan, ep->rank, k, &part))
        add(op, &part, at, bytes, size);
}
