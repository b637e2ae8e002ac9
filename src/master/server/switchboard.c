/* switchboard.c - see switchboard.h. */
#include "switchboard.h"

#include <string.h>

static void list_add(struct switchboard_list *list, struct master_conn *c)
{
    c->next = NULL;
    c->prev = list->last;
    if (c->prev)
        c->prev->next = c;
    else
        list->first = c;
    list->last = c;
}

static void list_remove(struct switchboard_list *list, struct master_conn *c)
{
    if (c->prev)
        c->prev->next = c->next;
    else
        list->first = c->next;
    if (c->next)
        c->next->prev = c->prev;
    else
        list->last = c->prev;
}

void switchboard_init(struct switchboard *b, struct master *machine,
                      const struct switchboard_output *out,
                      const struct switchboard_limits *limits)
{
    b->out = *out;
    b->machine = machine;
    b->limits = *limits;
    if (b->limits.out_max == 0) b->limits.out_max = CONN_OUT_MAX;
    if (b->limits.out_frames_max == 0)
        b->limits.out_frames_max = CONN_OUT_FRAMES_MAX;
    if (b->limits.conns_max == 0) b->limits.conns_max = SWITCHBOARD_CONNS_MAX;
    if (b->limits.turn_max == 0) b->limits.turn_max = SWITCHBOARD_TURN_MAX;
    PCCL_ASSERT(b->limits.conns_max <= SWITCHBOARD_CONNS_MAX);
}

static void destroy(struct switchboard *b, struct master_conn *c)
{
    b->out.end(b->out.user, c);
    if (c->dirty) {
        uint32_t i = 0;
        while (b->dirty[i] != c) i++;
        b->dirty[i] = b->dirty[--b->dirty_count];
    }
    struct switchboard_list *list = &b->open;
    if (c->link == MASTER_NO_LINK) list = c->relays ? &b->legs : &b->closing;
    list_remove(list, c);
    b->conn_count--;
    b->leg_count -= c->relays;
    master_conn_free(c);
}

void switchboard_free(struct switchboard *b)
{
    while (b->open.first) destroy(b, b->open.first);
    while (b->closing.first) destroy(b, b->closing.first);
    while (b->legs.first) destroy(b, b->legs.first);
}

bool switchboard_is_full(const struct switchboard *b)
{
    return b->conn_count >= b->limits.conns_max ||
           master_free_link(b->machine) == MASTER_NO_LINK;
}

static bool is_stranger(const struct switchboard *b,
                        const struct master_conn *c)
{
    const struct master_peer *p = &b->machine->peers[c->link];
    return !c->lost && !c->held && !p->held && p->state == PEER_CONNECTED;
}

struct master_conn *switchboard_stranger(const struct switchboard *b)
{
    struct master_conn *c = b->open.first;
    while (c && !is_stranger(b, c)) c = c->next;
    return c;
}

struct master_conn *switchboard_accept(struct switchboard *b,
                                       const struct wire_addr *addr, void *user)
{
    PCCL_ASSERT(!switchboard_is_full(b));
    struct master_conn *c = master_conn_new();
    if (!c) return NULL;
    c->user = user;
    c->link = master_free_link(b->machine);
    c->addr = *addr;
    c->out_max = b->limits.out_max;
    c->out_frames_max = b->limits.out_frames_max;
    list_add(&b->open, c);
    b->conn_count++;
    b->links[c->link] = c;
    struct master_event e = {
        .type = MASTER_CONNECTED, .link = c->link, .addr = c->addr};
    b->out.step(b->out.user, &e);
    return c;
}

void switchboard_lose(struct switchboard *b, struct master_conn *c,
                      const char *reason)
{
    if (c->lost) return;
    c->lost = reason;
    b->lost[b->lost_count++] = c;
}

void switchboard_touch(struct switchboard *b, struct master_conn *c)
{
    if (c->dirty) return;
    c->dirty = true;
    b->dirty[b->dirty_count++] = c;
}

void switchboard_send(struct switchboard *b, const uint32_t *links,
                      uint32_t count, const struct wire_msg *msg)
{
    size_t size = wire_encode(msg, b->frame);
    struct master_frame *frame = master_frame_new(b->frame, size);
    for (uint32_t i = 0; i < count; i++) {
        struct master_conn *c = b->links[links[i]];
        if (!c || c->lost) continue;
        if (frame && master_conn_queue(c, frame))
            switchboard_touch(b, c);
        else
            switchboard_lose(b, c, "reads too slowly");
    }
    if (frame) master_frame_release(frame);
}

static void close_later(struct switchboard *b, struct master_conn *c)
{
    list_add(&b->closing, c);
    c->linger_at = b->machine->now + b->machine->deadline;
    if (!c->lost) switchboard_touch(b, c);
}

void switchboard_close(struct switchboard *b, uint32_t link)
{
    struct master_conn *c = b->links[link];
    b->links[link] = NULL;
    c->link = MASTER_NO_LINK;
    list_remove(&b->open, c);
    close_later(b, c);
}

/* ------------------------------------------------------------------ relaying
 */

/* Rule N12c: the newest of a kind stay. */
static void make_room(struct switchboard *b, const struct master_conn *newest)
{
    uint32_t most = newest->listens ? 1 : SWITCHBOARD_DIALS_MAX, count = 0;
    for (struct master_conn *c = b->legs.last; c; c = c->prev) {
        bool same = c->from == newest->from && c->to == newest->to &&
                    c->listens == newest->listens;
        if (c->partner || c->lost || !same || count++ < most) continue;
        switchboard_lose(b, c, "another connection takes its place");
        return;
    }
}

static struct master_conn *partner_of(const struct switchboard *b,
                                      const struct master_conn *leg)
{
    for (struct master_conn *c = b->legs.first; c; c = c->next) {
        bool fits = c->from == leg->to && c->to == leg->from;
        if (fits && !c->partner && !c->lost && c->listens != leg->listens)
            return c;
    }
    return NULL;
}

static void pass_on(struct switchboard *b, const struct master_conn *c)
{
    if (c->partner && !c->partner->lost) switchboard_touch(b, c->partner);
}

void switchboard_relay(struct switchboard *b, uint32_t link,
                       const struct wire_msg *msg)
{
    struct master_conn *c = b->links[link];
    pccl_ns patience = b->machine->deadline;
    b->links[link] = NULL;
    c->link = MASTER_NO_LINK;
    list_remove(&b->open, c);
    if (b->leg_count == SWITCHBOARD_LEGS_MAX) {
        close_later(b, c);
        return;
    }
    list_add(&b->legs, c);
    b->leg_count++;
    master_conn_relay(c);
    b->relayed += c->in_size;
    c->from = msg->relay.from;
    c->to = msg->relay.to;
    c->listens = msg->relay.listens;
    if (!c->listens) patience = PCCL_TIME_TO_DETECT(patience);
    c->linger_at = b->machine->now + patience;
    make_room(b, c);
    struct master_conn *partner = partner_of(b, c);
    if (partner && !master_conn_join(c, partner))
        switchboard_lose(b, c, "out of memory");
    if (c->partner) switchboard_touch(b, c);
    pass_on(b, c);
}

/* Rule N12e: what it has sent goes out, then the other one is closed. */
static void part(struct switchboard *b, struct master_conn *c)
{
    struct master_conn *other = c->partner;
    if (!other) return;
    size_t rest = c->in_size - c->in_done;
    struct master_frame *frame =
        rest > 0 ? master_frame_new(c->in + c->in_done, rest) : NULL;
    list_remove(&b->legs, other);
    b->leg_count--;
    other->relays = false;
    other->partner = c->partner = NULL;
    other->in_size = other->in_done = 0; /* for nobody */
    bool kept = rest == 0 || (frame && master_conn_queue(other, frame));
    if (frame) master_frame_release(frame);
    close_later(b, other);
    if (!kept) switchboard_lose(b, other, "out of memory");
}

/* ------------------------------------------------------------------- bytes */

void switchboard_received(struct switchboard *b, struct master_conn *c,
                          size_t size)
{
    struct wire_msg msg;
    master_conn_received(c, size);
    if (c->relays) b->relayed += size;
    while (c->link != MASTER_NO_LINK && !c->lost) {
        struct master_event e = {
            .type = MASTER_RECEIVED, .link = c->link, .msg = &msg};
        switch (master_conn_next(c, &b->store, &msg)) {
        case WIRE_OK:
            b->out.step(b->out.user, &e);
            continue;
        case WIRE_MORE:
            break;
        case WIRE_BAD:
            switchboard_lose(b, c,
                             "sent bytes that are no frame of this "
                             "protocol");
            return;
        }
        bool stranger = b->machine->peers[c->link].state == PEER_CONNECTED;
        size_t limit = stranger ? CONN_IN_START : WIRE_FRAME_MAX;
        if (!master_conn_make_room(c, limit))
            switchboard_lose(b, c, "sent a frame that is too large");
        return;
    }
    if (c->relays && c->listens && !c->partner && c->in_size > 0)
        switchboard_lose(b, c, "speaks to nobody");
    pass_on(b, c);
    if (!c->relays) c->in_size = c->in_done = 0; /* nobody asks for it */
}

static void flush(struct switchboard *b, struct master_conn *c)
{
    c->dirty = false;
    if (c->lost) return;
    switch (b->out.flush(b->out.user, c)) {
    case CONN_WAIT:
        return;
    case CONN_END:
        switchboard_lose(b, c, "broken while sending");
        return;
    case CONN_DONE:
        break;
    }
    if (c->link == MASTER_NO_LINK && !c->relays) b->out.finish(b->out.user, c);
}

static void end(struct switchboard *b, struct master_conn *c)
{
    uint32_t link = c->link;
    if (link != MASTER_NO_LINK) b->links[link] = NULL;
    if (c->relays) part(b, c);
    destroy(b, c);
    if (link == MASTER_NO_LINK) return;
    struct master_event e = {.type = MASTER_CLOSED, .link = link};
    b->out.step(b->out.user, &e);
}

/* Those that wait, until so much is sent. What became dirty first is sent
 * first, but for one that takes the place of another one that was lost. */
static void flush_some(struct switchboard *b)
{
    uint32_t done = 0, count = b->dirty_count;
    size_t sent = 0;
    while (done < count && sent < b->limits.turn_max) {
        struct master_conn *c = b->dirty[done++];
        size_t before = c->out_size - c->out_done;
        flush(b, c);
        sent += before - (c->out_size - c->out_done);
    }
    b->dirty_count -= done;
    memmove(b->dirty, b->dirty + done, b->dirty_count * sizeof b->dirty[0]);
}

void switchboard_turn(struct switchboard *b)
{
    flush_some(b);
    while (b->lost_count > 0) {
        end(b, b->lost[--b->lost_count]);
        if (b->lost_count == 0) flush_some(b);
    }
}

pccl_ns switchboard_next_linger(const struct switchboard *b)
{
    return b->closing.first ? b->closing.first->linger_at : PCCL_NEVER;
}

void switchboard_linger(struct switchboard *b, pccl_ns now)
{
    struct master_conn *c = b->closing.first;
    for (; c && c->linger_at <= now; c = c->next)
        switchboard_lose(b, c, "lingered for too long");
    for (c = b->legs.first; c; c = c->next)
        if (!c->partner && c->linger_at <= now)
            switchboard_lose(b, c, "nobody came to be relayed");
}
