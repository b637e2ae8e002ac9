/* network.c - events of an emulated network in order of virtual time. */
#include "network.h"

#include "packet.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum stage { STAGE_UP, STAGE_TRUNK, STAGE_PATH, STAGE_DOWN, STAGE_OUT };

/* The shaper of one link, and the time of its next event. */
struct port {
    struct shaped_link link;
    struct shaper shaper;
    wan_ns wakes; /* an event of the heap, or WAN_NEVER */
    wan_ns
        last; /* arrival of the path's last packet: jitter does not reorder */
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

struct network {
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
    struct middlebox middlebox;
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

static void heap_push(struct network *net, struct event e)
{
    if (net->heap_size == net->heap_room) {
        net->heap_room = net->heap_room ? 2 * net->heap_room : 1024;
        net->heap = realloc(net->heap, net->heap_room * sizeof *net->heap);
        assert(net->heap && "out of memory");
    }
    e.order = net->order++;
    size_t i = net->heap_size++;
    while (i > 0 && before(&e, &net->heap[(i - 1) / 2])) {
        net->heap[i] = net->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    net->heap[i] = e;
}

static struct event heap_pop(struct network *net)
{
    struct event first = net->heap[0];
    struct event last = net->heap[--net->heap_size];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= net->heap_size) break;
        if (child + 1 < net->heap_size &&
            before(&net->heap[child + 1], &net->heap[child]))
            child++;
        if (!before(&net->heap[child], &last)) break;
        net->heap[i] = net->heap[child];
        i = child;
    }
    if (net->heap_size > 0) net->heap[i] = last;
    return first;
}

/* ----------------------------------------------------------------- set-up */

/* Uniform in [0, 1): Marsaglia's xorshift64*. */
static double draw(struct network *net)
{
    uint64_t x = net->random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    net->random = x;
    return (double)((x * 0x2545f4914f6cdd1du) >> 11) / 9007199254740992.0;
}

struct network *network_make(const struct world *world)
{
    struct network *net = calloc(1, sizeof *net);
    if (!net) return NULL;
    net->world = world;
    net->random = world->seed * 0x9e3779b97f4a7c15u + 0x5851f42d4c957f2du;
    if (net->random == 0) net->random = 1;
    net->out_end = &net->out;
    memset(net->trunk_of, -1, sizeof net->trunk_of);
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        net->up[i].wakes = net->down[i].wakes = WAN_NEVER;
        for (uint32_t k = 0; k < NODES_MAX; k++)
            net->path[i][k].wakes = WAN_NEVER;
    }
    for (uint32_t i = 0; i < TRUNKS_MAX; i++)
        net->trunks[i].port.wakes = WAN_NEVER;
    network_run(net, 0);
    return net;
}

void network_destroy(struct network *net)
{
    if (!net) return;
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        shaper_free(&net->up[i].shaper);
        shaper_free(&net->down[i].shaper);
        for (uint32_t k = 0; k < NODES_MAX; k++)
            shaper_free(&net->path[i][k].shaper);
    }
    for (uint32_t i = 0; i < TRUNKS_MAX; i++)
        shaper_free(&net->trunks[i].port.shaper);
    for (size_t i = 0; i < net->heap_size; i++) free(net->heap[i].packet);
    free(net->heap);
    middlebox_free(&net->middlebox);
    struct packet *packet;
    while ((packet = network_take(net)) != NULL) free(packet);
    free(net);
}

static bool has(node_set set, uint32_t node)
{
    return (set >> node) & 1;
}

static void apply_trunk(struct network *net, const struct statement *s,
                        node_set from, node_set to)
{
    uint32_t i = 0;
    while (i < net->trunk_count &&
           (net->trunks[i].from != from || net->trunks[i].to != to))
        i++;
    if (i == TRUNKS_MAX) return; /* full: world_parse reported it */
    if (i == net->trunk_count) {
        net->trunk_count++;
        net->trunks[i].from = from;
        net->trunks[i].to = to;
    }
    shaped_link_apply(&net->trunks[i].port.link, s);
    for (uint32_t a = 0; a < net->world->nodes; a++) {
        for (uint32_t b = 0; b < net->world->nodes; b++)
            if (has(from, a) && has(to, b)) net->trunk_of[a][b] = (int8_t)i;
    }
}

void network_apply(struct network *net, const struct statement *s)
{
    net->changes++;
    if (s->kind == STATEMENT_TRUNK) {
        apply_trunk(net, s, s->from, s->to);
        if (s->both) apply_trunk(net, s, s->to, s->from);
        return;
    }
    for (uint32_t a = 0; a < net->world->nodes; a++) {
        if (s->kind == STATEMENT_UP && has(s->from, a))
            shaped_link_apply(&net->up[a].link, s);
        if (s->kind == STATEMENT_DOWN && has(s->from, a))
            shaped_link_apply(&net->down[a].link, s);
        if (s->kind != STATEMENT_PATH) continue;
        for (uint32_t b = 0; b < net->world->nodes; b++) {
            bool forth = has(s->from, a) && has(s->to, b);
            bool back = s->both && has(s->from, b) && has(s->to, a);
            if (a == b || !(forth || back)) continue;
            shaped_link_apply(&net->path[a][b].link, s);
            if (s->fields & (FIELD_FORGET | FIELD_FIRST))
                middlebox_restart(&net->middlebox, a, b);
        }
    }
}

/* --------------------------------------------------------------- the path */

static struct port *port_of(struct network *net, const struct packet *p)
{
    int trunk = net->trunk_of[p->from][p->to];
    switch ((enum stage)p->stage) {
    case STAGE_UP:
        return &net->up[p->from];
    case STAGE_TRUNK:
        return trunk < 0 ? NULL : &net->trunks[trunk].port;
    case STAGE_PATH:
        return &net->path[p->from][p->to];
    case STAGE_DOWN:
        return &net->down[p->to];
    case STAGE_OUT:
        break;
    }
    return NULL;
}

/* Whether that happens to a packet, of which this part has it happen. */
static bool happens(struct network *net, double part)
{
    return part > 0 && draw(net) < part;
}

/* When a packet that enters the path at that time has crossed it. One that is
 * reordered takes a delay more, and those behind it do not wait. */
static wan_ns cross(struct network *net, struct port *port, wan_ns at)
{
    const struct shaped_link *w = &port->link;
    at += w->delay;
    if (w->jitter > 0) at += (wan_ns)((double)w->jitter * draw(net));
    if (at < port->last) at = port->last;
    if (happens(net, w->reorder))
        return at + (w->delay > 0 ? w->delay : WAN_MS);
    port->last = at;
    return at;
}

/* Moves a packet that has left its shaper to the next stage, after the delay of
 * the path. */
static void leave(struct network *net, struct port *port, struct packet *p,
                  wan_ns at)
{
    if (p->stage == STAGE_PATH) at = cross(net, port, at);
    p->stage++;
    heap_push(net, (struct event){.at = at, .packet = p});
}

static void serve(struct network *net, struct port *port, wan_ns now)
{
    wan_ns due;
    while ((due = shaper_due(&port->shaper)) <= now) {
        wan_ns leaves;
        struct packet *p =
            shaper_take(&port->shaper, &port->link.rule, now, &leaves);
        leave(net, port, p, leaves);
    }
    if (due >= port->wakes) return;
    port->wakes = due;
    heap_push(net, (struct event){.at = due, .port = port});
}

static enum passage passage(struct network *net, const struct shaped_link *w,
                            const struct packet *p, wan_ns now)
{
    if (w->blocked || (w->firewalled && p->syn) ||
        (w->mtu > 0 && p->segment > w->mtu))
        return PASSAGE_VANISHES;
    return middlebox_pass(&net->middlebox, &w->middlebox, now, p);
}

/* Whether the link passes the packet. Counts and frees a packet that it does
 * not pass, or sends it back as an RST. */
static bool passes(struct network *net, const struct port *port,
                   struct packet *p, wan_ns now)
{
    struct tally *t = &net->tally[p->from][p->to];
    const struct shaped_link *w = &port->link;
    enum passage passed = passage(net, w, p, now);
    bool lost = passed == PASSAGE_OPEN && happens(net, w->loss);
    t->stopped += passed != PASSAGE_OPEN;
    t->lost += lost;
    if (passed == PASSAGE_OPEN && !lost) return true;
    if (passed == PASSAGE_RESET) {
        middlebox_answer(p);
        p->stage = STAGE_DOWN;
        heap_push(net, (struct event){.at = now, .packet = p});
        return false;
    }
    free(p);
    return false;
}

/* One more of the packet goes the same way. */
static void duplicate(struct network *net, const struct packet *p, wan_ns now)
{
    struct packet *twin = malloc(sizeof *p + p->size);
    if (!twin) return;
    memcpy(twin, p, sizeof *p + p->size);
    twin->stage = STAGE_DOWN;
    heap_push(net,
              (struct event){.at = now + net->path[p->from][p->to].link.delay,
                             .packet = twin});
}

static void enter(struct network *net, struct packet *p, wan_ns now)
{
    if (p->stage == STAGE_OUT) {
        struct tally *t = &net->tally[p->from][p->to];
        t->delivered += p->wire_size;
        t->packets++;
        p->at = now;
        p->next = NULL;
        *net->out_end = p;
        net->out_end = &p->next;
        return;
    }
    struct port *port = port_of(net, p);
    if (p->stage == STAGE_PATH && !passes(net, port, p, now)) return;
    if (p->stage == STAGE_PATH && happens(net, port->link.duplicate))
        duplicate(net, p, now);
    if (!port ||
        (!shaper_rule_limits(&port->link.rule) && !port->shaper.bytes)) {
        leave(net, port, p, now);
        return;
    }
    p->order = net->order++;
    struct packet *gone = shaper_offer(&port->shaper, &port->link.rule, now, p);
    if (gone) {
        net->tally[gone->from][gone->to].dropped++;
        free(gone);
    }
    serve(net, port, now);
}

void network_offer(struct network *net, wan_ns now, struct packet *p)
{
    assert(p->from < net->world->nodes && p->to < net->world->nodes);
    network_run(net, now);
    net->tally[p->from][p->to].offered += p->wire_size;
    p->stage = STAGE_UP;
    heap_push(net, (struct event){.at = now, .packet = p});
}

/* Time of the world's next statement. */
static wan_ns next_change(const struct network *net)
{
    if (net->applied == net->world->statement_count) return WAN_NEVER;
    return net->world->statements[net->applied].at;
}

wan_ns network_due(const struct network *net)
{
    wan_ns change = next_change(net);
    if (net->heap_size == 0 || change < net->heap[0].at) return change;
    return net->heap[0].at;
}

void network_run(struct network *net, wan_ns now)
{
    if (now > net->now) net->now = now;
    while (network_due(net) <= net->now) {
        if (net->heap_size == 0 || next_change(net) <= net->heap[0].at) {
            network_apply(net, &net->world->statements[net->applied++]);
            continue;
        }
        struct event e = heap_pop(net);
        if (e.packet) {
            enter(net, e.packet, e.at);
        } else if (e.port->wakes == e.at) { /* else: an earlier one came */
            e.port->wakes = WAN_NEVER;
            serve(net, e.port, e.at);
        }
    }
}

struct packet *network_take(struct network *net)
{
    struct packet *p = net->out;
    if (!p) return NULL;
    net->out = p->next;
    if (!net->out) net->out_end = &net->out;
    p->next = NULL;
    return p;
}

/* -------------------------------------------------------------- questions */

uint32_t network_changes(const struct network *net)
{
    return net->changes + 1;
}

uint32_t network_peers(const struct network *net)
{
    return net->world->nodes - 1;
}

const struct shaped_link *network_path(const struct network *net, uint32_t from,
                                       uint32_t to)
{
    return &net->path[from][to].link;
}

const struct tally *network_tally(const struct network *net, uint32_t from,
                                  uint32_t to)
{
    return &net->tally[from][to];
}

void network_clear_tallies(struct network *net)
{
    memset(net->tally, 0, sizeof net->tally);
}

int network_trunk(const struct network *net, uint32_t from, uint32_t to)
{
    return net->trunk_of[from][to];
}

static uint64_t narrower(uint64_t best, const struct shaper_rule *rule,
                         uint32_t connections, uint32_t sharers)
{
    uint64_t flows = rule->flow_rate * connections;
    uint64_t share = rule->rate / sharers;
    if (rule->rate > 0 && share < best) best = share;
    if (rule->flow_rate > 0 && flows < best) best = flows;
    return best;
}

uint64_t network_capacity(const struct network *net, uint32_t from, uint32_t to,
                          uint32_t connections, uint32_t sharers)
{
    const struct shaped_link *path = &net->path[from][to].link;
    const struct shaped_link *back = &net->path[to][from].link;
    if (path->blocked || back->blocked ||
        (path->firewalled && back->firewalled))
        return 0;
    int trunk = net->trunk_of[from][to];
    uint64_t best = UINT64_MAX;
    best = narrower(best, &net->up[from].link.rule, connections, 1);
    best = narrower(best, &path->rule, connections, 1);
    best = narrower(best, &net->down[to].link.rule, connections, 1);
    if (trunk >= 0) {
        best = narrower(best, &net->trunks[trunk].port.link.rule, connections,
                        sharers);
    }
    return best;
}
