/* message_receive.c - receives the frames of a connection for messages. See
 * message.h; rules in MESSAGES.md. */
#include "message.h"

#include "../../include/pccl.h"
#include "../base/buggify.h"
#include "../link/link.h"

#include <string.h>

static bool is_message(const struct frame *f)
{
    return f->size <= MESSAGE_MAX && f->index <= f->size &&
           f->index <= MESSAGE_HEADER_MAX;
}

static struct message_block *
new_block(struct messages *m, const struct p2p_link *l, const struct frame *f)
{
    struct message_block *block =
        pool_take(&m->links->pool, sizeof *block + f->size);
    if (!block) return NULL;
    block->event =
        (struct message_event){.kind = EVENT_MESSAGE, .member = l->id};
    block->head = f->index;
    block->size = f->size;
    return block;
}

static bool begin_message(struct messages *m, struct conn *c)
{
    if (!is_message(&c->rx)) return false;
    struct message_block *block = new_block(m, c->peer, &c->rx);
    if (!block) return false;
    c->peer->rx_block = block;
    c->rx_to = block->bytes;
    c->rx_state = RX_BODY;
    return true;
}

static bool begin_piece(struct conn *c)
{
    const struct frame *f = &c->rx;
    struct rndv *b = p2p_link_find_rndv(c->peer, f);
    if (!b) return true; /* cancelled */
    if (f->digest != b->done || f->size > b->size - b->done) return false;
    c->peer->rx_rndv = b;
    c->rx_to = b->recv + b->done;
    c->rx_state = RX_BODY;
    return true;
}

static bool begin_frame(void *user, struct conn *c)
{
    struct messages *m = user;
    struct p2p_link *l = c->peer;
    const struct frame *f = &c->rx;
    if (!p2p_link_acked(m, l, f->epoch, l->sent)) return false;
    if (f->flags & FLAG_ANSWER) {
        l->ack_due = true;
        p2p_link_dirty(m, l);
    }
    if (f->type == FRAME_ACK || f->type == FRAME_PING) return true;
    if (f->seq != l->seq + 1) return false;
    l->rx_numbered = true;
    if (f->type == FRAME_MESSAGE) return begin_message(m, c);
    if (f->type == FRAME_RNDV) return begin_piece(c);
    if (f->type == FRAME_EXPECT) return p2p_link_on_expect(m, l, f);
    const struct rndv *b =
        f->type == FRAME_CMA ? p2p_link_find_rndv(l, f) : NULL;
    return !b || b->uses_cma; /* or it was not announced so */
}

/* An item is complete. */
static void count_item(struct messages *m, struct p2p_link *l, uint32_t size)
{
    l->seq++;
    l->unacked_items++;
    l->unacked_bytes += size;
    if (l->unacked_items < MESSAGE_ACK_COUNT &&
        l->unacked_bytes < MESSAGE_ACK_BYTES && !PCCL_BUGGIFY(ack_early))
        return;
    l->ack_due = true;
    p2p_link_dirty(m, l);
}

static void deliver(struct messages *m, struct p2p_link *l,
                    struct message_block *block)
{
    l->inbox_count++;
    l->inbox_bytes += block->size;
    p2p_link_push(m, &block->event);
}

/* Takes a message that is complete in shared memory in one step. 0: any other
 * case, which the general path handles. */
size_t message_take_whole(void *messages, struct conn *c, const uint8_t *bytes,
                          size_t size)
{
    struct messages *m = messages;
    struct p2p_link *l = c->peer;
    uint8_t head[FRAME_SIZE]; /* rule L5 */
    struct frame f;
    if (c->state != CONN_OPEN || c->rx_state != RX_HEADER || c->rx_filled > 0 ||
        size < FRAME_SIZE || message_full(l))
        return 0;
    memcpy(head, bytes, sizeof head);
    if (!frame_decode(head, &f) || f.type != FRAME_MESSAGE || f.flags != 0 ||
        f.seq != l->seq + 1 || size - FRAME_SIZE < f.size || !is_message(&f) ||
        !p2p_link_acked(m, l, f.epoch, l->sent))
        return 0;
    struct message_block *block = new_block(m, l, &f);
    if (!block) return 0;
    memcpy(block->bytes, bytes + FRAME_SIZE, f.size);
    c->last_recv = m->links->now;
    count_item(m, l, f.size);
    deliver(m, l, block);
    return FRAME_SIZE + (size_t)f.size;
}

static void end_piece(struct messages *m, struct p2p_link *l, struct rndv *b,
                      uint32_t size)
{
    b->done += size;
    if (b->done < b->size) return;
    const struct driver *d = &m->links->driver;
    if (b->compared) d->cma_compared(d->user, l->conn, (size_t)b->size);
    (void)p2p_link_control(m, l, FRAME_GOT, b->event.key, b->number, 0);
    p2p_link_end_rndv(m, l, b, pcclSuccess);
}

/* Rule P2P-9. If the memory cannot be read, the receiver asks the sender to
 * send the piece. */
static void cma_read_piece(struct messages *m, const struct conn *c)
{
    struct p2p_link *l = c->peer;
    const struct frame *f = &c->rx;
    const struct driver *d = &m->links->driver;
    struct rndv *b = p2p_link_find_rndv(l, f);
    const struct wire_member *member = links_member(m->links, l->id);
    if (!b) return; /* cancelled */
    uint64_t size = b->size - b->done;
    if (size > CMA_PIECE) size = CMA_PIECE;
    if (d->cma_read && member && !l->barred &&
        d->cma_read(d->user, c->number, member, f->digest, b->recv + b->done,
                    (size_t)size)) {
        l->ack_due = true; /* the next piece waits for it */
        p2p_link_dirty(m, l);
        end_piece(m, l, b, (uint32_t)size);
        return;
    }
    l->barred = true;
    b->done = 0;
    (void)p2p_link_control(m, l, FRAME_CANCEL, f->tag, b->number, 0);
    b->number = l->number++;
    (void)p2p_link_announce(m, l, b);
}

static bool end_frame(void *user, struct conn *c)
{
    struct messages *m = user;
    struct p2p_link *l = c->peer;
    const struct frame *f = &c->rx;
    if (!l->rx_numbered) return true;
    l->rx_numbered = false;
    count_item(m, l, f->size);
    struct message_block *block = l->rx_block;
    struct rndv *rndv = l->rx_rndv;
    l->rx_block = NULL;
    l->rx_rndv = NULL;
    if (block) deliver(m, l, block);
    if (rndv) end_piece(m, l, rndv, f->size);
    if (f->type == FRAME_CMA) cma_read_piece(m, c);
    if (f->type == FRAME_CANCEL || f->type == FRAME_GOT)
        p2p_link_on_word(m, l, f);
    if (f->type != FRAME_REFUSE) return true;
    rndv = p2p_link_find_rndv(l, f);
    if (rndv) p2p_link_end_rndv(m, l, rndv, pcclInvalidArgument);
    return true;
}

void message_receive_frames(struct messages *m)
{
    static const enum frame_type types[] = {
        FRAME_PING,   FRAME_MESSAGE, FRAME_EXPECT, FRAME_CMA, FRAME_CANCEL,
        FRAME_REFUSE, FRAME_RNDV,    FRAME_GOT,    FRAME_ACK};
    static const struct frame_handler handler = {ON_OPEN, begin_frame,
                                                 end_frame};
    for (size_t i = 0; i < ARRAY_COUNT(types); i++)
        links_receive(m->links, CONN_OF_P2P_LINK, types[i], &handler, m);
}
