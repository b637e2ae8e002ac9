/* wire.c - codec of control messages. One description of each body serves both
 * directions. */
#include "wire.h"

#include "arguments.h"
#include "cursor.h"
#include "dtype.h"
#include "wire_member.h"
#include "wire_partial.h"
#include "wire_resume.h"

#include <string.h>

/* Lists that follow the fixed fields of a type. */
enum {
    LIST_OPS = 1,
    LIST_IDS = 2,
    LIST_MEMBERS = 4,
    LIST_ORDER = 8,
    LIST_EDGES = 16,
    LIST_SITES = 32,
    LIST_SETS = 64,
    LIST_WAITS = 128,
    LIST_PARTS = 256,
    LIST_RELAYS = 512
};

/* A member's operations, and the sets of their scopes. */
enum {
    OP_SIZE = 22, /* of op_field() */
    OP_LIST_MAX = OP_SIZE * WIRE_OPS_MAX,
    LISTED_MAX = OP_LIST_MAX + WIRE_SETS_MAX * WIRE_SET_SIZE + 128
};
static_assert((WIRE_MEMBER_MAX + 2) * PEERS_MAX + 6 * WIRE_RELAYS_MAX + 256 <=
                  (int)WIRE_BODY_MAX,
              "a view fits a message");
static_assert(LISTED_MAX + ARGUMENTS_SIZE <= (int)WIRE_BODY_MAX,
              "lists fit a message");

static const struct wire_shape {
    const char *name;
    uint16_t lists;
    uint32_t size_max; /* of the body; checked before the body is received */
} shapes[WIRE_TYPE_COUNT] = {
    [WIRE_HELLO] = {"HELLO", 0, 160},
    [WIRE_VOTE] = {"VOTE", 0, 64},
    [WIRE_SUSPECT] = {"SUSPECT", 0, 64},
    [WIRE_REFRESH] = {"REFRESH", 0, 64},
    [WIRE_FLUSHED] = {"FLUSHED", LIST_OPS | LIST_SETS,
                      LISTED_MAX + ARGUMENTS_SIZE},
    [WIRE_REPLY] = {"REPLY", LIST_OPS, OP_LIST_MAX + 64},
    [WIRE_READY] = {"READY", LIST_IDS, 8 * PEERS_MAX + 64},
    [WIRE_LEAVE] = {"LEAVE", 0, 64},
    [WIRE_ABORT] = {"ABORT", 0, 512},
    [WIRE_SYNC] = {"SYNC", LIST_IDS, 8 * WIRE_TAGS_MAX + 64},
    [WIRE_SYNCED] = {"SYNCED", LIST_IDS, 8 * PEERS_MAX + 512},
    [WIRE_HEARTBEAT] = {"HEARTBEAT", 0, 64},
    [WIRE_RESULT] = {"RESULT", 0, WIRE_RESULT_MAX + 64},
    [WIRE_WELCOME] = {"WELCOME", 0, 72 + 19 * WIRE_MASTERS_MAX},
    [WIRE_EVICT] = {"EVICT", 0, 512},
    [WIRE_ANSWER] = {"ANSWER", 0, 64},
    [WIRE_FLUSH] = {"FLUSH", LIST_IDS, 8 * PEERS_MAX + 128},
    [WIRE_QUERY] = {"QUERY", LIST_OPS, OP_LIST_MAX + 64},
    [WIRE_DONATE] = {"DONATE", 0, 64},
    [WIRE_PROPOSE] = {"PROPOSE",
                      LIST_IDS | LIST_MEMBERS | LIST_ORDER | LIST_SITES |
                          LIST_RELAYS,
                      WIRE_BODY_MAX},
    [WIRE_VERDICT] = {"VERDICT", LIST_OPS, OP_LIST_MAX + 512},
    [WIRE_INSTALL] = {"INSTALL", LIST_IDS, 8 * PEERS_MAX + 128},
    [WIRE_STATE] = {"STATE", LIST_IDS, 8 * PEERS_MAX + 512},
    [WIRE_BLOCKED] = {"BLOCKED", 0, 64},
    [WIRE_MEASURED] = {"MEASURED", LIST_EDGES, 25 * WIRE_EDGES_MAX + 64},
    [WIRE_PROBE] = {"PROBE", 0, 64},
    [WIRE_DIAL_REQUEST] = {"DIAL_REQUEST", 0, 64},
    [WIRE_SILENT] = {"SILENT", LIST_IDS, 8 * PEERS_MAX + 64},
    [WIRE_WAITING] = {"WAITING", LIST_IDS | LIST_SETS | LIST_WAITS,
                      16 * WIRE_QUIET_MAX + WIRE_WAITS_MAX * 192 +
                          WIRE_UNDER_WAY_MAX *WIRE_SET_SIZE + 256},
    [WIRE_STATUS_GET] = {"STATUS_GET", 0, 64},
    [WIRE_WANTED] = {"WANTED", LIST_OPS, 32 * WIRE_WANTED_MAX + 64},
    [WIRE_STATUS] = {"STATUS", 0, WIRE_PART_MAX + 64},
    [WIRE_SAMPLES] = {"SAMPLES", 0, 64},
    [WIRE_OFFER] = {"OFFER", 0, 64},
    [WIRE_OFFERS_GET] = {"OFFERS_GET", 0, 64},
    [WIRE_RELAY] = {"RELAY", 0, 64},
    [WIRE_OFFERS] = {"OFFERS", LIST_MEMBERS, 64 * WIRE_OFFERS_MAX + 128},
    [WIRE_PARTIAL] = {"PARTIAL", LIST_IDS | LIST_SETS,
                      16 * WIRE_PARTS_MAX + WIRE_AVERAGED_MAX / 8 + 512},
    [WIRE_RESUME] = {"RESUME", 0, 128},
    [WIRE_RESUMED] = {"RESUMED", 0, 128},
    [WIRE_KEEP] = {"KEEP", 0, WIRE_KEEP_PART_MAX + 64},
    [WIRE_KEPT] = {"KEPT", 0, 64},
    [WIRE_KEEP_GET] = {"KEEP_GET", 0, 64},
    [WIRE_CLAIM] = {"CLAIM", 0, 64},
    [WIRE_COVERAGE] = {"COVERAGE", LIST_IDS | LIST_PARTS | LIST_SETS,
                       16 * WIRE_AVERAGED_MAX +
                           WIRE_PARTS_MAX *(40 + WIRE_AVERAGED_MAX / 8) + 512},
};

const char *wire_type_name(enum wire_type type)
{
    if ((unsigned)type >= WIRE_TYPE_COUNT || !shapes[type].name) return "?";
    return shapes[type].name;
}

bool wire_addr_is_host(const struct wire_addr *a)
{
    static const uint8_t none[sizeof a->ip];
    if (a->port == 0 || (a->family != 4 && a->family != 6)) return false;
    if (a->family == 4) return a->ip[0] != 0 && a->ip[0] < 224;
    bool link_local = a->ip[0] == 0xfe && (a->ip[1] & 0xc0) == 0x80;
    return a->ip[0] != 0xff && !link_local &&
           memcmp(a->ip, none, sizeof none) != 0;
}

static void op_field(struct cursor *c, struct wire_op *op)
{
    cursor_u64(c, &op->scope);
    cursor_u64(c, &op->tag);
    cursor_u32(c, &op->seq);
    cursor_u8(c, &op->state);
    cursor_flag(c, &op->donor);
    cursor_limit(c, op->state, VERDICT_COUNT);
}

static void edge_field(struct cursor *c, struct wire_edge *e)
{
    cursor_u64(c, &e->peer);
    cursor_u64(c, &e->rate);
    cursor_u64(c, &e->rtt);
    cursor_u8(c, &e->kind);
    cursor_limit(c, e->kind, EDGE_KIND_COUNT);
}

/* A relay is a third one; a comes first. */
static void relay_way_field(struct cursor *c, struct wire_relay *r)
{
    cursor_u16(c, &r->a);
    cursor_u16(c, &r->b);
    cursor_u16(c, &r->relay);
    if (r->a >= r->b || r->relay == r->a || r->relay == r->b) c->failed = true;
}

static void relay_field(struct cursor *c, struct wire_msg *m)
{
    cursor_u64(c, &m->relay.key.word[0]);
    cursor_u64(c, &m->relay.key.word[1]);
    cursor_u64(c, &m->relay.from);
    cursor_u64(c, &m->relay.to);
    cursor_flag(c, &m->relay.listens);
}

/* Printable ASCII only, because it is logged. */
static void short_text_field(struct cursor *c, char *text, uint8_t most)
{
    uint8_t size = (uint8_t)strnlen(text, most);
    cursor_u8(c, &size);
    cursor_limit(c, size, (uint32_t)most + 1);
    if (c->failed) return;
    cursor_bytes(c, (uint8_t *)text, size);
    if (!c->in) return;
    text[size] = '\0';
    for (uint8_t i = 0; i < size; i++)
        if (text[i] < ' ' || text[i] > '~') c->failed = true;
}

static void text_field(struct cursor *c, char *text)
{
    short_text_field(c, text, WIRE_TEXT_MAX);
}

static void wait_field(struct cursor *c, struct wire_wait *w)
{
    cursor_u8(c, &w->kind);
    cursor_u8(c, &w->coll);
    cursor_flag(c, &w->blocks);
    cursor_u64(c, &w->scope);
    cursor_u64(c, &w->tag);
    cursor_u32(c, &w->seq);
    cursor_u64(c, &w->count);
    cursor_u64(c, &w->moved);
    cursor_u64(c, &w->peer);
    cursor_u32(c, &w->missing);
    cursor_u32(c, &w->age_ms);
    short_text_field(c, w->call, WIRE_NAME_MAX);
    short_text_field(c, w->where, WIRE_NAME_MAX);
    cursor_limit(c, w->kind, WAIT_KIND_COUNT);
    cursor_limit(c, w->coll, WIRE_COLLS);
    cursor_limit(c, w->missing, PEERS_MAX);
}

static void args_field(struct cursor *c, struct wire_args *a)
{
    cursor_u8(c, &a->coll);
    cursor_u8(c, &a->dtype);
    cursor_u8(c, &a->redop);
    cursor_u8(c, &a->quant);
    cursor_u8(c, &a->code);
    cursor_u32(c, &a->root);
    cursor_u64(c, &a->count);
    cursor_u64(c, &a->sends);
    cursor_u64(c, &a->recvs);
    cursor_u64(c, &a->digest);
    cursor_u32(c, &a->rank);
    cursor_u32(c, &a->named_size);
    cursor_limit(c, a->named_size, ARGUMENTS_SIZE + 1);
    if (!c->failed) cursor_raw(c, &a->named, a->named_size);
    if (a->coll >= WIRE_COLLS || a->dtype >= DTYPE_COUNT ||
        a->redop >= REDOP_COUNT || a->quant >= WIRE_QUANTS ||
        a->code >= DTYPE_COUNT || a->rank >= PEERS_MAX)
        c->failed = true;
    if (c->in && !c->failed && !arguments_valid(a->named, a->named_size))
        c->failed = true;
}

static void result_field(struct cursor *c, struct wire_msg *m)
{
    cursor_u64(c, &m->result.scope);
    cursor_u64(c, &m->result.tag);
    cursor_u32(c, &m->result.seq);
    if (m->type == WIRE_DONATE) return;
    cursor_u32(c, &m->result.size);
    cursor_limit(c, m->result.size, WIRE_RESULT_MAX + 1);
    if (!c->failed) cursor_raw(c, &m->result.bytes, m->result.size);
}

static void hello_field(struct cursor *c, struct wire_msg *m)
{
    cursor_u32(c, &m->hello.group);
    cursor_u16(c, &m->hello.pool);
    cursor_flag(c, &m->hello.join);
    cursor_flag(c, &m->hello.stays);
    cursor_flag(c, &m->hello.must_leave);
    wire_member_field(c, &m->hello.self);
    cursor_flag(c, &m->hello.fetched);
    cursor_u64(c, &m->hello.revision);
    cursor_u64(c, &m->hello.max_stale);
}

static void fault_field(struct cursor *c, struct wire_msg *m)
{
    cursor_u8(c, &m->fault.cause);
    cursor_u64(c, &m->fault.scope);
    cursor_u64(c, &m->fault.tag);
    cursor_u32(c, &m->fault.seq);
    cursor_u64(c, &m->fault.peer);
    cursor_limit(c, m->fault.cause, REFRESH_CAUSE_COUNT);
}

/* Links beside those of the ring: none, all, those of the tree, or those of the
 * tree and the grid. */
static void view_field(struct cursor *c, struct wire_msg *m)
{
    uint8_t links = m->view.mesh ? 1 : 0;
    if (m->view.tree) links = m->view.grid ? 3 : 2;
    cursor_flag(c, &m->view.ring);
    cursor_u8(c, &links);
    cursor_limit(c, links, 4);
    m->view.mesh = links == 1;
    m->view.tree = links >= 2;
    m->view.grid = links == 3;
    cursor_flag(c, &m->view.update);
    cursor_flag(c, &m->view.optimize);
    cursor_flag(c, &m->view.survey);
    cursor_u32(c, &m->view.world);
    cursor_u32(c, &m->view.groups);
    cursor_u32(c, &m->view.largest);
    cursor_u32(c, &m->view.traits);
    for (uint32_t i = 0; i < VOTE_KIND_COUNT; i++)
        cursor_u32(c, &m->view.answered[i]);
    cursor_u64(c, &m->view.synced);
}

static void waiting_field(struct cursor *c, struct wire_msg *m)
{
    struct wire_self *self = &m->waiting.self;
    uint8_t state = (uint8_t)self->state;
    cursor_u8(c, &state);
    self->state = (char)state;
    cursor_u16(c, &self->cpu);
    cursor_u16(c, &self->starve);
    cursor_u32(c, &self->faults);
    cursor_u64(c, &m->waiting.traffic.operations);
    cursor_u64(c, &m->waiting.traffic.sent);
    cursor_u64(c, &m->waiting.traffic.received);
    short_text_field(c, m->waiting.host, WIRE_NAME_MAX);
    cursor_limit(c, state, 0x7f); /* a letter, or 0 */
}

static void samples_field(struct cursor *c, struct wire_msg *m)
{
    cursor_u64(c, &m->samples.step);
    cursor_u64(c, &m->samples.count);
    cursor_u64(c, &m->samples.target);
    cursor_u32(c, &m->samples.members);
    cursor_flag(c, &m->samples.reached);
    cursor_limit(c, m->samples.members, PEERS_MAX + 1);
}

static void status_field(struct cursor *c, struct wire_msg *m)
{
    cursor_flag(c, &m->status.json);
    if (m->type == WIRE_STATUS_GET) return;
    cursor_flag(c, &m->status.last);
    cursor_u32(c, &m->status.size);
    cursor_limit(c, m->status.size, WIRE_PART_MAX + 1);
    if (!c->failed) cursor_raw(c, &m->status.bytes, m->status.size);
}

static void vote_field(struct cursor *c, struct wire_msg *m)
{
    cursor_u8(c, &m->vote.kind);
    cursor_u8(c, &m->vote.flag);
    cursor_limit(c, m->vote.kind, VOTE_KIND_COUNT);
}

static void call_field(struct cursor *c, struct wire_msg *m)
{
    cursor_u64(c, &m->call.peer);
    cursor_u32(c, &m->call.dials);
    cursor_u32(c, &m->call.heard);
}

static void offer_field(struct cursor *c, struct wire_msg *m)
{
    if (m->type == WIRE_OFFER) {
        cursor_flag(c, &m->offer.on);
        cursor_u64(c, &m->offer.revision);
        cursor_u32(c, &m->offer.guests);
        return;
    }
    cursor_u32(c, &m->offer.group);
    if (m->type == WIRE_OFFERS_GET) return;
    cursor_u32(c, &m->offer.group_size);
    cursor_u64(c, &m->offer.revision);
    cursor_u64(c, &m->offer.key.word[0]);
    cursor_u64(c, &m->offer.key.word[1]);
    cursor_u32(c, &m->offer.deadline_ms);
}

static void probe_field(struct cursor *c, struct wire_msg *m)
{
    cursor_u64(c, &m->probe.peer);
    cursor_flag(c, &m->probe.gives);
    cursor_flag(c, &m->probe.takes);
    cursor_u32(c, &m->probe.bytes);
    cursor_u32(c, &m->probe.time_us);
}

static void sync_field(struct cursor *c, struct wire_msg *m)
{
    cursor_u64(c, &m->sync.id);
    cursor_u64(c, &m->sync.revision);
    cursor_u64(c, &m->sync.structure);
    cursor_u64(c, &m->sync.content);
    cursor_u8(c, &m->sync.strategy);
    cursor_u8(c, &m->sync.role);
    cursor_u32(c, &m->sync.holders);
    cursor_u32(c, &m->sync.receivers);
    cursor_u64(c, &m->sync.given);
    cursor_flag(c, &m->sync.again);
    cursor_limit(c, m->sync.strategy, SYNC_STRATEGY_COUNT);
    cursor_limit(c, m->sync.role, SYNC_ROLE_COUNT);
    cursor_limit(c, m->sync.holders, PEERS_MAX + 1);
    cursor_limit(c, m->sync.receivers, PEERS_MAX + 1);
    if (m->type != WIRE_SYNC) text_field(c, m->sync.text);
}

static void leave_field(struct cursor *c, struct wire_msg *m)
{
    cursor_u32(c, &m->leave.traits);
}

/* The messages of rule F9. */
static void dispute_field(struct cursor *c, struct wire_msg *m)
{
    if (m->type == WIRE_FLUSH) {
        cursor_flag(c, &m->flush.disputed);
        if (!m->flush.disputed) return;
        op_field(c, &m->flush.op);
        cursor_u64(c, &m->flush.pair[0]);
        cursor_u64(c, &m->flush.pair[1]);
    } else if (m->type == WIRE_FLUSHED) {
        cursor_u32(c, &m->flushed.traits);
        cursor_flag(c, &m->flushed.described);
        if (m->flushed.described) args_field(c, &m->flushed.args);
    } else {
        cursor_u32(c, &m->verdict.about);
        cursor_limit(c, m->verdict.about, WIRE_OPS_MAX + 1);
        text_field(c, m->verdict.text);
    }
}

static void abort_field(struct cursor *c, struct wire_msg *m)
{
    cursor_i32(c, &m->abort.code);
    cursor_i32(c, &m->abort.rank);
    text_field(c, m->abort.text);
}

static void averages_field(struct cursor *c, struct wire_msg *m)
{
    wire_partial_field(c, m);
    text_field(c, m->partial.text);
}

static void blocked_field(struct cursor *c, struct wire_msg *m)
{
    cursor_flag(c, &m->blocked.votes);
    cursor_u32(c, &m->blocked.age_ms);
}

static void ready_field(struct cursor *c, struct wire_msg *m)
{
    cursor_flag(c, &m->ready.late);
}

/* NULL: round and epoch say it all, or a list does. */
static void (*const fields[WIRE_TYPE_COUNT])(struct cursor *,
                                             struct wire_msg *) = {
    [WIRE_HELLO] = hello_field,         [WIRE_WELCOME] = wire_welcome_field,
    [WIRE_VOTE] = vote_field,           [WIRE_ANSWER] = vote_field,
    [WIRE_SUSPECT] = fault_field,       [WIRE_REFRESH] = fault_field,
    [WIRE_DONATE] = result_field,       [WIRE_RESULT] = result_field,
    [WIRE_FLUSH] = dispute_field,       [WIRE_FLUSHED] = dispute_field,
    [WIRE_VERDICT] = dispute_field,     [WIRE_ABORT] = abort_field,
    [WIRE_EVICT] = abort_field,         [WIRE_PROPOSE] = view_field,
    [WIRE_INSTALL] = view_field,        [WIRE_SYNC] = sync_field,
    [WIRE_SYNCED] = sync_field,         [WIRE_STATE] = sync_field,
    [WIRE_PROBE] = probe_field,         [WIRE_OFFER] = offer_field,
    [WIRE_OFFERS_GET] = offer_field,    [WIRE_OFFERS] = offer_field,
    [WIRE_DIAL_REQUEST] = call_field,   [WIRE_WAITING] = waiting_field,
    [WIRE_STATUS_GET] = status_field,   [WIRE_STATUS] = status_field,
    [WIRE_PARTIAL] = averages_field,    [WIRE_COVERAGE] = averages_field,
    [WIRE_SAMPLES] = samples_field,     [WIRE_READY] = ready_field,
    [WIRE_RELAY] = relay_field,         [WIRE_RESUME] = wire_resume_field,
    [WIRE_RESUMED] = wire_resume_field, [WIRE_KEEP] = wire_keep_field,
    [WIRE_KEPT] = wire_keep_field,      [WIRE_KEEP_GET] = wire_keep_field,
    [WIRE_CLAIM] = wire_keep_field,     [WIRE_BLOCKED] = blocked_field,
    [WIRE_LEAVE] = leave_field,
};

static void wire_fields(struct cursor *c, struct wire_msg *m)
{
    cursor_u32(c, &m->round);
    cursor_u32(c, &m->epoch);
    PCCL_ASSERT(m->type < WIRE_TYPE_COUNT);
    if (fields[m->type]) fields[m->type](c, m);
}

/* One list: its count, then its items. When decoding, items go to `store`, and
 * a count is limited by the bytes that follow. */
#define WIRE_LIST(name, type, count_max, item_field)                           \
    static void name##_list(struct cursor *c, uint32_t *count,                 \
                            const type **list, type *store)                    \
    {                                                                          \
        cursor_u32(c, count);                                                  \
        cursor_limit(c, *count, (count_max) + 1);                              \
        if (c->failed) *count = 0;                                             \
        for (uint32_t i = 0; i < *count; i++) {                                \
            type item;                                                         \
            if (c->in) memset(&item, 0, sizeof item);                          \
            if (!c->in) item = (*list)[i];                                     \
            item_field(c, &item);                                              \
            if (c->failed) break;                                              \
            if (c->in) store[i] = item;                                        \
        }                                                                      \
        if (c->in) *list = store;                                              \
    }
WIRE_LIST(ops, struct wire_op, WIRE_OPS_MAX, op_field)
WIRE_LIST(ids, uint64_t, PEERS_MAX, cursor_u64)
WIRE_LIST(order, uint16_t, PEERS_MAX, cursor_u16)
WIRE_LIST(edges, struct wire_edge, WIRE_EDGES_MAX, edge_field)
WIRE_LIST(waits, struct wire_wait, WIRE_WAITS_MAX, wait_field)
WIRE_LIST(relays, struct wire_relay, WIRE_RELAYS_MAX, relay_way_field)
WIRE_LIST(parts, struct wire_part, WIRE_PARTS_MAX, wire_part_field)
#undef WIRE_LIST

/* When decoding, the sets stay in the message. */
static void sets_list(struct cursor *c, struct wire_msg *m)
{
    cursor_u32(c, &m->set_count);
    cursor_u32(c, &m->set_size);
    cursor_limit(c, m->set_count, WIRE_SETS_MAX + 1);
    cursor_limit(c, m->set_size, WIRE_SET_SIZE + 1);
    if (!c->failed) cursor_raw(c, &m->sets, (size_t)m->set_count * m->set_size);
}

static void wire_body(struct cursor *c, struct wire_msg *m,
                      struct wire_store *store)
{
    wire_fields(c, m);
    uint16_t lists = shapes[m->type].lists;
/* In the order in which they stand in a message. */
#define LIST(flag, read, count, name)                                          \
    if (lists & (flag))                                                        \
        read(c, &m->count, &m->name, store ? store->name : NULL);
    LIST(LIST_OPS, ops_list, op_count, ops)
    if (lists & LIST_SETS) sets_list(c, m);
    LIST(LIST_IDS, ids_list, id_count, ids)
    LIST(LIST_MEMBERS, wire_members_list, member_count, members)
    LIST(LIST_ORDER, order_list, order_count, order)
    LIST(LIST_EDGES, edges_list, edge_count, edges)
    LIST(LIST_SITES, order_list, site_count, sites)
    LIST(LIST_WAITS, waits_list, wait_count, waits)
    LIST(LIST_RELAYS, relays_list, relay_count, relays)
    LIST(LIST_PARTS, parts_list, part_count, parts)
#undef LIST
}

static void header_field(struct cursor *c, uint16_t *magic, uint8_t *version,
                         uint8_t *type, uint32_t *size)
{
    cursor_u16(c, magic);
    cursor_u8(c, version);
    cursor_u8(c, type);
    cursor_u32(c, size);
}

size_t wire_encode(const struct wire_msg *msg, uint8_t *out)
{
    struct wire_msg m = *msg;
    struct cursor body = {.out = out + WIRE_HEADER_SIZE, .left = WIRE_BODY_MAX};
    wire_body(&body, &m, NULL);
    PCCL_ASSERT(!body.failed && body.done <= shapes[m.type].size_max);

    uint16_t magic = WIRE_MAGIC;
    uint8_t version = WIRE_VERSION;
    uint8_t type = (uint8_t)m.type;
    uint32_t size = (uint32_t)body.done;
    struct cursor head = {.out = out, .left = WIRE_HEADER_SIZE};
    header_field(&head, &magic, &version, &type, &size);
    return WIRE_HEADER_SIZE + body.done;
}

enum wire_status wire_decode(const uint8_t *in, size_t in_size,
                             struct wire_store *store, struct wire_msg *msg,
                             size_t *used)
{
    if (in_size < WIRE_HEADER_SIZE) return WIRE_MORE;
    uint16_t magic = 0;
    uint8_t version = 0;
    uint8_t type = 0;
    uint32_t size = 0;
    struct cursor head = {.in = in, .left = WIRE_HEADER_SIZE};
    header_field(&head, &magic, &version, &type, &size);
    if (magic != WIRE_MAGIC || version != WIRE_VERSION) return WIRE_BAD;
    if (type >= WIRE_TYPE_COUNT || !shapes[type].name) return WIRE_BAD;
    if (size > shapes[type].size_max) return WIRE_BAD;
    if (in_size - WIRE_HEADER_SIZE < size) return WIRE_MORE;

    memset(msg, 0, sizeof *msg);
    msg->type = (enum wire_type)type;
    struct cursor body = {.in = in + WIRE_HEADER_SIZE, .left = size};
    wire_body(&body, msg, store);
    if (body.failed || body.left != 0) return WIRE_BAD;
    *used = WIRE_HEADER_SIZE + size;
    return WIRE_OK;
}
