/* conn_receive.c - makes frames of received bytes, and passes them to their
 * handlers. See conn.h. */
#include "link.h"

#include <string.h>

/* The handler of the frame's type decides where the body goes. False: the frame
 * breaks the protocol. */
static bool begin_frame(struct links *n, struct conn *c)
{
    const struct frame_route *r = &n->routes[conn_use_of(c)][c->rx.type];
    c->rx_left = c->rx.size;
    c->rx_state = RX_DISCARD;
    c->rx_owner = NULL;
    c->rx_consume = NULL;
    if (!r->known || !(r->handler.states >> c->state & 1)) return false;
    return !r->handler.begin || r->handler.begin(r->user, c);
}

static bool end_frame(struct links *n, struct conn *c)
{
    const struct frame_route *r = &n->routes[conn_use_of(c)][c->rx.type];
    c->rx_state = RX_HEADER;
    return !r->handler.end || r->handler.end(r->user, c);
}

/* Moves bytes of the buffer into the body; true when the body is complete. */
static bool fill_body(struct conn *c)
{
    uint32_t have = c->rx_filled - c->rx_parsed;
    uint32_t take = have < c->rx_left ? have : c->rx_left;
    if (c->rx_state != RX_DISCARD && take > 0) {
        memcpy(c->rx_to, c->rx_buffer + c->rx_parsed, take);
        c->rx_to += take;
    }
    c->rx_parsed += take;
    c->rx_left -= take;
    return c->rx_left == 0;
}

static bool parse(struct links *n, struct conn *c)
{
    for (;;) {
        if (c->leg) return relay_absorb(n, c);
        if (c->rx_state == RX_HEADER) {
            if (c->rx_filled - c->rx_parsed < FRAME_SIZE) break;
            if (c->stranger || (c->peer && n->p2p.full(c->peer))) break;
            if (!frame_decode(c->rx_buffer + c->rx_parsed, &c->rx))
                return false;
            bool later = c->rx.type != FRAME_HELLO &&
                         c->rx.type != FRAME_PING &&
                         c->rx.epoch > n->view->epoch;
            c->parked = later && c->state == CONN_OPEN && !c->peer;
            if (c->parked) break;
            c->rx_parsed += FRAME_SIZE;
            if (!begin_frame(n, c)) return false;
        }
        if (!fill_body(c)) break;
        if (!end_frame(n, c)) return false;
        if (c->state == CONN_FREE) return true; /* a fault closed it */
    }
    memmove(c->rx_buffer, c->rx_buffer + c->rx_parsed,
            c->rx_filled - c->rx_parsed);
    c->rx_filled -= c->rx_parsed;
    c->rx_parsed = 0;
    return true;
}

size_t conn_rx_window(struct links *n, uint32_t number, uint8_t **to)
{
    struct conn *c = n->conns[number];
    if (!c || c->state == CONN_FREE || c->parked) return 0;
    if (c->leg) return relay_rx_window(n, c, to);
    if (c->peer && c->rx_state == RX_HEADER && n->p2p.full(c->peer)) return 0;
    if (c->rx_state == RX_HEADER || c->rx_filled > 0) {
        *to = c->rx_buffer + c->rx_filled;
        /* Bytes after a HELLO may come through another path, and bytes of a
         * channel go to their place at once. */
        if (c->state != CONN_OPEN || c->channel)
            return FRAME_SIZE - c->rx_filled;
        return RX_BUFFER_SIZE - c->rx_filled;
    }
    *to = c->rx_to;
    if (c->rx_state != RX_DISCARD) return c->rx_left;
    *to = n->trash;
    return c->rx_left < sizeof n->trash ? c->rx_left : sizeof n->trash;
}

bool conn_rx(struct links *n, uint32_t number, size_t size)
{
    struct conn *c = n->conns[number];
    if (c->leg) return relay_rx(n, c, size) || conn_reject(n, number);
    /* A HELLO that arrives byte by byte does not extend its deadline. */
    if (c->state == CONN_OPEN) c->last_recv = n->now;
    if (c->rx_state == RX_HEADER || c->rx_filled > 0) {
        c->rx_filled += (uint32_t)size;
        PCCL_ASSERT(c->rx_filled <= RX_BUFFER_SIZE);
    } else {
        PCCL_ASSERT(size <= c->rx_left);
        if (c->rx_state != RX_DISCARD && c->rx_to) c->rx_to += size;
        c->rx_left -= (uint32_t)size;
        if (c->rx_left > 0) return true;
        return end_frame(n, c) || conn_reject(n, number);
    }
    return parse(n, c) || conn_reject(n, number);
}

void conn_rx_dry(struct links *n, uint32_t number)
{
    const struct conn *c = n->conns[number];
    if (c && c->peer && n->p2p.ended(c->peer)) (void)conn_reject(n, number);
}

void conn_resume(struct links *n)
{
    for (uint32_t i = 0; i < n->conn_end; i++) {
        struct conn *c = n->conns[i];
        if (!c || c->state == CONN_FREE || !c->parked) continue;
        bool stranger = c->stranger;
        c->parked = c->stranger = false;
        if ((stranger && !conn_open(n, c)) || !parse(n, c))
            (void)conn_reject(n, i);
    }
}

void conn_resume_one(struct links *n, uint32_t number)
{
    if (!parse(n, n->conns[number])) (void)conn_reject(n, number);
}

/* ------------------------------------------------------------ shared memory */

/* A client wants the next frame to stay where it is. If a header arrives in
 * parts, the first parts are taken already. */
static bool is_deferred(const struct links *n, const struct conn *c,
                        const uint8_t *bytes, size_t size)
{
    const struct link_client *client = &n->clients[CLIENT_AFTER_CONTROL];
    struct frame f;
    uint8_t head[FRAME_SIZE];
    if (c->state != CONN_OPEN || c->peer || c->rx_state != RX_HEADER ||
        c->rx_filled > 0 || size < FRAME_SIZE || !client->defers)
        return false;
    memcpy(head, bytes, FRAME_SIZE); /* rule L5 */
    return frame_decode(head, &f) && client->defers(client->user, &f);
}

size_t conn_rx_from(struct links *n, uint32_t number, const uint8_t *bytes,
                    size_t size)
{
    struct conn *c = n->conns[number];
    size_t done = 0;
    while (done < size) {
        uint8_t *to;
        size_t whole = 0;
        if (c->peer)
            whole =
                n->p2p.take_whole(n->p2p.user, c, bytes + done, size - done);
        done += whole;
        if (whole > 0) continue;
        if (is_deferred(n, c, bytes + done, size - done)) break;
        size_t part = conn_rx_window(n, number, &to);
        if (part == 0) break;
        if (part > size - done) part = size - done;
        if (c->rx_state == RX_BODY && c->rx_consume) {
            part = c->rx_consume(c, bytes + done, part);
            if (part == 0) break; /* the rest of an element comes later */
        } else if (c->rx_state != RX_DISCARD) {
            memcpy(to, bytes + done, part);
        }
        done += part;
        if (!conn_rx(n, number, part) || c->state == CONN_FREE) break;
    }
    return done;
}

/* ------------------------------------------------------------------- owners */

void conn_stop_body(struct conn *c, const void *owner)
{
    if (c->rx_state != RX_BODY || c->rx_owner != owner) return;
    c->rx_state = RX_DISCARD;
    c->rx_owner = NULL;
    c->rx_consume = NULL;
}

void conn_stop_receiving(struct links *n, const void *owner)
{
    for (uint32_t i = 0; i < n->conn_end; i++) {
        struct conn *c = n->conns[i];
        if (c && c->state != CONN_FREE) conn_stop_body(c, owner);
    }
}

void link_stop_receiving(const struct link *l, const void *owner)
{
    for (struct conn *c = l->conns; c; c = c->next) conn_stop_body(c, owner);
}
