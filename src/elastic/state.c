/* state.c - the peers of a transfer of shared state, and its frames. See
 * state.h; state_plan.c chooses the pieces and the partners. */
#include "state.h"

#include "../link/link.h"

#include <stdlib.h>

struct state_partner *state_partner(struct state_sync *s, uint64_t id)
{
    for (uint32_t i = 0; i < s->partner_count; i++) {
        if (s->partners[i].id == id) return &s->partners[i];
    }
    return NULL;
}

void state_begin(struct state_sync *s, struct state_list *list, bool fellows)
{
    PCCL_ASSERT(s->phase == STATE_IDLE);
    *s = (struct state_sync){.links = s->links,
                             .over = s->over,
                             .broken = s->broken,
                             .user = s->user,
                             .id_before = s->id_before,
                             .phase = STATE_VOTED,
                             .list = list,
                             .fellows = fellows};
}

/* --- memory of devices --- */

struct state_stage *state_stage_take(struct state_sync *s,
                                     const struct state_device *device)
{
    for (struct state_stage *g = s->stages; g; g = g->next) {
        if (g->used || g->device != device) continue;
        g->used = true;
        return g;
    }
    struct state_stage *made = malloc(sizeof *made);
    if (!made) return NULL;
    made->bytes = device->take(device->user, FRAME_BODY_MAX);
    if (!made->bytes) {
        free(made);
        return NULL;
    }
    made->device = device;
    made->used = true;
    made->next = s->stages;
    s->stages = made;
    return made;
}

static void free_stages(struct state_sync *s)
{
    while (s->stages) {
        struct state_stage *next = s->stages->next;
        const struct state_device *d = s->stages->device;
        d->give(d->user, s->stages->bytes);
        free(s->stages);
        s->stages = next;
    }
}

/* --- partners --- */

static bool is_power(uint32_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

/* Many receivers pair up sparsely, so that they cost little; of a few each may
 * be the only one that another one can reach (rule S7e). */
static bool pairs_with(const struct state_orders *w, bool fellows,
                       uint32_t self, uint32_t other)
{
    if (self == other) return false;
    bool self_holds = self < w->holders;
    bool other_holds = other < w->holders;
    if (self_holds || other_holds) return self_holds != other_holds;
    uint32_t end = w->holders + w->receivers;
    if (self >= end || other >= end) return false;
    bool few = w->receivers <= STATE_FEW;
    return fellows &&
           (few || is_power(self > other ? self - other : other - self));
}

static void describe_partner(const struct state_sync *s,
                             const struct state_orders *w, uint32_t self,
                             uint32_t other, struct state_partner *p)
{
    uint64_t blocks = s->list->block_count;
    uint32_t receivers = w->receivers > 0 ? w->receivers : 1;
    p->id = w->ids[other];
    p->holder = other < w->holders;
    p->receiver = !p->holder;
    if (self < w->holders) return;
    p->from = 0;
    p->to = blocks;
    p->cursor = blocks / receivers * (self - w->holders);
    if (p->holder) return;
    /* A fellow begins at its own place, so it has the blocks from there
     * first. */
    uint32_t place = other - w->holders;
    p->from = p->cursor = blocks / receivers * place;
    if (place + 1 < receivers) p->to = blocks / receivers * (place + 1);
}

static void dial_partner(struct state_sync *s, const struct state_partner *p)
{
    const struct wire_member *m = links_member(s->links, p->id);
    struct link *l = m ? link_find(s->links, p->id, true) : NULL;
    if (!l) return;
    link_know(l, m);
    link_need(s->links, l);
    link_dirty(s->links, l);
}

/* All pieces that were asked of the peer are wanted again. Bytes of them that
 * still arrive are dropped. */
static void release_all(struct state_sync *s, uint64_t peer)
{
    struct link *l = link_find(s->links, peer, false);
    if (l) link_stop_receiving(l, s);
    for (uint32_t i = 0; i < s->flight_end; i++) {
        struct state_flight *f = &s->flights[i];
        if (f->used && f->peer == peer) state_plan_release(s, f);
    }
}

static void wake_all(struct state_sync *s)
{
    for (uint32_t i = 0; i < s->partner_count; i++) {
        struct link *l = link_find(s->links, s->partners[i].id, false);
        if (l) link_dirty(s->links, l);
    }
}

static void add_todo(struct state_partner *p, const struct state_piece *piece)
{
    if (p->todo_count == STATE_TODO_MAX) return; /* it will ask again */
    uint32_t at = (p->todo_first + p->todo_count++) % STATE_TODO_MAX;
    p->todo[at] = *piece;
}

static void apply_early(struct state_sync *s)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->unexpected_count; i++) {
        struct state_unexpected *k = &s->unexpected[i];
        struct state_partner *p = state_partner(s, k->peer);
        if (k->id != s->id) continue;
        if (p)
            add_todo(p, &k->piece);
        else
            s->unexpected[kept++] = *k;
    }
    s->unexpected_count = kept;
}

/* Makes room for the byte counts of so many new partners. */
static bool make_taken(struct state_sync *s, uint32_t more)
{
    uint32_t room = s->taken_count + 2 * more;
    if (room <= s->taken_room) return true;
    uint64_t *made = realloc(s->taken, room * sizeof *made);
    if (!made) return false;
    s->taken = made;
    s->taken_room = room;
    return true;
}

static bool make_partners(struct state_sync *s, const struct state_orders *w)
{
    uint32_t self = w->count;
    for (uint32_t i = 0; i < w->count; i++) {
        if (w->ids[i] == s->links->self) self = i;
    }
    s->serves |= self < w->holders;
    struct state_partner *old = s->partners;
    uint32_t old_count = s->partner_count;
    if (!make_taken(s, w->count)) return false;
    struct state_partner *made = calloc(w->count + (size_t)1, sizeof *made);
    if (!made) return false;
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->count && self < w->count; i++) {
        if (w->ids[i] == s->links->self || !pairs_with(w, s->fellows, self, i))
            continue;
        struct state_partner *p = &made[count++];
        const struct state_partner *was = state_partner(s, w->ids[i]);
        if (was) *p = *was;
        describe_partner(s, w, self, i, p);
        if (p->cursor < p->from || p->cursor >= p->to) p->cursor = p->from;
    }
    s->partners = made;
    s->partner_count = count;
    for (uint32_t i = 0; i < old_count; i++) {
        if (!state_partner(s, old[i].id)) release_all(s, old[i].id);
    }
    free(old);
    return true;
}

bool state_parts(struct state_sync *s, const struct state_orders *word)
{
    if (s->phase == STATE_IDLE) return true;
    bool first = s->phase == STATE_VOTED;
    s->phase = STATE_MOVING;
    s->id = word->id;
    s->structure = word->structure;
    s->content = word->content;
    if (first) {
        s->receives = word->receives;
        s->differs = word->differs;
        if ((s->receives || s->differs) && !state_plan_begin(s)) return false;
    }
    if (!make_partners(s, word)) return false;
    if (s->serves) state_list_to_wire(s->list);
    apply_early(s);
    s->progress_at = s->links->now;
    for (uint32_t i = 0; i < s->partner_count; i++)
        dial_partner(s, &s->partners[i]);
    return true;
}

void state_end(struct state_sync *s)
{
    if (s->phase == STATE_IDLE) return;
    conn_forget(s->links, s);
    state_plan_end(s);
    free_stages(s);
    free(s->partners);
    free(s->taken);
    s->partners = NULL;
    s->taken = NULL;
    s->partner_count = 0;
    s->flight_end = 0;
    if (s->id > s->id_before) s->id_before = s->id;
    s->list = NULL;
    s->phase = STATE_IDLE;
}

void state_again(struct state_sync *s)
{
    struct state_list *list = s->list;
    bool fellows = s->fellows;
    uint64_t rx_bytes = s->rx_bytes;
    if (s->outcome == STATE_RECEIVED) list->content = s->content;
    state_end(s);
    state_list_to_host(list);
    state_begin(s, list, fellows);
    s->rx_bytes = rx_bytes;
}

/* --- sending --- */

static struct frame frame_of(const struct state_sync *s, enum frame_type type,
                             const struct state_piece *p)
{
    return (struct frame){.type = (uint8_t)type,
                          .flags = p->kind,
                          .tag = p->offset,
                          .seq = p->tensor,
                          .index = p->size,
                          .digest = s->id};
}

static bool inside(uint64_t offset, uint32_t size, uint64_t total)
{
    return offset <= total && size <= total - offset;
}

/* A piece of a tensor, on the host. */
static const uint8_t *read_tensor(struct state_sync *s,
                                  const struct state_piece *p,
                                  struct state_stage **stage)
{
    const struct state_tensor *t = &s->list->tensors[p->tensor];
    const struct state_device *d = t->device;
    if (!d) return t->data + p->offset;
    struct state_stage *g = state_stage_take(s, d);
    if (!g) return NULL;
    if (d->read(d->user, g->bytes, t->data + p->offset, p->size)) {
        *stage = g;
        return g->bytes;
    }
    g->used = false;
    return NULL;
}

/* The bytes of a piece, or NULL: this peer does not have them, or the question
 * is none. */
static const uint8_t *find_piece(struct state_sync *s, struct state_piece *p,
                                 struct state_stage **stage)
{
    const struct state_list *l = s->list;
    if (p->kind >= STATE_KIND_COUNT || p->size == 0 || p->size > FRAME_BODY_MAX)
        return NULL;
    if (p->kind == STATE_NAMES) {
        if (!s->serves || p->offset >= l->names_size) return NULL;
        uint64_t left = l->names_size - p->offset;
        if (p->size > left) p->size = (uint32_t)left;
        return l->names + p->offset;
    }
    if (!s->serves && p->kind != STATE_BYTES)
        return s->fellows ? state_plan_hashes(s, p) : NULL;
    if (p->kind == STATE_TENSORS) {
        uint64_t total = 8 * (uint64_t)l->count;
        bool ok = inside(p->offset, p->size, total);
        return ok ? (const uint8_t *)l->hashes + p->offset : NULL;
    }
    if (p->tensor >= l->count) return NULL;
    const struct state_tensor *t = &l->tensors[p->tensor];
    if (p->kind == STATE_BLOCKS) {
        bool ok = inside(p->offset, p->size, 8 * t->blocks);
        return ok ? (const uint8_t *)(l->blocks + t->first) + p->offset : NULL;
    }
    if (!inside(p->offset, p->size, t->size)) return NULL;
    bool has = s->serves || (s->fellows && state_plan_has(s, p));
    return has ? read_tensor(s, p, stage) : NULL;
}

static void give(struct state_sync *s, struct state_partner *p, struct frame *f,
                 const uint8_t **from, struct state_stage **stage)
{
    struct state_piece piece = p->todo[p->todo_first];
    p->todo_first = (p->todo_first + 1) % STATE_TODO_MAX;
    p->todo_count--;
    *from = find_piece(s, &piece, stage);
    *f = frame_of(s, FRAME_STATE_DATA, &piece);
    f->size = *from ? piece.size : 0;
    if (piece.kind == STATE_NAMES) f->index = s->list->names_size;
}

static bool next_send(void *user, struct conn *c, struct frame *f)
{
    struct state_sync *s = user;
    if (s->phase != STATE_MOVING) return false;
    struct state_partner *p = state_partner(s, c->link->id);
    if (!p) return false;
    c->tx_from = NULL;
    if (p->todo_count > 0) {
        struct state_stage *stage = NULL;
        give(s, p, f, &c->tx_from, &stage);
        if (stage) c->tx_busy = &stage->used;
        if (c->tx_from) c->tx_owner = s;
        return true;
    }
    struct state_piece piece;
    if (!state_plan_next(s, p, &piece)) return false;
    *f = frame_of(s, FRAME_STATE_GET, &piece);
    return true;
}

/* --- receiving --- */

static struct state_piece piece_of(const struct frame *f)
{
    return (struct state_piece){
        .kind = f->flags, .tensor = f->seq, .offset = f->tag, .size = f->index};
}

static void asked(struct state_sync *s, struct link *l, const struct frame *f)
{
    struct state_piece piece = piece_of(f);
    bool mine = s->phase == STATE_MOVING && f->digest == s->id;
    struct state_partner *p = mine ? state_partner(s, l->id) : NULL;
    if (p) {
        add_todo(p, &piece);
        link_dirty(s->links, l);
        return;
    }
    bool early = s->phase == STATE_VOTED && f->digest > s->id_before;
    if ((mine || early) && s->unexpected_count < STATE_UNEXPECTED_MAX) {
        s->unexpected[s->unexpected_count++] =
            (struct state_unexpected){l->id, f->digest, piece};
        return;
    }
    /* The transfer is over here. The partner gets an answer; without it, it
     * would wait until its patience ends. */
    struct frame no = *f;
    no.type = FRAME_STATE_DATA;
    (void)link_control(s->links, l, &no);
}

/* An answer names the question, including the size. A late answer must not
 * match a later question about the same place. */
static struct state_flight *find_flight(struct state_sync *s, uint64_t peer,
                                        const struct frame *f)
{
    for (uint32_t i = 0; i < s->flight_end; i++) {
        struct state_flight *x = &s->flights[i];
        if (x->used && x->peer == peer && x->piece.kind == f->flags &&
            x->piece.tensor == f->seq && x->piece.offset == f->tag &&
            (x->piece.kind == STATE_NAMES || x->piece.size == f->index))
            return x;
    }
    return NULL;
}

static void over(struct state_sync *s)
{
    wake_all(s);
    if (s->outcome != STATE_OPEN && s->over) s->over(s->user);
}

/* The piece does not come now: its partner has none or no memory for it, or
 * there is no memory here. That makes nobody suspect (rule S7b). */
static void disappoint(struct state_sync *s, struct state_flight *f)
{
    struct state_partner *p = state_partner(s, f->peer);
    if (p) p->pause_until = s->links->now + s->links->deadline / 256;
    state_plan_release(s, f);
    wake_all(s);
}

static bool begin_get(void *user, struct conn *c)
{
    asked(user, c->link, &c->rx);
    return true;
}

static bool begin_data(void *user, struct conn *c)
{
    struct state_sync *s = user;
    const struct frame *f = &c->rx;
    if (s->phase != STATE_MOVING || f->digest != s->id) return true;
    struct state_flight *x = find_flight(s, c->link->id, f);
    if (!x || x->receiving) return true;
    uint8_t *to = NULL;
    bool right = f->size == 0 || state_plan_fits(s, x, f->size, f->index);
    struct state_partner *p = state_partner(s, x->peer);
    if (p && !right) p->bad = true;
    if (right && f->size > 0) to = state_plan_target(s, x, f->index);
    if (!to) {
        disappoint(s, x);
        return true;
    }
    x->receiving = true;
    c->rx_state = RX_BODY;
    c->rx_to = to;
    c->rx_owner = s;
    return true;
}

static bool end_data(void *user, struct conn *c)
{
    struct state_sync *s = user;
    bool taken = c->rx_owner == s;
    c->rx_owner = NULL;
    if (!taken) return true;
    struct state_flight *x = find_flight(s, c->link->id, &c->rx);
    struct state_partner *p = state_partner(s, c->link->id);
    if (!x || !x->receiving || !p) return true;
    struct state_flight done = *x;
    p->asked--;
    x->used = false;
    bool right = state_plan_take(s, &done, c->rx.size);
    if (done.stage) done.stage->used = false;
    if (!right) p->bad = true;
    s->progress_at = s->links->now;
    over(s);
    return true;
}

/* --- losses and time --- */

/* A holder misses nothing, but only it can notice that no request arrives. */
static bool uses(const void *user, const struct link *l)
{
    const struct state_sync *s = user;
    if (s->phase != STATE_MOVING) return false;
    for (uint32_t i = 0; i < s->partner_count; i++)
        if (s->partners[i].id == l->id) return true;
    return false;
}

/* The frames in flight on a broken connection are unknown: all pieces are
 * asked for again. */
static void closed(void *user, struct link *l, bool never)
{
    struct state_sync *s = user;
    (void)never;
    if (s->phase != STATE_MOVING) return;
    struct state_partner *p = state_partner(s, l->id);
    if (!p) return;
    release_all(s, l->id);
    p->todo_count = 0;
    wake_all(s);
    if (l->wanted && s->broken) s->broken(s->user, l->id);
}

/* None of the holders can be reached, or none of the fellows (rule S7e). */
static bool is_cut_off(const struct state_sync *s, bool holders)
{
    for (uint32_t i = 0; i < s->partner_count; i++) {
        const struct state_partner *p = &s->partners[i];
        if (p->holder == holders &&
            links_status(s->links, p->id) != LINK_FAILED)
            return false;
    }
    return s->partner_count > 0;
}

static void give_up_slow(struct state_sync *s)
{
    for (uint32_t i = 0; i < s->flight_end; i++) {
        struct state_flight *f = &s->flights[i];
        if (!f->used || f->receiving ||
            s->links->now - f->since < s->links->deadline)
            continue;
        struct state_partner *p = state_partner(s, f->peer);
        if (p) p->pause_until = s->links->now + s->links->deadline / 8;
        state_plan_release(s, f);
    }
}

void state_tick(struct state_sync *s)
{
    if (s->phase != STATE_MOVING) return;
    for (uint32_t i = 0; i < s->partner_count; i++) {
        struct link *l = link_find(s->links, s->partners[i].id, false);
        if (!l || l->open == 0) dial_partner(s, &s->partners[i]);
    }
    if (!s->receives && !s->differs) return;
    give_up_slow(s);
    wake_all(s);
    s->cut_off = is_cut_off(s, true);
    pccl_ns patience = (s->cut_off ? 1 : 3) * s->links->deadline;
    bool late = s->links->now - s->progress_at > patience;
    bool alone = s->cut_off && is_cut_off(s, false);
    if (s->outcome == STATE_OPEN && (late || alone)) {
        s->outcome = STATE_FAILED;
        over(s);
    }
}

void state_init(struct state_sync *s, struct links *links,
                void (*on_over)(void *user), void *user)
{
    static const struct frame_handler get = {ON_OPEN, begin_get, NULL};
    static const struct frame_handler data = {ON_OPEN, begin_data, end_data};
    s->links = links;
    s->over = on_over;
    s->user = user;
    links->clients[CLIENT_BEFORE_CONTROL] = (struct link_client){
        .user = s, .next_send = next_send, .closed = closed, .uses = uses};
    links_receive(links, CONN_OF_LINK, FRAME_STATE_GET, &get, s);
    links_receive(links, CONN_OF_LINK, FRAME_STATE_DATA, &data, s);
}
