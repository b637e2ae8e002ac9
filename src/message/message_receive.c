/* message_receive.c - what comes on a connection for messages. See message.h;
 * rules in master/PROTOCOL.md. */
#include "../ring/op.h"

#include "../../include/pccl.h"

#include <string.h>

static bool is_message(const struct frame *f)
{
    return f->size <= MESSAGE_MAX && f->index <= f->size &&
           f->index <= MESSAGE_HEADER_MAX;
}

static struct message_block *new_block(struct engine *e, const struct mlink *l,
                                       const struct frame *f)
{
    struct message_block *block =
        pool_take(&e->links.pool, sizeof *block + f->size);
    if (!block) return NULL;
    block->event =
        (struct message_event){.kind = EVENT_MESSAGE, .member = l->id};
    block->head = f->index;
    block->size = f->size;
    return block;
}

static bool begin_message(struct engine *e, struct conn *c)
{
    if (!is_message(&c->rx)) return false;
    struct message_block *block = new_block(e, c->peer, &c->rx);
    if (!block) return false;
    c->rx_block = block;
    c->rx_to = block->bytes;
    c->sink = SINK_MESSAGE;
    return true;
}

static bool begin_piece(struct conn *c)
{
    const struct frame *f = &c->rx;
    struct bulk *b = mlink_find_bulk(c->peer, f);
    if (!b) return true; /* cancelled */
    if (f->digest != b->done || f->size > b->size - b->done) return false;
    c->rx_bulk = b;
    c->rx_to = b->to + b->done;
    c->sink = SINK_MESSAGE;
    return true;
}

/* A header; conn.c has set the sink to DISCARD. False: close. */
bool message_begin(struct engine *e, uint32_t number)
{
    struct conn *c = e->links.conns[number];
    struct mlink *l = c->peer;
    const struct frame *f = &c->rx;
    if (!mlink_acked(e, l, f->epoch, l->sent)) return false;
    if (f->flags & FLAG_ANSWER) {
        l->ack_due = true;
        mlink_dirty(e, l);
    }
    if (f->type == FRAME_ACK || f->type == FRAME_PING) return true;
    if (f->type < FRAME_MESSAGE || f->seq != l->seq + 1) return false;
    c->rx_numbered = true;
    if (f->type == FRAME_MESSAGE) return begin_message(e, c);
    if (f->type == FRAME_BULK) return begin_piece(c);
    if (f->type == FRAME_EXPECT) return mlink_on_expect(e, l, f);
    return true;
}

/* An item is complete. */
static void count_item(struct engine *e, struct mlink *l, uint32_t size)
{
    l->seq++;
    l->unacked_items++;
    l->unacked_bytes += size;
    if (l->unacked_items < MESSAGE_ACK_COUNT &&
        l->unacked_bytes < MESSAGE_ACK_BYTES)
        return;
    l->ack_due = true;
    mlink_dirty(e, l);
}

static void deliver(struct engine *e, struct mlink *l,
                    struct message_block *block)
{
    l->inbox_count++;
    l->inbox_bytes += block->size;
    mlink_push(e, &block->event);
}

/* A message that lies in shared memory as a whole, taken in one go. 0: it is
 * anything else, which the general way is for. */
size_t message_take_whole(struct engine *e, uint32_t number,
                          const uint8_t *bytes, size_t size)
{
    struct conn *c = e->links.conns[number];
    struct mlink *l = c->peer;
    uint8_t head[FRAME_SIZE]; /* rule L5 */
    struct frame f;
    if (!l || c->state != CONN_OPEN || c->sink != SINK_NONE || c->staged > 0 ||
        size < FRAME_SIZE || message_full(l))
        return 0;
    memcpy(head, bytes, sizeof head);
    if (!frame_decode(head, &f) || f.type != FRAME_MESSAGE || f.flags != 0 ||
        f.seq != l->seq + 1 || size - FRAME_SIZE < f.size || !is_message(&f) ||
        !mlink_acked(e, l, f.epoch, l->sent))
        return 0;
    struct message_block *block = new_block(e, l, &f);
    if (!block) return 0;
    memcpy(block->bytes, bytes + FRAME_SIZE, f.size);
    c->last_recv = e->links.now;
    count_item(e, l, f.size);
    deliver(e, l, block);
    return FRAME_SIZE + (size_t)f.size;
}

static void end_piece(struct engine *e, struct mlink *l, struct bulk *b,
                      uint32_t size)
{
    b->done += size;
    if (b->done < b->size) return;
    (void)mlink_control(e, l, FRAME_GOT, b->event.key, b->number, 0);
    mlink_end_bulk(e, l, b, pcclSuccess);
}

/* Rule P2P-9. What cannot be read is asked for again, to be sent. */
static void cma_read_piece(struct engine *e, uint32_t number)
{
    struct mlink *l = e->links.conns[number]->peer;
    const struct frame *f = &e->links.conns[number]->rx;
    struct bulk *b = mlink_find_bulk(l, f);
    const struct wire_member *member = engine_member(e, l->id);
    if (!b) return; /* cancelled */
    uint64_t size = b->size - b->done;
    if (size > CMA_PIECE) size = CMA_PIECE;
    if (e->out.cma_read && member && !l->barred &&
        e->out.cma_read(e->out.user, number, member, f->digest, b->to + b->done,
                        (size_t)size)) {
        l->ack_due = true; /* the next piece waits for it */
        mlink_dirty(e, l);
        end_piece(e, l, b, (uint32_t)size);
        return;
    }
    l->barred = true;
    b->done = 0;
    (void)mlink_control(e, l, FRAME_CANCEL, f->tag, b->number, 0);
    b->number = l->number++;
    (void)mlink_announce(e, l, b);
}

void message_end(struct engine *e, uint32_t number)
{
    struct conn *c = e->links.conns[number];
    struct mlink *l = c->peer;
    const struct frame *f = &c->rx;
    c->rx_numbered = false;
    count_item(e, l, f->size);
    struct message_block *block = c->rx_block;
    struct bulk *bulk = c->rx_bulk;
    c->rx_block = NULL;
    c->rx_bulk = NULL;
    if (block) deliver(e, l, block);
    if (bulk) end_piece(e, l, bulk, f->size);
    if (f->type == FRAME_CMA) cma_read_piece(e, number);
    if (f->type == FRAME_CANCEL || f->type == FRAME_GOT) mlink_on_word(e, l, f);
    if (f->type != FRAME_REFUSE) return;
    bulk = mlink_find_bulk(l, f);
    if (bulk) mlink_end_bulk(e, l, bulk, pcclInvalidArgument);
}
