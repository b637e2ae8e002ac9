/* conn_send.c - makes bytes of frames: chooses the next bytes of a connection.
 * See conn.h. */
#include "link.h"

static const uint8_t padding[64 * 1024];

static bool give(const struct links *n, enum client_order which, struct conn *c,
                 struct frame *f)
{
    const struct link_client *client = &n->clients[which];
    if (!client->next_send || !client->next_send(client->user, c, f))
        return false;
    c->tx_client = client;
    return true;
}

static bool next_of_link(struct links *n, struct conn *c, struct frame *f)
{
    struct link *l = c->link;
    if (c->ping) {
        *f = (struct frame){.type = FRAME_PING, .epoch = n->view->epoch};
        pccl_ns deaf = link_time(n, l, PCCL_TIME_TO_MISS(n->deadline));
        if (n->now - c->last_recv >= deaf && !c->parked) f->flags = FLAG_DEAF;
        if (c->asks > 0) {
            f->flags |= FLAG_ANSWER;
            f->index = c->asks;
            c->asks = 0;
        } else if (c->asked != l->attempt) {
            f->index = c->asked = l->attempt;
        }
        return true;
    }
    if (give(n, CLIENT_BEFORE_CONTROL, c, f)) return true;
    if (l->control_count > 0) {
        *f = l->control[l->control_first];
        l->control_first = (l->control_first + 1) % l->control_room;
        l->control_count--;
        return true;
    }
    if (region_next_frame(n, c, f) || probe_next_send(n, l, f)) {
        c->tx_from = NULL;
        return true;
    }
    if (!link_is_spare(l, c) &&
        (give(n, CLIENT_AFTER_CONTROL, c, f) || give(n, CLIENT_LAST, c, f)))
        return true;
    c->tx_starved = true;
    return false;
}

static bool next_frame(struct links *n, struct conn *c)
{
    struct frame f;
    c->tx_client = NULL;
    if (c->peer) {
        if (!n->p2p.next_send(n->p2p.user, c, &f)) return false;
    } else if (c->guest) {
        if (!n->guests.next_send(n->guests.user, c, &f)) return false;
    } else if (!next_of_link(n, c, &f)) {
        return false;
    }
    c->ping = c->state == CONN_OPEN && c->link && f.type == FRAME_PING &&
              c->asked != c->link->attempt;
    frame_encode(&f, c->tx_head);
    c->tx_head_size = FRAME_SIZE;
    c->tx_head_done = 0;
    c->tx_left = f.size;
    return true;
}

uint32_t conn_tx_window(struct links *n, uint32_t number,
                        struct conn_part parts[2])
{
    struct conn *c = n->conns[number];
    if (!c || c->state == CONN_FREE) return 0;
    if (c->leg) return relay_tx_window(c, parts);
    if (conn_sent_all(c) && (c->state != CONN_OPEN || !next_frame(n, c)))
        return 0;
    uint32_t count = 0;
    if (c->tx_head_done < c->tx_head_size) {
        parts[count].from = c->tx_head + c->tx_head_done;
        parts[count++].size = c->tx_head_size - c->tx_head_done;
    }
    if (c->tx_left > 0) {
        uint32_t size = c->tx_left;
        if (!c->tx_from && size > sizeof padding) size = sizeof padding;
        parts[count].from = c->tx_from ? c->tx_from : padding;
        parts[count++].size = size;
    }
    return count;
}

void conn_tx(struct links *n, uint32_t number, size_t size)
{
    struct conn *c = n->conns[number];
    c->last_sent = n->now;
    if (c->leg) {
        relay_tx(n, c, size);
        return;
    }
    uint32_t head = c->tx_head_size - c->tx_head_done;
    if (head > size) head = (uint32_t)size;
    c->tx_head_done += head;
    uint32_t body = (uint32_t)size - head;
    PCCL_ASSERT(body <= c->tx_left);
    c->tx_left -= body;
    if (c->tx_from) c->tx_from += body;
    if (c->tx_left > 0 || c->tx_head_done < c->tx_head_size) {
        c->tx_cut = true;
        return;
    }
    void *owner = c->tx_owner;
    const struct link_client *client = c->tx_client;
    c->greets = false;
    c->tx_owner = NULL;
    c->tx_from = NULL;
    conn_drop_tx(c);
    if (c->peer) n->p2p.sent(c->peer);
    if (owner && client && client->sent)
        client->sent(client->user, owner, c->tx_part);
}

/* The owner takes its buffers back. By now every receiver has flushed and
 * discards the rest (rule F2). */
void conn_forget(struct links *n, const void *owner)
{
    for (uint32_t i = 0; i < n->conn_end; i++) {
        struct conn *c = n->conns[i];
        if (!c || c->state == CONN_FREE) continue;
        conn_stop_body(c, owner);
        if (c->tx_owner != owner) continue;
        c->tx_owner = NULL;
        c->tx_from = NULL;
        conn_drop_tx(c);
    }
}

/* The buffers change before everybody has flushed, or was removed: nobody may
 * take the rest of a frame for data. */
void conn_cut_sending(struct links *n, const void *owner)
{
    for (uint32_t i = 0; i < n->conn_end; i++) {
        const struct conn *c = n->conns[i];
        if (c && c->state != CONN_FREE && c->tx_owner == owner)
            (void)conn_reject(n, i);
    }
}
