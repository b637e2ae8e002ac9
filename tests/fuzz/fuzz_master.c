/* fuzz_master.c - any sequence of connections and messages, well-formed or
 * not, through the master: no assertion fails, everything it says can be
 * encoded, and when the last one has gone nothing is left. */
#include "fuzz.h"

#include "../../src/master/master.h"

#include <stdlib.h>
#include <string.h>

enum { LINKS = 6 };

struct universe {
    struct master *m;
    void *edges;
    bool open[MASTER_LINKS_MAX];
    bool searches; /* a ring is looked for, and an answer owed */
    uint32_t group, ticket;
    pccl_ns now;
};

static uint8_t frame[WIRE_FRAME_MAX];
static struct wire_store store;

static void send_effect(void *user, const uint32_t *links, uint32_t count,
                        const struct wire_msg *msg)
{
    static uint8_t sent[WIRE_FRAME_MAX];
    struct universe *u = user;
    assert(count > 0);
    for (uint32_t i = 0; i < count; i++) assert(u->open[links[i]]);
    (void)wire_encode(msg, sent);
}

static void close_effect(void *user, uint32_t link, const char *reason)
{
    struct universe *u = user;
    assert(u->open[link] && reason);
    u->open[link] = false;
}

static bool search_effect(void *user, const struct master_search *search)
{
    struct universe *u = user;
    u->searches = true;
    u->group = search->group;
    u->ticket = search->ticket;
    return true;
}

static void feed(struct universe *u, struct master_event event)
{
    event.now = u->now;
    master_step(u->m, &event);
}

static void receive(struct universe *u, uint32_t link, size_t size)
{
    struct wire_msg msg;
    size_t used;
    if (!u->open[link]) return;
    if (wire_decode(frame, size, &store, &msg, &used) != WIRE_OK) return;
    feed(u, (struct master_event){
                .type = MASTER_RECEIVED, .link = link, .msg = &msg});
}

static uint32_t fill_ops(struct fuzz_input *in, struct wire_op *ops)
{
    uint32_t count = fuzz_below(in, 4);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t bits = fuzz_u8(in);
        ops[i] = (struct wire_op){.tag = bits & 1,
                                  .seq = bits >> 1 & 1,
                                  .scope = bits >> 2 & 1 ? ~(uint64_t)0 : 0,
                                  .state = bits >> 4 & 3,
                                  .donor = bits >> 7};
    }
    return count;
}

/* A message that fits the present rounds more often than chance would. */
static void say(struct universe *u, struct fuzz_input *in, uint32_t link)
{
    static const uint8_t bytes[3];
    struct wire_op ops[4];
    uint64_t ids[4];
    struct wire_edge edges[2] = {{0}};
    struct wire_msg msg = {.ops = ops, .ids = ids, .edges = edges};
    msg.type = (enum wire_type)(1 + fuzz_below(in, WIRE_WELCOME - 1));
    uint8_t bits = fuzz_u8(in);
    msg.round = u->m->round_last - ((bits & 3) == 3 ? 1 : 0);
    const struct master_peer *p = &u->m->peers[link];
    msg.epoch = u->m->groups[p->group].epoch - ((bits >> 2 & 3) == 3 ? 1 : 0);
    switch (msg.type) {
    case WIRE_HELLO:
        msg.hello.group = bits >> 4 & 1;
        msg.hello.join = bits >> 5 & 1;
        msg.hello.self.hint = (int32_t)(bits >> 6) - 1;
        break;
    case WIRE_VOTE:
        msg.vote.kind = (bits >> 4) % VOTE_KIND_COUNT;
        break;
    case WIRE_SUSPECT:
    case WIRE_REFRESH:
        msg.fault.cause = (uint8_t)(fuzz_u8(in) % REFRESH_CAUSE_COUNT);
        msg.fault.tag = bits >> 6 & 1;
        msg.fault.peer = 1 + fuzz_below(in, LINKS);
        break;
    case WIRE_RESULT:
        msg.result.tag = bits >> 4 & 1;
        msg.result.seq = bits >> 5 & 1;
        msg.result.bytes = bytes;
        msg.result.size = bits >> 6;
        break;
    case WIRE_FLUSHED:
    case WIRE_REPLY:
        if (msg.type == WIRE_REPLY && (bits >> 4 & 1)) msg.round = 0;
        msg.op_count = fill_ops(in, ops);
        break;
    case WIRE_READY:
        msg.id_count = (bits >> 4 & 7) == 7 ? 1 : 0;
        ids[0] = 1 + fuzz_below(in, LINKS);
        break;
    case WIRE_SYNC:
        msg.sync.revision = bits >> 4 & 1;
        msg.sync.strategy = fuzz_u8(in) % SYNC_STRATEGY_COUNT;
        msg.sync.structure = bits >> 5 & 1;
        msg.sync.content = bits >> 6;
        break;
    case WIRE_SYNCED:
        msg.sync.id = u->m->round_last - fuzz_below(in, 3);
        msg.sync.revision = bits >> 4 & 1;
        msg.sync.role = bits >> 5 & 1 ? SYNC_COMPLETE : SYNC_NO_STATE;
        break;
    case WIRE_MEASURED:
        if (bits >> 4 & 1) msg.round = 0;
        msg.edge_count = 1 + (bits >> 5 & 1);
        for (uint32_t i = 0; i < msg.edge_count; i++)
            edges[i] = (struct wire_edge){
                .peer = 1 + fuzz_below(in, LINKS),
                .rate = 1000u * fuzz_u8(in),
                .rtt = 1000u * fuzz_u8(in),
                .kind = (uint8_t)fuzz_below(in, EDGE_KIND_COUNT)};
        break;
    default:
        break;
    }
    receive(u, link, wire_encode(&msg, frame));
}

static void act(struct universe *u, struct fuzz_input *in)
{
    uint8_t action = fuzz_u8(in);
    uint32_t link = action % LINKS;
    u->now += 1000 * (pccl_ns)fuzz_u8(in) * 1000;
    if (!u->open[link]) {
        u->open[link] = true;
        if (u->m->peers[link].state != PEER_FREE) { /* DEAD: still in a view */
            u->open[link] = false;
            return;
        }
        feed(u, (struct master_event){.type = MASTER_CONNECTED, .link = link});
        return;
    }
    switch (action / LINKS) {
    case 0:
        u->open[link] = false;
        feed(u, (struct master_event){.type = MASTER_CLOSED, .link = link});
        return;
    case 1:
        feed(u, (struct master_event){.type = MASTER_TICK});
        return;
    case 2:
        feed(u, (struct master_event){.type = MASTER_QUORUM,
                                      .quorum = fuzz_below(in, 4)});
        return;
    case 4: { /* an answer, if one is owed, or an old one */
        uint32_t odd = fuzz_below(in, 4);
        if (!u->searches) return;
        u->searches = odd == 0;
        feed(u, (struct master_event){.type = MASTER_SEARCHED,
                                      .group = u->group,
                                      .ticket = u->ticket - (odd == 0)});
        return;
    }
    case 3: { /* anything */
        size_t size = in->left < 64 ? in->left : 64;
        memcpy(frame, in->at, size);
        in->at += size;
        in->left -= size;
        receive(u, link, size);
        return;
    }
    default:
        say(u, in, link);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input in = {bytes, size};
    size_t edges_size = bandwidth_size(PEERS_MAX);
    struct universe u = {.m = calloc(1, sizeof *u.m),
                         .edges = calloc(1, edges_size)};
    assert(u.m && u.edges);
    struct master_config config = {
        .out = {.user = &u,
                .send = send_effect,
                .close = close_effect,
                .search = search_effect},
        .edges = bandwidth_init(u.edges, edges_size, PEERS_MAX),
        .deadline = PCCL_S,
        .quorum = 1 + fuzz_below(&in, 3)};
    master_init(u.m, &config);
    while (in.left > 0) act(&u, &in);

    for (uint32_t i = 0; i < MASTER_LINKS_MAX; i++) {
        if (!u.open[i]) continue;
        u.open[i] = false;
        feed(&u, (struct master_event){.type = MASTER_CLOSED, .link = i});
    }
    assert(master_count(u.m, PEER_FREE) == u.m->link_end);
    assert(master_next_tick(u.m) == PCCL_NEVER);
    free(u.edges);
    free(u.m);
    return 0;
}
