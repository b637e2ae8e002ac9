/* master_say.c - see master_say.h. */
#include "master_say.h"

#include "../../src/base/arguments.h"
#include "../../src/base/dtype.h"
#include "../../src/base/scope.h"
#include "../../src/master/coverage/coverage.h"

/* The round of that place, from the last one on; NULL: there is none. */
static struct coverage_round *some_round(const struct master_group *g,
                                         uint32_t place)
{
    uint32_t count = 0;
    for (struct coverage_round *r = g->averages; r; r = r->next) count++;
    if (count == 0) return NULL;
    struct coverage_round *r = g->averages;
    for (uint32_t i = count - 1 - place % count; i > 0; i--) r = r->next;
    return r;
}

static void fill_call(const struct master_peer *p, struct fuzz_input *in,
                      struct wire_msg *msg)
{
    uint8_t bits = fuzz_u8(in);
    uint8_t odd = fuzz_u8(in);
    msg->partial.tag = bits & 3;
    if (odd >= 128) msg->partial.tag = odd; /* many tags */
    msg->partial.version = p->average_calls + (odd == 1 ? 0 : 1);
    msg->partial.count = 64u + (odd == 2);
    msg->partial.dtype = odd == 3 ? DTYPE_F32 : 0;
    msg->partial.redop = odd == 4 ? 1 : odd == 5 ? 2 : 0;
    msg->partial.weight = odd == 6 ? 0 : 1 + bits;
    msg->partial.deadline_ms = odd == 7 ? 0 : odd == 8 ? UINT32_MAX : 80;
    msg->partial.gather_ms = odd == 9 ? 100 : bits & 4 ? 8 : 0;
    msg->partial.evict_after = bits & 8 ? 1 : 0;
    if (odd == 10) msg->partial.count = UINT64_MAX;
    if (odd == 11) msg->partial.count = 0;
}

/* The part that the member owns, and who has called. */
static void fill_folded(const struct coverage_round *r, uint32_t self,
                        uint8_t bits, struct wire_msg *msg, uint8_t *set)
{
    for (uint32_t i = 0; i < r->part_count; i++)
        if (r->parts[i].owner == self) msg->partial.part = i;
    if (bits >= 240) msg->partial.part = bits % 4;
    *set = bits >= 128 ? bits : 0;
    for (uint32_t i = 0; i < r->member_count && i < 8; i++)
        if (bits < 192 && r->members[i].called) *set |= (uint8_t)(1u << i);
    msg->set_count = msg->set_size = 1;
    msg->sets = set;
}

static void fill_holds(const struct coverage_round *r, uint8_t bits,
                       struct wire_msg *msg, uint64_t *ids)
{
    for (uint32_t i = 0; i < r->part_count && i < PARTIAL_IDS / 2; i++) {
        if (bits >= 128 && bits >> i & 1) continue;
        ids[msg->id_count++] = bits == 255 ? 1000 : i;
        ids[msg->id_count++] = r->number + (bits == 254);
    }
}

void master_partial_fill(const struct master *m, uint32_t link,
                         struct fuzz_input *in, struct wire_msg *msg,
                         uint64_t ids[PARTIAL_IDS], uint8_t *set)
{
    static const uint8_t words[] = {
        PARTIAL_CALL,  PARTIAL_CALL,  PARTIAL_FOLDED, PARTIAL_FOLDED,
        PARTIAL_HOLDS, PARTIAL_HOLDS, PARTIAL_FAILED};
    const struct master_peer *p = &m->peers[link];
    uint8_t what = fuzz_u8(in);
    msg->type = WIRE_PARTIAL;
    msg->partial.word = words[what % ARRAY_COUNT(words)];
    if (msg->partial.word == PARTIAL_CALL) {
        fill_call(p, in, msg);
        return;
    }
    uint8_t bits = fuzz_u8(in);
    struct coverage_round *r = some_round(&m->groups[p->group], what / 32);
    if (!r) return;
    const struct coverage_member *c = coverage_find(m, r, link);
    uint32_t self = c ? (uint32_t)(c - r->members) : 0;
    msg->partial.tag = r->tag;
    msg->partial.number = r->number;
    /* The data are those of the round: equal for all. */
    msg->partial.hash = r->number + (bits == 255);
    if (msg->partial.word == PARTIAL_FOLDED)
        fill_folded(r, self, bits, msg, set);
    if (msg->partial.word == PARTIAL_HOLDS) fill_holds(r, bits, msg, ids);
}

/* A text, and numbers, which are compared before the rest or after it. */
static uint32_t fill_named(struct fuzz_input *in, uint8_t *bytes)
{
    static uint64_t values[ARGUMENT_VALUES_MAX + 8];
    struct arguments list = {.bytes = bytes};
    uint8_t how = fuzz_u8(in);
    char text[4] = {'a', 'b', (char)('c' + (how >> 6)), '\0'};
    size_t count = how & 32 ? 3 : 1;
    if (how & 8) count = ARRAY_COUNT(values);
    values[how >> 6 & 1] = fuzz_u8(in);
    values[ARRAY_COUNT(values) - 1] = fuzz_u8(in);
    if (how & 1) arguments_text(&list, how & 2, "mode", text);
    if (how & 4) arguments_values(&list, how & 16, "shape", values, count);
    return list.size;
}

void master_args_fill(struct fuzz_input *in, uint8_t coll,
                      struct wire_args *args)
{
    static uint8_t named[ARGUMENTS_SIZE];
    args->coll = coll;
    args->dtype = fuzz_u8(in) % 12;
    args->redop = fuzz_u8(in) % 5;
    args->quant = fuzz_u8(in) % 3;
    args->root = fuzz_u8(in);
    args->count = fuzz_u8(in);
    args->sends = fuzz_u8(in);
    args->recvs = fuzz_u8(in);
    args->digest = fuzz_u8(in);
    args->named = named;
    args->named_size = fill_named(in, named);
}

void master_relay_fill(const struct master *m, struct fuzz_input *in,
                       struct wire_msg *msg)
{
    uint8_t bits = fuzz_u8(in);
    const struct master_group *g = &m->groups[bits >> 4 & 1];
    msg->type = WIRE_RELAY;
    msg->relay.key = m->key;
    if (bits == 255) msg->relay.key.word[0]++;
    msg->relay.listens = bits & 1;
    msg->relay.from = 1 + fuzz_below(in, 8);
    msg->relay.to = 1 + fuzz_below(in, 8);
    if (g->edge_count == 0 || bits >= 128) return;
    const struct master_edge *e = &g->edges[bits / 2 % g->edge_count];
    msg->relay.from = bits & 1 ? e->a : e->b;
    msg->relay.to = bits & 1 ? e->b : e->a;
}

/* ------------------------------------- what fits what is going on */

static uint32_t fill_ops(struct fuzz_input *in, struct wire_op *ops,
                         uint64_t scope)
{
    uint32_t count = fuzz_below(in, 4);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t bits = fuzz_u8(in);
        ops[i] = (struct wire_op){.tag = bits & 1,
                                  .seq = bits >> 1 & 1,
                                  .scope = bits >> 2 & 1 ? scope : 0,
                                  .state = bits >> 4 & 3,
                                  .donor = bits >> 7};
    }
    return count;
}

/* A set of ranks and the number of that scope. */
static uint64_t fill_set(const struct master *m, uint32_t group,
                         struct fuzz_input *in, struct wire_msg *msg,
                         uint8_t *bits)
{
    uint64_t ids[SAY_LINKS];
    uint32_t count = 0;
    *bits = fuzz_u8(in);
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        bool member = p->state == PEER_MEMBER || p->state == PEER_DEAD;
        if (!member || p->group != group || p->rank >= SAY_LINKS) continue;
        if (*bits >> p->rank & 1 && count < SAY_LINKS)
            ids[count++] = p->info.id;
    }
    msg->sets = bits;
    msg->set_count = msg->set_size = 1;
    return count > 0 ? scope_number(ids, count) : 1;
}

static void fill_list(const struct master *m, uint32_t group,
                      struct fuzz_input *in, struct wire_msg *msg,
                      struct wire_op *ops, uint8_t *set)
{
    uint8_t bits = fuzz_u8(in);
    uint64_t scope = bits & 1 ? fill_set(m, group, in, msg, set) : ~0ull;
    if (msg->type == WIRE_REPLY && bits & 2) msg->round = 0;
    msg->op_count = fill_ops(in, ops, scope);
    if (msg->type != WIRE_FLUSHED) return;
    msg->flushed.traits = bits >> 2 & 3;
    msg->flushed.described = bits & 16;
    master_args_fill(in, bits >> 5 & 3, &msg->flushed.args);
}

static void fill_sync(const struct master *m, uint32_t group, uint8_t bits,
                      struct fuzz_input *in, struct wire_msg *msg,
                      uint64_t *ids)
{
    if (msg->type == WIRE_SYNC) {
        msg->sync.revision = bits >> 4 & 1;
        msg->sync.strategy = fuzz_u8(in) % SYNC_STRATEGY_COUNT;
        msg->sync.structure = bits >> 5 & 1;
        msg->sync.content = bits >> 6;
        return;
    }
    msg->sync.id = m->groups[group].sync_id - (bits & 4 ? 1 : 0);
    msg->sync.revision = bits >> 4 & 1;
    msg->sync.role = bits >> 5 & 1 ? SYNC_COMPLETE : SYNC_NO_STATE;
    msg->sync.text[0] = bits >> 6 & 1 ? 't' : '\0';
    msg->id_count = fuzz_below(in, 5);
    for (uint32_t i = 0; i < msg->id_count; i++)
        ids[i] = i % 2 == 0 ? 1 + fuzz_below(in, SAY_LINKS) : fuzz_u8(in);
}

static void fill_edges(uint8_t bits, struct fuzz_input *in,
                       struct wire_msg *msg, struct wire_edge *edges)
{
    if (bits >> 4 & 1) msg->round = 0;
    msg->edge_count = 1 + (bits >> 5 & 1);
    for (uint32_t i = 0; i < msg->edge_count; i++)
        edges[i] = (struct wire_edge){
            .peer = 1 + fuzz_below(in, SAY_LINKS),
            .rate = 1000u * fuzz_u8(in),
            .rtt = 1000u * fuzz_u8(in),
            .kind = (uint8_t)fuzz_below(in, EDGE_KIND_COUNT)};
}

/* Its fixed fields. */
static void fill(const struct master *m, uint8_t bits, struct fuzz_input *in,
                 struct wire_msg *msg)
{
    static const uint8_t bytes[4];
    switch (msg->type) {
    case WIRE_HELLO:
        msg->hello.group = bits >> 4 & 1;
        msg->hello.join = bits >> 5 & 1;
        msg->hello.stays = fuzz_u8(in) & 1;
        msg->hello.fetched = msg->hello.join && (bits & 1);
        msg->hello.revision = bits & 7;
        msg->hello.max_stale = bits & 1;
        msg->hello.self.hint = (int32_t)(bits >> 6) - 1;
        msg->hello.self.host = 2 + 2 * (uint64_t)fuzz_below(in, 3);
        return;
    case WIRE_OFFER:
        msg->offer.on = bits & 15;
        msg->offer.revision = bits >> 4;
        msg->offer.guests = bits & 3;
        return;
    case WIRE_OFFERS_GET:
        msg->offer.group = bits >> 4 & 1;
        return;
    case WIRE_VOTE:
        msg->vote.kind = (bits >> 4) % VOTE_KIND_COUNT;
        return;
    case WIRE_SUSPECT:
    case WIRE_REFRESH:
        msg->fault.cause = (uint8_t)(fuzz_u8(in) % REFRESH_CAUSE_COUNT);
        msg->fault.tag = bits >> 6 & 1;
        msg->fault.seq = bits >> 7 & 1;
        msg->fault.peer = 1 + fuzz_below(in, SAY_LINKS);
        return;
    case WIRE_RESULT:
        msg->result.tag = bits >> 4 & 1;
        msg->result.seq = bits >> 5 & 1;
        msg->result.bytes = bytes;
        msg->result.size = bits >> 6;
        return;
    case WIRE_DIAL_REQUEST:
        msg->call.peer = 1 + fuzz_below(in, SAY_LINKS);
        msg->call.dials = bits;
        return;
    case WIRE_READY:
        msg->ready.late = bits >> 7;
        return;
    case WIRE_ABORT:
        msg->abort.code = bits;
        return;
    case WIRE_SAMPLES:
        msg->samples.step = bits >> 4 & 3;
        msg->samples.count = fuzz_u8(in);
        if (msg->samples.count == 255) msg->samples.count = UINT64_MAX;
        msg->samples.target = 16u * (bits >> 6);
        return;
    default:
        (void)m;
        return;
    }
}

/* Operations that are listed elsewhere too, calls, answers, a silent link. */
static void fill_waits(const struct master *m, uint32_t group,
                       struct fuzz_input *in, struct wire_msg *msg,
                       struct wire_wait *waits, struct wire_op *ops,
                       uint8_t *set, uint64_t *ids)
{
    fill_list(m, group, in, msg, ops, set);
    msg->wait_count = msg->op_count < 3 ? msg->op_count : 3;
    for (uint32_t i = 0; i < msg->wait_count; i++) {
        uint8_t bits = fuzz_u8(in);
        waits[i] = (struct wire_wait){.kind = bits % WAIT_KIND_COUNT,
                                      .blocks = bits & 0x40,
                                      .scope = ops[i].scope,
                                      .tag = ops[i].tag,
                                      .seq = ops[i].seq,
                                      .peer = bits >> 3 & 7,
                                      .age_ms = bits};
    }
    msg->op_count = 0;
    msg->id_count = 2;
    ids[0] = 1 + fuzz_below(in, SAY_LINKS);
    ids[1] = 100;
}

void master_say_make(const struct master *m, uint32_t link,
                     struct fuzz_input *in, struct say_room *room,
                     struct wire_msg *msg)
{
    static const enum wire_type types[] = {
        WIRE_HELLO,   WIRE_VOTE,   WIRE_SUSPECT,      WIRE_REFRESH,
        WIRE_FLUSHED, WIRE_REPLY,  WIRE_READY,        WIRE_LEAVE,
        WIRE_ABORT,   WIRE_SYNC,   WIRE_SYNCED,       WIRE_MEASURED,
        WIRE_BLOCKED, WIRE_RESULT, WIRE_DIAL_REQUEST, WIRE_HEARTBEAT,
        WIRE_FLUSHED, WIRE_READY,  WIRE_VOTE,         WIRE_WAITING,
        WIRE_SAMPLES, WIRE_OFFER,  WIRE_OFFERS_GET};
    const struct master_peer *p = &m->peers[link];
    const struct master_group *g = &m->groups[p->group];
    *room = (struct say_room){.ids = {0}};
    *msg = (struct wire_msg){.ops = room->ops,
                             .ids = room->ids,
                             .edges = room->edges,
                             .sets = room->set,
                             .waits = room->waits};
    msg->type = types[fuzz_below(in, ARRAY_COUNT(types))];
    uint8_t bits = fuzz_u8(in);
    bool asks = msg->type == WIRE_WAITING && p->state == PEER_CONNECTED;
    if (asks) msg->type = WIRE_STATUS_GET;
    if (asks) msg->status.json = bits & 1;
    msg->round = g->round - ((bits & 3) == 3 ? 1 : 0);
    if (msg->type == WIRE_VOTE || msg->type == WIRE_SYNC)
        msg->round = p->call + ((bits & 3) == 3 ? 0 : 1);
    msg->epoch = g->epoch - ((bits >> 2 & 3) == 3 ? 1 : 0);
    fill(m, bits, in, msg);
    if (msg->type == WIRE_FLUSHED || msg->type == WIRE_REPLY)
        fill_list(m, p->group, in, msg, room->ops, room->set);
    if (msg->type == WIRE_BLOCKED) {
        msg->blocked.votes = fuzz_u8(in) & 1;
        msg->blocked.age_ms = fuzz_u8(in);
    }
    if (msg->type == WIRE_SYNC || msg->type == WIRE_SYNCED)
        fill_sync(m, p->group, bits, in, msg, room->ids);
    if (msg->type == WIRE_MEASURED) fill_edges(bits, in, msg, room->edges);
    if (msg->type == WIRE_WAITING)
        fill_waits(m, p->group, in, msg, room->waits, room->ops, room->set,
                   room->ids);
    if (msg->type == WIRE_READY && (bits >> 4 & 7) == 7) {
        msg->id_count = 1;
        room->ids[0] = 1 + fuzz_below(in, SAY_LINKS);
    }
}

/* ------------------------------------------------------ whole crowds */

struct crowd_mood crowd_mood(uint8_t bits, struct fuzz_input *in)
{
    struct crowd_mood mood = {.votes = bits & 1,
                              .optimizes = bits & 2,
                              .measures = bits & 4,
                              .late = bits & 8,
                              .group = bits >> 5 & 1};
    mood.hosts = fuzz_u8(in) % 8;
    mood.bad = fuzz_u8(in);
    mood.seed = fuzz_u8(in);
    mood.rate = fuzz_u8(in);
    return mood;
}

/* Both ends see the same. */
static bool is_bad(const struct crowd_mood *mood, uint64_t a, uint64_t b)
{
    uint64_t low = a < b ? a : b, high = a < b ? b : a;
    uint64_t mixed = (low * 0x9e3779b9u + high * 0x85ebca6bu + mood->seed) *
                     0xc2b2ae3d27d4eb4fu;
    return (mixed >> 40 & 255) < mood->bad;
}

/* The next member of its group from that link on, and not itself. */
static const struct master_peer *other_of(const struct master *m, uint32_t self,
                                          uint32_t *from)
{
    while (*from < m->link_end) {
        const struct master_peer *p = &m->peers[(*from)++];
        bool known = p->state == PEER_MEMBER || p->state == PEER_REGISTERED;
        if (known && p != &m->peers[self] && p->group == m->peers[self].group)
            return p;
    }
    return NULL;
}

static void say_ready(const struct master *m, uint32_t link,
                      const struct crowd_mood *mood, struct crowd_room *room,
                      struct wire_msg *msg)
{
    const struct master_peer *other;
    uint64_t self = m->peers[link].info.id;
    msg->type = WIRE_READY;
    msg->ready.late = mood->late;
    for (uint32_t at = 0; (other = other_of(m, link, &at));)
        if (is_bad(mood, self, other->info.id) &&
            msg->id_count < WIRE_EDGES_MAX)
            room->ids[msg->id_count++] = other->info.id;
}

static void say_measured(const struct master *m, uint32_t link,
                         const struct crowd_mood *mood, struct crowd_room *room,
                         struct wire_msg *msg)
{
    const struct master_peer *other;
    msg->type = WIRE_MEASURED;
    msg->round = m->peers[link].probe;
    for (uint32_t at = 0; (other = other_of(m, link, &at));) {
        if (msg->round != 0 && other != &m->peers[m->peers[link].probe_with])
            continue;
        if (msg->edge_count == WIRE_EDGES_MAX) break;
        room->edges[msg->edge_count++] = (struct wire_edge){
            .peer = other->info.id,
            .rate = (1u + mood->rate) * (1000u + 100u * other->rank),
            .rtt = 1000u * (1u + mood->seed)};
    }
}

static void say_hello(uint32_t link, const struct crowd_mood *mood,
                      struct wire_msg *msg)
{
    msg->type = WIRE_HELLO;
    msg->round = msg->epoch = 0;
    msg->hello.group = mood->group;
    msg->hello.self.host =
        mood->hosts > 0 ? 2 * (link % mood->hosts + 1u) : 2 * (link + 100u);
    msg->hello.self.hint = (int32_t)link;
}

bool master_say_due(const struct master *m, uint32_t link,
                    const struct crowd_mood *mood, struct crowd_room *room,
                    struct wire_msg *msg)
{
    const struct master_peer *p = &m->peers[link];
    const struct master_group *g = &m->groups[p->group];
    bool member = p->state == PEER_MEMBER;
    *msg = (struct wire_msg){.round = g->round,
                             .epoch = g->epoch,
                             .ids = room->ids,
                             .edges = room->edges};
    if (p->state == PEER_CONNECTED) {
        say_hello(link, mood, msg);
        return p->held == NULL;
    }
    if (!member && p->state != PEER_REGISTERED) return false;
    if (g->phase == GROUP_PROPOSED && p->proposed && !p->ready) {
        say_ready(m, link, mood, room, msg);
        return true;
    }
    if (member && g->phase == GROUP_FLUSHING && p->answer == ANSWER_DUE) {
        msg->type = WIRE_FLUSHED;
        return true;
    }
    if (member && (p->probe != 0 || mood->measures)) {
        say_measured(m, link, mood, room, msg);
        return msg->edge_count > 0;
    }
    uint8_t kind = mood->optimizes ? VOTE_OPTIMIZE : VOTE_UPDATE;
    bool votes = member && g->phase == GROUP_OPEN && !p->leaving &&
                 (mood->votes || mood->optimizes);
    if (!votes || p->voted[kind]) return false;
    msg->type = WIRE_VOTE;
    msg->vote.kind = kind;
    msg->round = p->call + 1;
    return true;
}
