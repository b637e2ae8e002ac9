/* prefetch.c - see prefetch.h. */
#include "prefetch.h"

#include "../hash/hash.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ servers */

static void forget_connection(struct prefetch *p)
{
    p->head_filled = p->asked_count = p->asked_first = 0;
    p->tx_size = p->tx_done = 0;
    p->in_body = p->greeted = p->told = false;
    p->rx_to = NULL;
    p->rx_left = 0;
}

static void wait_to_ask(struct prefetch *p)
{
    p->state = PREFETCH_WAITS;
    p->ask_at = p->now + p->deadline / 4;
}

/* Rule S10g: the next one; after the last, the master is asked again. */
static void next_server(struct prefetch *p)
{
    forget_connection(p);
    if (p->server_next == p->server_count) {
        bool all = p->server_count > 0 && p->unlike == p->server_count;
        wait_to_ask(p);
        if (all) p->state = PREFETCH_UNLIKE;
        return;
    }
    p->server = p->servers[p->server_next++];
    p->attempt++;
    p->since = p->now;
    p->state = PREFETCH_DIALS;
}

static void lose(struct prefetch *p)
{
    p->lost++;
    next_server(p);
}

void prefetch_servers(struct prefetch *p, const struct wire_msg *offers)
{
    PCCL_ASSERT(p->state == PREFETCH_ASKS);
    if (offers->offer.group_size == 0) {
        p->state = PREFETCH_NOBODY;
        return;
    }
    p->key = offers->offer.key;
    if (offers->offer.deadline_ms > 0)
        p->deadline = offers->offer.deadline_ms * PCCL_MS;
    p->server_count = p->server_next = p->unlike = 0;
    for (uint32_t i = 0;
         i < offers->member_count && p->server_count < WIRE_OFFERS_MAX; i++)
        p->servers[p->server_count++] = offers->members[i];
    next_server(p);
}

void prefetch_unanswered(struct prefetch *p)
{
    if (p->state == PREFETCH_ASKS) wait_to_ask(p);
}

static void say_hello(struct prefetch *p)
{
    const struct frame f = {
        .type = FRAME_HELLO, .size = FRAME_HELLO_SIZE, .flags = FLAG_GUEST};
    const struct frame fill = {.type = FRAME_FILL, .size = FRAME_FILL_SIZE};
    const struct frame_hello hello = {.key = {p->key.word[0], p->key.word[1]},
                                      .to = p->server.id};
    memset(p->tx, 0, sizeof p->tx);
    frame_encode(&f, p->tx);
    frame_hello_encode(&hello, p->tx + FRAME_SIZE);
    frame_encode(&fill, p->tx + FRAME_SIZE + FRAME_HELLO_SIZE);
    p->tx_size = sizeof p->tx;
    p->tx_done = 0;
}

void prefetch_dialed(struct prefetch *p, bool success)
{
    PCCL_ASSERT(p->state == PREFETCH_DIALS);
    if (!success) {
        lose(p);
        return;
    }
    p->since = p->sent_at = p->now;
    p->state = PREFETCH_RUNS;
    say_hello(p);
}

void prefetch_closed(struct prefetch *p)
{
    if (p->state == PREFETCH_RUNS) lose(p);
}

/* ----------------------------------------------------------------- the plan */

/* Blocks of which revision will do. */
static bool is_fresh(const struct prefetch *p, uint64_t got)
{
    uint64_t least =
        p->revision > p->max_stale ? p->revision - p->max_stale : 0;
    return got > least;
}

static void count_fresh(struct prefetch *p)
{
    p->fresh = 0;
    for (uint64_t i = 0; i < p->list->block_count; i++)
        p->fresh += is_fresh(p, p->got[i]);
}

static void offered(struct prefetch *p, uint64_t revision)
{
    if (p->told && p->revision == revision) return;
    p->told = true;
    p->revision = revision;
    count_fresh(p);
}

static void set_got(struct prefetch *p, uint64_t block, uint64_t got)
{
    p->fresh -= is_fresh(p, p->got[block]);
    p->got[block] = got;
    p->fresh += is_fresh(p, got);
}

static bool is_asked(const struct prefetch *p, uint32_t tensor, uint64_t block)
{
    for (uint32_t i = 0; i < p->asked_count; i++) {
        const struct prefetch_question *q =
            &p->asked[(p->asked_first + i) % OFFER_WINDOW];
        if (q->tensor == tensor && q->block == block) return true;
    }
    return false;
}

/* Round and round: the next block is the one that was asked for longest ago. */
static bool next_block(struct prefetch *p, struct prefetch_question *q)
{
    const struct state_list *l = p->list;
    if (p->fresh + p->asked_count >= l->block_count) return false;
    for (uint64_t looked = 0; looked < l->block_count;) {
        const struct state_tensor *t = &l->tensors[p->tensor];
        if (p->block >= t->blocks) {
            p->block = 0;
            p->tensor = p->tensor + 1 < l->count ? p->tensor + 1 : 0;
            continue;
        }
        uint64_t block = p->block++;
        looked++;
        if (is_fresh(p, p->got[t->first + block]) ||
            is_asked(p, p->tensor, block))
            continue;
        uint64_t left = t->size - block * HASH_BLOCK_SIZE;
        *q = (struct prefetch_question){
            .tensor = p->tensor,
            .size = (uint32_t)(left < HASH_BLOCK_SIZE ? left : HASH_BLOCK_SIZE),
            .block = block};
        return true;
    }
    return false;
}

/* Host memory for a block of a device's tensor; NULL: none. */
static uint8_t *stage_for(struct prefetch *p, const struct state_device *d)
{
    if (p->stage && p->device != d) {
        p->device->give(p->device->user, p->stage);
        p->stage = NULL;
    }
    p->device = d;
    if (!p->stage) p->stage = d->take(d->user, HASH_BLOCK_SIZE);
    return p->stage;
}

static void fail(struct prefetch *p)
{
    forget_connection(p);
    p->attempt++;
    p->state = PREFETCH_FAILED;
}

/* The hash of what the guest has; false: the device cannot be read. */
static bool own_hash(struct prefetch *p, const struct prefetch_question *q,
                     uint64_t *hash)
{
    const struct state_tensor *t = &p->list->tensors[q->tensor];
    const uint8_t *bytes = t->data + q->block * HASH_BLOCK_SIZE;
    const struct state_device *d = t->device;
    if (d) {
        uint8_t *stage = stage_for(p, d);
        if (!stage || !d->read(d->user, stage, bytes, q->size)) return false;
        bytes = stage;
    }
    hash_blocks(bytes, q->size, 0, 1, hash, 1);
    return true;
}

/* The device's stage holds a body that is arriving. */
static bool stage_is_taken(const struct prefetch *p)
{
    return p->in_body && p->stage && p->rx_to &&
           p->list->tensors[p->rx.seq].device != NULL;
}

static void ask(struct prefetch *p)
{
    struct prefetch_question q;
    uint64_t hash = 0;
    if (!p->told || stage_is_taken(p)) return;
    while (p->asked_count < OFFER_WINDOW &&
           p->tx_size + FRAME_SIZE <= sizeof p->tx && next_block(p, &q)) {
        if (!own_hash(p, &q, &hash)) {
            fail(p);
            return;
        }
        const struct frame f = {.type = FRAME_BLOCK_GET,
                                .seq = q.tensor,
                                .tag = q.block * HASH_BLOCK_SIZE,
                                .index = q.size,
                                .digest = hash};
        frame_encode(&f, p->tx + p->tx_size);
        p->tx_size += FRAME_SIZE;
        p->asked[(p->asked_first + p->asked_count++) % OFFER_WINDOW] = q;
    }
}

static void look_whether_done(struct prefetch *p)
{
    if (p->state != PREFETCH_RUNS || !p->told) return;
    if (p->fresh < p->list->block_count) return;
    forget_connection(p);
    p->attempt++;
    p->state = PREFETCH_DONE;
}

uint64_t prefetch_oldest(const struct prefetch *p)
{
    uint64_t least = UINT64_MAX;
    /* Nothing of nothing is old: HELLO says that it is up to date (S10f). */
    if (p->list->block_count == 0) return p->revision;
    for (uint64_t i = 0; i < p->list->block_count; i++)
        if (p->got[i] < least) least = p->got[i];
    return least > 0 ? least - 1 : 0;
}

/* ---------------------------------------------------------------- receiving */

static bool begin_hello(struct prefetch *p)
{
    if (p->greeted || !(p->rx.flags & FLAG_GUEST)) return false;
    p->rx_to = p->hello;
    return true;
}

static bool end_hello(struct prefetch *p)
{
    const struct frame_hello h = frame_hello_decode(p->hello);
    p->greeted = h.key[0] == p->key.word[0] && h.key[1] == p->key.word[1] &&
                 h.from == p->server.id;
    return p->greeted;
}

static bool begin_offer(struct prefetch *p)
{
    if (p->rx.scope == UINT64_MAX) return false;
    if (p->rx.digest != p->list->structure) {
        p->unlike++;
        return false;
    }
    offered(p, p->rx.scope);
    return true;
}

/* The answer is that to the oldest question. */
static bool begin_block(struct prefetch *p)
{
    const struct frame *f = &p->rx;
    const struct prefetch_question *q = &p->asked[p->asked_first];
    if (p->asked_count == 0 || f->seq != q->tensor || f->index != q->size ||
        f->tag != q->block * HASH_BLOCK_SIZE || f->scope == UINT64_MAX)
        return false;
    if (f->size == 0) return (f->flags & FLAG_ANSWER) != 0;
    if (f->size != q->size) return false;
    const struct state_tensor *t = &p->list->tensors[q->tensor];
    set_got(p, t->first + q->block, 0); /* until it is here as a whole */
    p->rx_to = t->data + f->tag;
    if (t->device) p->rx_to = stage_for(p, t->device);
    return p->rx_to != NULL;
}

static bool end_block(struct prefetch *p)
{
    const struct prefetch_question q = p->asked[p->asked_first];
    const struct state_tensor *t = &p->list->tensors[q.tensor];
    const struct state_device *d = t->device;
    p->asked_first = (p->asked_first + 1) % OFFER_WINDOW;
    p->asked_count--;
    if (d && p->rx.size > 0 &&
        !d->write(d->user, t->data + p->rx.tag, p->stage, p->rx.size)) {
        fail(p);
        return true;
    }
    offered(p, p->rx.scope);
    set_got(p, t->first + q.block, p->rx.scope + 1);
    p->rx_bytes += p->rx.size;
    p->rx_blocks += p->rx.size > 0;
    return true;
}

/* False: it breaks the protocol. */
static bool begin_frame(struct prefetch *p)
{
    p->rx_to = NULL;
    p->rx_left = p->rx.size;
    p->in_body = true;
    if (p->rx.type == FRAME_HELLO) return begin_hello(p);
    if (!p->greeted) return false;
    if (p->rx.type == FRAME_FILL) return true;
    if (p->rx.type == FRAME_OFFER) return begin_offer(p);
    return p->rx.type == FRAME_BLOCK && begin_block(p);
}

static bool end_frame(struct prefetch *p)
{
    p->in_body = false;
    p->head_filled = 0;
    if (p->rx.type == FRAME_HELLO) return end_hello(p);
    if (p->rx.type == FRAME_BLOCK) return end_block(p);
    return true;
}

size_t prefetch_rx_window(struct prefetch *p, uint8_t **to)
{
    if (p->state != PREFETCH_RUNS) return 0;
    if (!p->in_body) {
        *to = p->head + p->head_filled;
        return FRAME_SIZE - p->head_filled;
    }
    *to = p->rx_to ? p->rx_to : p->trash;
    if (p->rx_to || p->rx_left < sizeof p->trash) return p->rx_left;
    return sizeof p->trash;
}

void prefetch_rx(struct prefetch *p, size_t size)
{
    bool ok = true;
    p->since = p->now;
    if (!p->in_body) {
        p->head_filled += (uint32_t)size;
        if (p->head_filled < FRAME_SIZE) return;
        ok = frame_decode(p->head, &p->rx) && begin_frame(p);
    } else {
        if (p->rx_to) p->rx_to += size;
        p->rx_left -= (uint32_t)size;
    }
    if (ok && p->in_body && p->rx_left == 0) ok = end_frame(p);
    if (!ok) {
        lose(p);
        return;
    }
    look_whether_done(p);
}

/* ------------------------------------------------------------------ sending */

size_t prefetch_tx_window(struct prefetch *p, const uint8_t **from)
{
    if (p->state != PREFETCH_RUNS) return 0;
    if (p->tx_done == p->tx_size) p->tx_done = p->tx_size = 0;
    ask(p);
    *from = p->tx + p->tx_done;
    return p->tx_size - p->tx_done;
}

void prefetch_tx(struct prefetch *p, size_t size)
{
    p->tx_done += (uint32_t)size;
    p->sent_at = p->now;
}

/* --------------------------------------------------------------------- life */

bool prefetch_init(struct prefetch *p, const struct state_list *list,
                   uint64_t max_stale, pccl_ns deadline, pccl_ns now)
{
    memset(p, 0, sizeof *p);
    p->list = list;
    p->max_stale = max_stale;
    p->deadline = deadline;
    p->now = now;
    p->state = PREFETCH_ASKS;
    p->got = calloc(list->block_count + 1, sizeof *p->got);
    return p->got != NULL;
}

void prefetch_free(struct prefetch *p)
{
    if (p->stage) p->device->give(p->device->user, p->stage);
    p->stage = NULL;
    free(p->got);
    p->got = NULL;
}

/* While the server answers nothing it says OFFER, and the guest PING. */
static void keep_alive(struct prefetch *p)
{
    const struct frame ping = {.type = FRAME_PING};
    if (p->now - p->sent_at < PCCL_TIME_TO_PING(p->deadline) ||
        p->tx_size > p->tx_done)
        return;
    p->tx_done = 0;
    p->tx_size = FRAME_SIZE;
    frame_encode(&ping, p->tx);
}

void prefetch_tick(struct prefetch *p, pccl_ns now)
{
    p->now = now;
    if (p->state == PREFETCH_WAITS && now >= p->ask_at)
        p->state = PREFETCH_ASKS;
    bool connects = p->state == PREFETCH_DIALS || p->state == PREFETCH_RUNS;
    if (connects && now - p->since >= p->deadline) {
        lose(p);
        return;
    }
    if (p->state == PREFETCH_RUNS) keep_alive(p);
    look_whether_done(p);
}
