/* engine.c - views, links, and what concerns all operations. See engine.h. */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

bool engine_init(struct engine *e, const struct engine_output *out,
                 uint32_t pool_size, pccl_ns deadline)
{
    e->out = *out;
    e->deadline = deadline;
    e->cached = PLAN_CACHED;
    e->many = MANY;
    e->single_copy_world = PLAN_SINGLE_COPY_WORLD_MAX;
    e->pool_auto = pool_size == 0;
    e->pool_size = pool_size > 0 ? pool_size : 1;
    if (e->pool_size > POOL_MAX) e->pool_size = POOL_MAX;
    e->tags = calloc(TAGS_MAX, sizeof *e->tags);
    e->dirty = calloc(CONNS_MAX / 64, sizeof *e->dirty);
    return e->tags && e->dirty;
}

static void link_free(struct engine *e, struct link *l)
{
    link_drop_unexpected(e, l);
    pool_give(&e->pool, l->control);
    free(l);
}

void engine_free(struct engine *e)
{
    state_end(e);
    for (uint32_t i = 0; i < e->op_end; i++) engine_release(e, &e->ops[i]);
    for (size_t i = 0; i < ARRAY_COUNT(e->links); i++) {
        while (e->links[i]) {
            struct link *next = e->links[i]->next;
            link_free(e, e->links[i]);
            e->links[i] = next;
        }
    }
    for (uint32_t i = 0; i < e->conn_end; i++) {
        if (!e->conns[i]) continue;
        pool_give(&e->pool, e->conns[i]->scratch);
        pool_give(&e->pool, e->conns[i]->rx_block); /* half a message */
        free(e->conns[i]);
        e->conns[i] = NULL;
    }
    for (size_t i = 0; i < RESULTS_MAX; i++)
        pool_give(&e->pool, e->results[i].bytes);
    pool_give(&e->pool, e->fast.own);
    message_free(e);
    pool_trim(&e->pool);
    free(e->tags);
    free(e->dirty);
}

/* ------------------------------------------------------------------ links */

static struct link **link_slot(struct engine *e, uint64_t id)
{
    struct link **slot = &e->links[id % ARRAY_COUNT(e->links)];
    while (*slot && (*slot)->id != id) slot = &(*slot)->next;
    return slot;
}

struct link *link_find(struct engine *e, uint64_t id, bool create)
{
    struct link **slot = link_slot(e, id);
    if (*slot || !create) return *slot;
    struct link *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->id = id;
    if (e->self < id) l->generation = e->generation;
    l->want = 1;
    l->unexpected_end = &l->unexpected;
    *slot = l;
    return l;
}

void link_drop_unexpected(struct engine *e, struct link *l)
{
    struct unexpected *keep = NULL;
    while (l->unexpected) {
        struct unexpected *next = l->unexpected->next;
        /* One still being received is kept: its connection points at it. */
        if (l->unexpected->complete) {
            pool_give(&e->pool, l->unexpected);
        } else {
            l->unexpected->next = keep;
            keep = l->unexpected;
        }
        l->unexpected = next;
    }
    for (struct unexpected *k = keep; k;) {
        struct unexpected *next = k->next;
        for (uint32_t i = 0; i < e->conn_end; i++) {
            struct conn *c = e->conns[i];
            if (!c || c->rx_unexpected != k) continue;
            c->rx_unexpected = NULL;
            c->sink = SINK_DISCARD;
        }
        pool_give(&e->pool, k);
        k = next;
    }
    l->unexpected_end = &l->unexpected;
    l->unexpected_count = 0;
    l->unexpected_bytes = 0;
}

static void link_close(struct engine *e, const struct link *l)
{
    for (uint32_t i = 0; i < e->conn_end; i++) {
        struct conn *c = e->conns[i];
        if (!c || c->link != l) continue;
        e->out.close(e->out.user, i);
        engine_closed(e, i);
    }
}

void engine_drop_link(struct engine *e, uint64_t id)
{
    struct link **slot = link_slot(e, id);
    struct link *l = *slot;
    if (!l) return;
    link_close(e, l);
    *slot = l->next;
    link_free(e, l);
}

void engine_close_unwanted(struct engine *e)
{
    for (uint32_t i = 0; i < e->conn_end; i++) {
        const struct conn *c = e->conns[i];
        if (!c || c->state == CONN_FREE || !c->link || c->link->wanted)
            continue;
        e->out.close(e->out.user, i);
        engine_closed(e, i);
    }
}

void engine_close_all(struct engine *e)
{
    engine_unwant_links(e); /* nothing is called again */
    for (uint32_t i = 0; i < e->conn_end; i++) {
        if (!e->conns[i] || e->conns[i]->state == CONN_FREE) continue;
        e->out.close(e->out.user, i);
        engine_closed(e, i);
    }
}

void link_dirty(struct engine *e, const struct link *l)
{
    for (uint32_t i = 0; i < e->conn_end; i++) {
        if (e->conns[i] && e->conns[i]->link == l)
            e->dirty[i / 64] |= (uint64_t)1 << (i % 64);
    }
}

bool link_control(struct engine *e, struct link *l, const struct frame *f)
{
    if (!l->control)
        l->control = pool_take(&e->pool, CONTROL_MAX * sizeof *l->control);
    if (!l->control || l->control_count == CONTROL_MAX) return false;
    uint32_t at = (l->control_first + l->control_count++) % CONTROL_MAX;
    l->control[at] = *f;
    link_dirty(e, l);
    return true;
}

/* Rule R3: one of two peers calls. */
void link_dial(struct engine *e, struct link *l)
{
    if (!link_dials(e, l) || !l->known) return;
    /* More than one would only cost memory within a host. */
    bool shares = e->out.share && l->host == e->host;
    while (l->open + l->dialing < (shares ? 1 : l->want)) {
        uint32_t number = e->out.dial(e->out.user, &l->addr);
        if (number == NO_CONN) {
            l->failed++;
            return;
        }
        if (!engine_accepted(e, number)) {
            e->out.close(e->out.user, number);
            l->failed++;
            return;
        }
        struct conn *c = e->conns[number];
        c->state = CONN_DIALED;
        c->link = l;
        l->dialing++;
    }
}

bool engine_is_long(const struct engine *e, uint32_t number)
{
    const struct conn *c = e->conns[number];
    const struct link *l = c ? c->link : NULL;
    return e->high_rtt && l && l->known && l->host != e->host;
}

void link_widen(const struct engine *e, struct link *l)
{
    uint32_t pool = e->pool_size;
    if (e->pool_auto && (e->high_rtt || l->rtt >= RTT_HIGH))
        pool = l->rtt < RTT_VERY_HIGH ? POOL_HIGH_RTT : POOL_VERY_HIGH_RTT;
    if (l->want < pool) l->want = pool;
}

void engine_want_link(struct engine *e, const struct wire_member *m,
                      uint32_t connections)
{
    struct link *l = link_find(e, m->id, true);
    if (!l) return;
    l->addr = m->addr;
    l->host = m->host;
    l->known = true;
    l->wanted = true;
    l->wanted_at = e->now;
    l->failed = 0;
    if (connections > l->want) l->want = connections;
    link_dial(e, l);
}

void engine_unwant_links(struct engine *e)
{
    for (size_t i = 0; i < ARRAY_COUNT(e->links); i++) {
        for (struct link *l = e->links[i]; l; l = l->next) l->wanted = false;
    }
}

/* Both ends close what there is: what follows is of one caller, whose
 * generations the other end counts from there on. */
static void link_set_direction(struct engine *e, struct link *l, bool reversed)
{
    if (l->reversed == reversed) return;
    l->wanted = false; /* a call would come back to the old way */
    link_close(e, l);
    l->reversed = reversed;
    l->failed = 0;
    l->generation = link_dials(e, l) ? ++e->generation : 0;
}

void engine_set_direction(struct engine *e, uint64_t id, bool calls)
{
    struct link *l = link_find(e, id, true);
    if (l) link_set_direction(e, l, (e->self < id) != calls);
    conn_resume(e);
}

static bool is_reversed(const struct engine *e, uint64_t id,
                        const struct wire_pair *pairs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct wire_pair *p = &pairs[i];
        if (p->dialer == id && p->acceptor == e->self) return e->self < id;
        if (p->acceptor == id && p->dialer == e->self) return e->self > id;
    }
    return false;
}

void engine_set_directions(struct engine *e, const struct wire_pair *pairs,
                           uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        bool caller = pairs[i].dialer == e->self;
        if (caller || pairs[i].acceptor == e->self)
            (void)link_find(e, caller ? pairs[i].acceptor : pairs[i].dialer,
                            true);
    }
    for (size_t i = 0; i < ARRAY_COUNT(e->links); i++) {
        for (struct link *l = e->links[i]; l; l = l->next)
            link_set_direction(e, l, is_reversed(e, l->id, pairs, count));
    }
    conn_resume(e); /* calls that were ahead of this */
}

enum link_status engine_link_status(struct engine *e, uint64_t id)
{
    struct link *l = link_find(e, id, false);
    if (!l) return LINK_FAILED;
    if (l->open > 0) return LINK_OPEN;
    if (l->failed > 0 && l->dialing == 0) return LINK_FAILED;
    if (e->now - l->wanted_at >= e->deadline / 2) return LINK_FAILED;
    return LINK_WAITS;
}

/* ------------------------------------------------------------- the flush */

void engine_freeze(struct engine *e)
{
    e->frozen = true;
    e->fast.known = false;
    probe_cancel(e);
    for (uint32_t i = 0; i < e->op_end; i++) {
        struct op *op = &e->ops[i];
        if (op->phase != PHASE_RUNNING && op->phase != PHASE_COMPLETE) continue;
        conn_stop_receiving(e, op);
        for (uint32_t k = 0; k < op->ep_count; k++) op->eps[k].eager = 0;
    }
    for (size_t i = 0; i < ARRAY_COUNT(e->links); i++) {
        for (struct link *l = e->links[i]; l; l = l->next) {
            link_drop_unexpected(e, l);
            l->control_count = 0;
            l->eager_bytes = 0;
        }
    }
}

static bool contains(const uint64_t *ids, uint32_t count, uint64_t id)
{
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] == id) return true;
    }
    return false;
}

static uint32_t survivors(const struct engine *e, const struct op *op,
                          const uint64_t *dead, uint32_t dead_count)
{
    uint32_t world = op->plan.r.world;
    if (op->whole) return dead_count < e->world ? e->world - dead_count : 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < world; i++)
        count += !contains(dead, dead_count, op->scope[i]);
    return count;
}

uint32_t engine_list(const struct engine *e, const uint64_t *dead,
                     uint32_t dead_count, struct wire_op *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < e->op_end; i++) {
        const struct op *op = &e->ops[i];
        if (op->phase != PHASE_RUNNING && op->phase != PHASE_COMPLETE) continue;
        out[count++] = (struct wire_op){
            .tag = op->r.tag,
            .seq = op->seq,
            .survivors = survivors(e, op, dead, dead_count),
            .state = op->phase == PHASE_COMPLETE ? OP_COMPLETE : OP_RUNNING,
        };
    }
    return count;
}

bool engine_awaits(const struct op *op, const struct endpoint *ep)
{
    if (ep->received < ep->recvs) return true;
    if (ep->sent < ep->sends && !ep->ready) return true;
    if (!op->confirm) return false;
    if (plan_is_ring(&op->plan) && !op->plan.direct)
        return ep == op->eps && op->done_prev + 1 < op->plan.r.world;
    return !ep->done;
}

static const struct cached_result *find_result(const struct engine *e,
                                               uint64_t tag, uint32_t seq)
{
    for (size_t i = 0; i < RESULTS_MAX; i++) {
        const struct cached_result *r = &e->results[i];
        if (r->bytes && r->tag == tag && r->seq == seq) return r;
    }
    return NULL;
}

/* Fills in state and donor of (tag, seq). */
void engine_query(const struct engine *e, struct wire_op *op)
{
    for (uint32_t i = 0; i < e->op_end; i++) {
        const struct op *o = &e->ops[i];
        if (o->r.tag != op->tag || o->seq != op->seq) continue;
        if (o->phase != PHASE_RUNNING && o->phase != PHASE_COMPLETE) continue;
        op->state = o->phase == PHASE_COMPLETE ? OP_COMPLETE : OP_RUNNING;
        op->donor = false;
        return;
    }
    bool past = op_is_past(e, op->tag, op->seq);
    op->state = past ? OP_RETURNED : OP_NOT_LAUNCHED;
    op->donor = past && find_result(e, op->tag, op->seq) != NULL;
}

const uint8_t *engine_donation(const struct engine *e, uint64_t tag,
                               uint32_t seq, uint32_t *size)
{
    const struct cached_result *r = find_result(e, tag, seq);
    if (!r) return NULL;
    *size = r->size;
    return r->bytes;
}

void engine_install(struct engine *e, const struct engine_view *view)
{
    e->epoch = view->epoch;
    e->world = view->world;
    e->rank = view->rank;
    e->members = view->members;
    e->ids = view->ids;
    e->order = view->order;
    e->ring = view->ring;
    e->mesh = view->mesh;
    e->one_host = view->world > 0 ? view->members[0].host : 0;
    for (uint32_t i = 1; i < view->world; i++) {
        if (view->members[i].host != e->one_host) e->one_host = 0;
    }
    e->has_hierarchy = view->sites && view->mesh && e->one_host == 0;
    if (e->has_hierarchy)
        hierarchy_init(&e->hierarchy, view->sites, view->world, view->rank);
    single_copy_install(e);
    e->frozen = false;
    e->fast.known = false;
    e->tag_count = 0; /* entries of older epochs count as free */
    e->tags_reported = false;
    op_drop_results(e);
    conn_resume(e);
}

/* A link on which an operation waits must show life within a deadline; pings
 * see to it, so silence means that the link is dead though both ends live. */
static void check_silence(struct engine *e, uint32_t number)
{
    struct conn *c = e->conns[number];
    bool stranger = c->state != CONN_OPEN;
    /* Nobody waits for one more, and giving it up may cost a round. */
    bool more = c->link && c->link->open > 0;
    pccl_ns limit = stranger && !more ? e->deadline / 2 : e->deadline;
    if (e->now - c->last_recv < limit) return;
    if (!stranger && c->peer && !message_waits(c->peer)) return;
    if (!stranger && !c->peer && !op_uses_link(e, c->link, NULL) &&
        !state_uses_link(e, c->link))
        return;
    e->out.close(e->out.user, number);
    engine_closed(e, number);
}

void engine_tick(struct engine *e, pccl_ns now)
{
    e->now = now;
    for (uint32_t i = 0; i < e->conn_end; i++) {
        struct conn *c = e->conns[i];
        if (!c || c->state == CONN_FREE) continue;
        if (c->state == CONN_OPEN && now - c->last_sent >= e->deadline / 5) {
            c->ping = true;
            e->dirty[i / 64] |= (uint64_t)1 << (i % 64);
        }
        check_silence(e, i);
    }
    message_pump(e);
    state_tick(e);
    probe_tick(e);
}
