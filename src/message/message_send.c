/* message_send.c - the items of a link: queued, sent, acknowledged. See
 * message.h; rules in MESSAGES.md. */
#include "message.h"

#include "../../include/pccl.h"
#include "../base/buggify.h"
#include "../link/link.h"

#include <stdlib.h>
#include <string.h>

struct message_item *p2p_link_new_item(struct p2p_link *l)
{
    if (l->count == l->capacity) {
        uint32_t capacity = l->capacity ? 2 * l->capacity : 16;
        struct message_item *items = malloc(capacity * sizeof *items);
        if (!items) return NULL;
        for (uint32_t i = 0; i < l->count; i++)
            items[i] = l->items[(l->first + i) & (l->capacity - 1)];
        free(l->items);
        l->items = items;
        l->capacity = capacity;
        l->first = 0;
    }
    struct message_item *item =
        &l->items[(l->first + l->count++) & (l->capacity - 1)];
    *item = (struct message_item){.body = NULL};
    return item;
}

bool p2p_link_control(struct messages *m, struct p2p_link *l,
                      enum frame_type type, uint64_t key, uint32_t number,
                      uint64_t size)
{
    return p2p_link_flagged(m, l, type, 0, key, number, size);
}

bool p2p_link_flagged(struct messages *m, struct p2p_link *l,
                      enum frame_type type, uint8_t flags, uint64_t key,
                      uint32_t number, uint64_t size)
{
    struct message_item *item = p2p_link_new_item(l);
    if (!item) return false;
    item->frame = (struct frame){.type = (uint8_t)type,
                                 .flags = flags,
                                 .tag = key,
                                 .index = number,
                                 .digest = size};
    p2p_link_dirty(m, l);
    return true;
}

/* A live link to a member; NULL: *result is the reason. */
struct p2p_link *p2p_link_to(struct messages *m, uint64_t id, int *result)
{
    message_use(m);
    *result = pcclInvalidArgument;
    if (id == m->links->self) return NULL;
    *result = pcclRankConnectionLost;
    struct p2p_link *l = p2p_link_find(m, id, false);
    if (l ? l->gone : !links_member(m->links, id)) return NULL;
    *result = pcclInternalError;
    return l ? l : p2p_link_find(m, id, true);
}

/* The fields that every frame on the connection carries beside its own. */
static void frame_finish(struct p2p_link *l, struct frame *f)
{
    if (l->answer_due) f->flags |= FLAG_ANSWER;
    f->epoch = l->seq;
    l->ack_due = l->answer_due = false;
    l->unacked_items = 0;
    l->unacked_bytes = 0;
}

static void copy_message(uint8_t *to, const void *head, size_t head_size,
                         const void *body, size_t size)
{
    if (head_size > 0) memcpy(to, head, head_size);
    if (size > 0) memcpy(to + head_size, body, size);
}

/* Writes the body of a message behind what is in the channel already, which
 * are `done` bytes, and shows all. */
static void write_body(struct messages *m, struct conn *c, uint8_t *to,
                       size_t done, const uint8_t *body, size_t size)
{
    const struct driver *d = &m->links->driver;
    bool portions = done + size > MESSAGE_WHOLE_MAX;
    bool first = true;
    while (size > 0) {
        size_t part = size;
        if (portions && done + part > MESSAGE_PORTION)
            part = MESSAGE_PORTION - done;
        if (portions && d->fill)
            d->fill(d->user, c->number, to + done, body, part, size, first);
        else
            memcpy(to + done, body, part);
        first = false;
        channel_write(c->channel, done + part);
        to += done + part;
        body += part;
        size -= part;
        done = 0;
    }
    if (done > 0) channel_write(c->channel, done);
}

/* The only item that is not sent goes into shared memory at once, if nothing
 * else is under way there; from where the caller has it, so that the other end
 * need not wait for the copy that this one keeps. */
static bool send_now(struct messages *m, struct p2p_link *l, const void *head,
                     const void *body)
{
    if (!l->open || l->sent + 1 != l->count) return false;
    if (PCCL_BUGGIFY(message_queued)) return false;
    struct conn *c = m->links->conns[l->conn];
    const struct message_item *item =
        &l->items[(l->first + l->sent) & (l->capacity - 1)];
    uint8_t *to;
    size_t size = item->frame.size, head_size = item->frame.index;
    if (!c->channel || c->greets || c->ping || !conn_sent_all(c)) return false;
    if (channel_room(c->channel, &to) < FRAME_SIZE + size) return false;
    struct frame f = item->frame;
    f.seq = l->first_seq + l->sent;
    frame_finish(l, &f);
    frame_encode(&f, to);
    if (head_size > 0) memcpy(to + FRAME_SIZE, head, head_size);
    write_body(m, c, to, FRAME_SIZE + head_size, body, size - head_size);
    c->last_sent = m->links->now;
    l->sent++;
    return true;
}

int message_post(struct messages *m, uint64_t to, const void *head,
                 size_t head_size, const void *body, size_t size)
{
    int result;
    if (head_size > MESSAGE_HEADER_MAX || size > MESSAGE_MAX - head_size)
        return pcclInvalidArgument;
    struct p2p_link *l = p2p_link_to(m, to, &result);
    if (!l) return result;
    size_t bytes = head_size + size;
    if (l->posted >= MESSAGE_QUEUE_MAX ||
        (l->posted > 0 && (l->posted_bytes + bytes > MESSAGE_QUEUE_BYTES ||
                           PCCL_BUGGIFY(message_refused)))) {
        l->starved = true;
        return pcclPendingAsyncOps;
    }
    struct message_block *block =
        pool_take(&m->links->pool, sizeof *block + bytes);
    struct message_item *item = block ? p2p_link_new_item(l) : NULL;
    if (!item) {
        pool_give(&m->links->pool, block);
        return pcclInternalError;
    }
    item->frame = (struct frame){.type = FRAME_MESSAGE,
                                 .index = (uint32_t)head_size,
                                 .size = (uint32_t)bytes};
    item->body = block->bytes;
    item->block = block;
    l->posted++;
    l->posted_bytes += bytes;
    bool sent = send_now(m, l, head, body);
    copy_message(block->bytes, head, head_size, body, size);
    if (sent) return pcclSuccess;
    p2p_link_dirty(m, l);
    p2p_link_want(m, l);
    return pcclSuccess;
}

/* The next piece of the oldest send that is expected becomes an item. */
static void cut_piece(struct p2p_link *l)
{
    struct rndv *b = l->running;
    if (!b || l->pieces >= (b->uses_cma ? CMA_PIECES_MAX : RNDV_PIECES_MAX))
        return;
    uint64_t left = b->size - b->done;
    uint32_t most = b->uses_cma ? CMA_PIECE : RNDV_PIECE;
    uint32_t size = left < most ? (uint32_t)left : most;
    struct message_item *item = p2p_link_new_item(l);
    if (!item) return; /* the next ping tries again */
    item->frame = (struct frame){.type = FRAME_RNDV,
                                 .tag = b->event.key,
                                 .index = b->number,
                                 .size = size,
                                 .digest = b->done};
    item->body = b->send + b->done;
    if (b->uses_cma) {
        item->frame.type = FRAME_CMA;
        item->frame.size = 0;
        item->frame.digest = (uint64_t)(uintptr_t)item->body;
    }
    b->done += size;
    l->pieces++;
    if (b->done < b->size) return;
    p2p_link_pause(l, b);
    b->state = RNDV_CUT;
}

bool message_next_send(void *messages, struct conn *c, struct frame *f)
{
    struct p2p_link *l = c->peer;
    (void)messages;
    if (l->sent == l->count) cut_piece(l);
    if (l->sent < l->count) {
        const struct message_item *item =
            &l->items[(l->first + l->sent) & (l->capacity - 1)];
        *f = item->frame;
        f->seq = l->first_seq + l->sent;
        c->tx_from = f->size > 0 ? item->body : NULL;
        l->tx_item = true;
    } else if (l->ack_due || c->ping || l->answer_due) {
        *f = (struct frame){.type = FRAME_ACK};
    } else {
        return false;
    }
    frame_finish(l, f);
    return true;
}

void message_sent(struct p2p_link *l)
{
    if (l->tx_item) l->sent++;
    l->tx_item = false;
}

/* Everything up to `seq` has arrived; at most `most` items can have. */
bool p2p_link_acked(struct messages *m, struct p2p_link *l, uint32_t seq,
                    uint32_t most)
{
    uint32_t count = seq - l->first_seq + 1;
    if (count > most) return false;
    if (count == 0) return true;
    for (uint32_t i = 0; i < count; i++) {
        struct message_item *item = &l->items[l->first];
        if (item->frame.type == FRAME_MESSAGE) {
            l->posted--;
            l->posted_bytes -= item->frame.size;
        }
        if (item->frame.type == FRAME_RNDV || item->frame.type == FRAME_CMA)
            l->pieces--;
        pool_give(&m->links->pool, item->block);
        l->first = (l->first + 1) & (l->capacity - 1);
    }
    l->first_seq += count;
    l->count -= count;
    l->sent = l->sent > count ? l->sent - count : 0;
    if (l->running) p2p_link_dirty(m, l); /* more pieces may go */
    if (l->starved && l->posted <= MESSAGE_QUEUE_MAX / 2 &&
        l->posted_bytes <= MESSAGE_QUEUE_BYTES / 2) {
        l->starved = false;
        if (!l->room.queued) p2p_link_push(m, &l->room);
    }
    return true;
}
