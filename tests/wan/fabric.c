/* fabric.c - see fabric.h. */
#include "fabric.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum stage { STAGE_UP, STAGE_TRUNK, STAGE_PATH, STAGE_DOWN, STAGE_OUT };

/* A pipe with its rule, and when it is to be looked at again. */
struct port {
    struct wire wire;
    struct pipe pipe;
    wan_ns wakes; /* an event of the heap, or WAN_NEVER */
    wan_ns last;  /* arrival of the path's last packet: jitter keeps order */
};

struct trunk {
    node_set from, to;
    struct port port;
};

/* Either a packet that enters a stage, or a port to be served. */
struct event {
    wan_ns at;
    uint64_t order;
    struct packet *packet;
    struct port *port;
};

struct fabric {
    const struct world *world;
    uint32_t applied; /* statements of the world */
    uint32_t changes;
    uint64_t random, order;
    wan_ns now;
    struct port up[NODES_MAX], down[NODES_MAX];
    struct port path[NODES_MAX][NODES_MAX];
    struct tally tally[NODES_MAX][NODES_MAX];
    int8_t trunk_of[NODES_MAX][NODES_MAX];
    struct trunk trunks[TRUNKS_MAX];
    uint32_t trunk_count;
    struct event *heap;
    size_t heap_size, heap_room;
    struct packet *out, **out_end;
};

/* --------------------------------------------------------------------- heap */

static bool before(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void heap_push(struct fabric *f, struct event e)
{
    if (f->heap_size == f->heap_room) {
        f->heap_room = f->heap_room ? 2 * f->heap_room : 1024;
        f->heap = realloc(f->heap, f->heap_room * sizeof *f->heap);
        assert(f->heap && "out of memory");
    }
    e.order = f->order++;
    size_t i = f->heap_size++;
    while (i > 0 && before(&e, &f->heap[(i - 1) / 2])) {
        f->heap[i] = f->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    f->heap[i] = e;
}

static struct event heap_pop(struct fabric *f)
{
    struct event first = f->heap[0];
    struct event last = f->heap[--f->heap_size];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= f->heap_size) break;
        if (child + 1 < f->heap_size &&
            before(&f->heap[child + 1], &f->heap[child]))
            child++;
        if (!before(&f->heap[child], &last)) break;
        f->heap[i] = f->heap[child];
        i = child;
    }
    if (f->heap_size > 0) f->heap[i] = last;
    return first;
}

/* ----------------------------------------------------------------- set-up */

/* Uniform in [0, 1): Marsaglia's xorshift64*. */
static double draw(struct fabric *f)
{
    uint64_t x = f->random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    f->random = x;
    return (double)((x * 0x2545f4914f6cdd1du) >> 11) / 9007199254740992.0;
}

struct fabric *fabric_make(const struct world *world)
{
    struct fabric *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->world = world;
    f->random = world->seed * 0x9e3779b97f4a7c15u + 0x5851f42d4c957f2du;
    if (f->random == 0) f->random = 1;
    f->out_end = &f->out;
    memset(f->trunk_of, -1, sizeof f->trunk_of);
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        f->up[i].wakes = f->down[i].wakes = WAN_NEVER;
        for (uint32_t k = 0; k < NODES_MAX; k++)
            f->path[i][k].wakes = WAN_NEVER;
    }
    for (uint32_t i = 0; i < TRUNKS_MAX; i++)
        f->trunks[i].port.wakes = WAN_NEVER;
    fabric_run(f, 0);
    return f;
}

void fabric_destroy(struct fabric *f)
{
    if (!f) return;
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        pipe_free(&f->up[i].pipe);
        pipe_free(&f->down[i].pipe);
        for (uint32_t k = 0; k < NODES_MAX; k++) pipe_free(&f->path[i][k].pipe);
    }
    for (uint32_t i = 0; i < TRUNKS_MAX; i++)
        pipe_free(&f->trunks[i].port.pipe);
    for (size_t i = 0; i < f->heap_size; i++) free(f->heap[i].packet);
    free(f->heap);
    struct packet *packet;
    while ((packet = fabric_take(f)) != NULL) free(packet);
    free(f);
}

static bool has(node_set set, uint32_t node)
{
    return (set >> node) & 1;
}

static void apply_trunk(struct fabric *f, const struct statement *s,
                        node_set from, node_set to)
{
    uint32_t i = 0;
    while (i < f->trunk_count &&
           (f->trunks[i].from != from || f->trunks[i].to != to))
        i++;
    if (i == TRUNKS_MAX) return; /* full: the world says so at its start */
    if (i == f->trunk_count) {
        f->trunk_count++;
        f->trunks[i].from = from;
        f->trunks[i].to = to;
    }
    wire_apply(&f->trunks[i].port.wire, s);
    for (uint32_t a = 0; a < f->world->nodes; a++) {
        for (uint32_t b = 0; b < f->world->nodes; b++)
            if (has(from, a) && has(to, b)) f->trunk_of[a][b] = (int8_t)i;
    }
}

void fabric_apply(struct fabric *f, const struct statement *s)
{
    f->changes++;
    if (s->kind == STATE_TRUNK) {
        apply_trunk(f, s, s->from, s->to);
        if (s->both) apply_trunk(f, s, s->to, s->from);
        return;
    }
    for (uint32_t a = 0; a < f->world->nodes; a++) {
        if (s->kind == STATE_UP && has(s->from, a))
            wire_apply(&f->up[a].wire, s);
        if (s->kind == STATE_DOWN && has(s->from, a))
            wire_apply(&f->down[a].wire, s);
        if (s->kind != STATE_PATH) continue;
        for (uint32_t b = 0; b < f->world->nodes; b++) {
            bool forth = has(s->from, a) && has(s->to, b);
            bool back = s->both && has(s->from, b) && has(s->to, a);
            if (a != b && (forth || back)) wire_apply(&f->path[a][b].wire, s);
        }
    }
}

/* ---------------------------------------------------------------- the way */

static struct port *port_of(struct fabric *f, const struct packet *p)
{
    int trunk = f->trunk_of[p->from][p->to];
    switch ((enum stage)p->stage) {
    case STAGE_UP:
        return &f->up[p->from];
    case STAGE_TRUNK:
        return trunk < 0 ? NULL : &f->trunks[trunk].port;
    case STAGE_PATH:
        return &f->path[p->from][p->to];
    case STAGE_DOWN:
        return &f->down[p->to];
    case STAGE_OUT:
        break;
    }
    return NULL;
}

/* The packet has left the pipe of its stage: it is in the next one after what
 * the path takes. */
static void leave(struct fabric *f, struct port *port, struct packet *p,
                  wan_ns at)
{
    if (p->stage == STAGE_PATH) {
        at += port->wire.delay;
        if (port->wire.jitter > 0)
            at += (wan_ns)((double)port->wire.jitter * draw(f));
        if (at < port->last) at = port->last;
        port->last = at;
    }
    p->stage++;
    heap_push(f, (struct event){.at = at, .packet = p});
}

static void serve(struct fabric *f, struct port *port, wan_ns now)
{
    wan_ns due;
    while ((due = pipe_due(&port->pipe)) <= now) {
        wan_ns leaves;
        struct packet *p =
            pipe_take(&port->pipe, &port->wire.rule, now, &leaves);
        leave(f, port, p, leaves);
    }
    if (due >= port->wakes) return;
    port->wakes = due;
    heap_push(f, (struct event){.at = due, .port = port});
}

/* What the path lets through. Counts and frees what it does not. */
static bool passes(struct fabric *f, const struct port *port, struct packet *p)
{
    struct tally *t = &f->tally[p->from][p->to];
    const struct wire *w = &port->wire;
    bool stopped = w->blocked || (w->walled && p->call);
    bool lost = !stopped && w->loss > 0 && draw(f) < w->loss;
    t->stopped += stopped;
    t->lost += lost;
    if (!stopped && !lost) return true;
    free(p);
    return false;
}

static void enter(struct fabric *f, struct packet *p, wan_ns now)
{
    if (p->stage == STAGE_OUT) {
        struct tally *t = &f->tally[p->from][p->to];
        t->delivered += p->wire;
        t->packets++;
        p->at = now;
        p->next = NULL;
        *f->out_end = p;
        f->out_end = &p->next;
        return;
    }
    struct port *port = port_of(f, p);
    if (p->stage == STAGE_PATH && !passes(f, port, p)) return;
    if (!port || (!pipe_rule_limits(&port->wire.rule) && !port->pipe.bytes)) {
        leave(f, port, p, now);
        return;
    }
    p->order = f->order++;
    struct packet *gone = pipe_offer(&port->pipe, &port->wire.rule, now, p);
    if (gone) {
        f->tally[gone->from][gone->to].dropped++;
        free(gone);
    }
    serve(f, port, now);
}

void fabric_offer(struct fabric *f, wan_ns now, struct packet *p)
{
    assert(p->from < f->world->nodes && p->to < f->world->nodes);
    fabric_run(f, now);
    f->tally[p->from][p->to].offered += p->wire;
    p->stage = STAGE_UP;
    heap_push(f, (struct event){.at = now, .packet = p});
}

/* The time of the world's next statement. */
static wan_ns next_change(const struct fabric *f)
{
    if (f->applied == f->world->statement_count) return WAN_NEVER;
    return f->world->statements[f->applied].at;
}

wan_ns fabric_due(const struct fabric *f)
{
    wan_ns change = next_change(f);
    if (f->heap_size == 0 || change < f->heap[0].at) return change;
    return f->heap[0].at;
}

void fabric_run(struct fabric *f, wan_ns now)
{
    if (now > f->now) f->now = now;
    while (fabric_due(f) <= f->now) {
        if (f->heap_size == 0 || next_change(f) <= f->heap[0].at) {
            fabric_apply(f, &f->world->statements[f->applied++]);
            continue;
        }
        struct event e = heap_pop(f);
        if (e.packet) {
            enter(f, e.packet, e.at);
        } else if (e.port->wakes == e.at) { /* else: an earlier one came */
            e.port->wakes = WAN_NEVER;
            serve(f, e.port, e.at);
        }
    }
}

struct packet *fabric_take(struct fabric *f)
{
    struct packet *p = f->out;
    if (!p) return NULL;
    f->out = p->next;
    if (!f->out) f->out_end = &f->out;
    p->next = NULL;
    return p;
}

/* -------------------------------------------------------------- questions */

uint32_t fabric_changes(const struct fabric *f)
{
    return f->changes + 1;
}

uint32_t fabric_peers(const struct fabric *f)
{
    return f->world->nodes - 1;
}

const struct wire *fabric_path(const struct fabric *f, uint32_t from,
                               uint32_t to)
{
    return &f->path[from][to].wire;
}

const struct tally *fabric_tally(const struct fabric *f, uint32_t from,
                                 uint32_t to)
{
    return &f->tally[from][to];
}

void fabric_clear_tallies(struct fabric *f)
{
    memset(f->tally, 0, sizeof f->tally);
}

int fabric_trunk(const struct fabric *f, uint32_t from, uint32_t to)
{
    return f->trunk_of[from][to];
}

static uint64_t narrower(uint64_t best, const struct pipe_rule *rule,
                         uint32_t connections, uint32_t sharers)
{
    uint64_t flows = rule->flow_rate * connections;
    uint64_t share = rule->rate / sharers;
    if (rule->rate > 0 && share < best) best = share;
    if (rule->flow_rate > 0 && flows < best) best = flows;
    return best;
}

uint64_t fabric_capacity(const struct fabric *f, uint32_t from, uint32_t to,
                         uint32_t connections, uint32_t sharers)
{
    const struct wire *path = &f->path[from][to].wire;
    const struct wire *back = &f->path[to][from].wire;
    if (path->blocked || back->blocked || (path->walled && back->walled))
        return 0;
    int trunk = f->trunk_of[from][to];
    uint64_t best = UINT64_MAX;
    best = narrower(best, &f->up[from].wire.rule, connections, 1);
    best = narrower(best, &path->rule, connections, 1);
    best = narrower(best, &f->down[to].wire.rule, connections, 1);
    if (trunk >= 0) {
        best = narrower(best, &f->trunks[trunk].port.wire.rule, connections,
                        sharers);
    }
    return best;
}
