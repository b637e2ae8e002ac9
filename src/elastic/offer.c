/* offer.c - see offer.h. */
#include "offer.h"

#include "../hash/hash.h"
#include "../link/link.h"

/* ------------------------------------------------------------------ guests */

static bool on_open(void *user, struct conn *c)
{
    struct offer *o = user;
    if (!o->list) return false;
    for (uint32_t i = 0; i < OFFER_GUESTS_MAX; i++) {
        struct offer_guest *g = &o->guests[i];
        if (g->conn) continue;
        *g = (struct offer_guest){.conn = c, .announce = true};
        c->guest = g;
        o->guest_count++;
        o->changed(o->user);
        return true;
    }
    return false;
}

static void free_stage(struct offer_guest *g)
{
    if (g->stage) g->device->give(g->device->user, g->stage);
    g->stage = NULL;
}

static void on_closed(void *user, struct conn *c)
{
    struct offer *o = user;
    free_stage(c->guest);
    c->guest->conn = NULL;
    o->guest_count--;
    o->changed(o->user);
}

static void close_guests(struct offer *o)
{
    for (uint32_t i = 0; i < OFFER_GUESTS_MAX; i++) {
        if (o->guests[i].conn) conn_close(o->links, o->guests[i].conn->number);
    }
}

/* --------------------------------------------------------------- questions */

/* Rule S10d: a block, as both ends count them. */
static bool is_block(const struct state_list *l, const struct frame *f)
{
    if (f->seq >= l->count || f->tag % HASH_BLOCK_SIZE != 0) return false;
    const struct state_tensor *t = &l->tensors[f->seq];
    if (f->tag >= t->size) return false;
    uint64_t left = t->size - f->tag;
    return f->index == (left < HASH_BLOCK_SIZE ? left : HASH_BLOCK_SIZE);
}

static bool begin_get(void *user, struct conn *c)
{
    struct offer *o = user;
    struct offer_guest *g = c->guest;
    const struct frame *f = &c->rx;
    if (!o->list || g->count == OFFER_WINDOW || !is_block(o->list, f))
        return false;
    g->questions[(g->first + g->count++) % OFFER_WINDOW] =
        (struct offer_question){f->seq, f->index, f->tag, f->digest};
    conn_dirty(o->links, c->number);
    return true;
}

/* ----------------------------------------------------------------- answers */

static bool in_first_part(const struct offer *o)
{
    if (o->terms.share >= 1000 || o->round == 0) return true;
    pccl_ns passed = o->links->now - o->began;
    return passed < o->round / 1000 * o->terms.share;
}

/* A token bucket as deep as two ticks and a block. */
static bool has_tokens(struct offer *o)
{
    if (o->terms.rate == 0) return true;
    pccl_ns passed = o->links->now - o->filled_at;
    if (passed > PCCL_S) passed = PCCL_S;
    uint64_t more = o->terms.rate * (uint64_t)(passed / 1000) / 1000000;
    int64_t most = HASH_BLOCK_SIZE +
                   (int64_t)(o->terms.rate / (PCCL_S / (2 * OFFER_TICK)));
    if (more > 0) {
        o->filled_at = o->links->now;
        o->tokens += (int64_t)more;
    }
    if (o->tokens > most) o->tokens = most;
    return o->tokens > 0;
}

static bool may_answer(struct offer *o)
{
    return o->list && in_first_part(o) && !o->busy(o->user) && has_tokens(o);
}

/* The bytes of a block on the host; NULL: the device cannot be read. */
static const uint8_t *read_block(const struct offer *o, struct offer_guest *g,
                                 const struct offer_question *q)
{
    const struct state_tensor *t = &o->list->tensors[q->tensor];
    const struct state_device *d = t->device;
    if (!d) return t->data + q->offset;
    if (g->stage && g->device != d) free_stage(g);
    g->device = d;
    if (!g->stage) g->stage = d->take(d->user, HASH_BLOCK_SIZE);
    if (!g->stage || !d->read(d->user, g->stage, t->data + q->offset, q->size))
        return NULL;
    return g->stage;
}

static void answer(struct offer *o, struct offer_guest *g, struct conn *c,
                   struct frame *f)
{
    const struct offer_question q = g->questions[g->first];
    g->first = (g->first + 1) % OFFER_WINDOW;
    g->count--;
    *f = (struct frame){.type = FRAME_BLOCK,
                        .seq = q.tensor,
                        .tag = q.offset,
                        .index = q.size,
                        .scope = o->terms.revision};
    const uint8_t *bytes = read_block(o, g, &q);
    uint64_t hash = 0;
    if (bytes) hash_blocks(bytes, q.size, 0, 1, &hash, 1);
    if (bytes && hash == q.hash) {
        f->flags = FLAG_ANSWER;
    } else if (bytes) {
        f->size = q.size;
        c->tx_from = bytes;
        c->tx_owner = o;
        o->sent += q.size;
    }
    if (o->terms.rate > 0) o->tokens -= FRAME_SIZE + f->size;
}

static bool next_send(void *user, struct conn *c, struct frame *f)
{
    struct offer *o = user;
    struct offer_guest *g = c->guest;
    c->tx_from = NULL;
    c->tx_owner = NULL;
    if (o->list && (g->announce || c->ping)) {
        g->announce = false;
        *f = (struct frame){.type = FRAME_OFFER,
                            .digest = o->structure,
                            .scope = o->terms.revision};
        return true;
    }
    if (g->count == 0 || !may_answer(o)) return false;
    answer(o, g, c, f);
    return true;
}

/* -------------------------------------------------------------------- life */

void offer_init(struct offer *o, const struct offer_config *config)
{
    static const struct frame_handler get = {ON_OPEN, begin_get, NULL};
    static const struct frame_handler ping = {ON_OPEN, NULL, NULL};
    o->links = config->links;
    o->busy = config->busy;
    o->changed = config->changed;
    o->user = config->user;
    o->links->guests = (struct guest_client){.user = o,
                                             .open = on_open,
                                             .closed = on_closed,
                                             .next_send = next_send};
    links_receive(o->links, CONN_OF_GUEST, FRAME_BLOCK_GET, &get, o);
    links_receive(o->links, CONN_OF_GUEST, FRAME_PING, &ping, o);
}

void offer_begin(struct offer *o, const struct state_list *list,
                 const struct offer_terms *terms)
{
    pccl_ns now = o->links->now;
    /* What is half sent goes on as zeros: a torn block like any other. */
    conn_forget(o->links, o);
    if (o->list && o->structure != list->structure) close_guests(o);
    if (o->list) o->round = now - o->began;
    if (o->terms.rate != terms->rate) o->tokens = 0;
    o->list = list;
    o->structure = list->structure;
    o->terms = *terms;
    o->began = now;
    for (uint32_t i = 0; i < OFFER_GUESTS_MAX; i++) {
        struct offer_guest *g = &o->guests[i];
        if (!g->conn) continue;
        g->announce = true;
        conn_dirty(o->links, g->conn->number);
    }
}

void offer_end(struct offer *o)
{
    if (!o->list) return;
    o->list = NULL;
    o->round = 0;
    close_guests(o);
}

void offer_tick(struct offer *o)
{
    if (!offer_serves(o)) return;
    for (uint32_t i = 0; i < OFFER_GUESTS_MAX; i++) {
        const struct offer_guest *g = &o->guests[i];
        if (g->conn && g->count > 0 && may_answer(o))
            conn_dirty(o->links, g->conn->number);
    }
}
