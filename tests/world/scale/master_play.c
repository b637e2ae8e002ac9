/* master_play.c - see master_play.h. */
#include "master_play.h"

#include "scale.h"

#include "../../../src/base/scope.h"
#include "../../../src/master/watch/run_status.h"
#include "../../../src/master/watch/stall.h"

#include <stdlib.h>
#include <string.h>

struct master *run;
pccl_ns run_now;
uint32_t play_calls;
static void *edges;

static void on_send(void *user, const uint32_t *links, uint32_t count,
                    const struct wire_msg *m)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    (void)user, (void)links, (void)count;
    (void)wire_encode(m, frame);
}

static void on_close(void *user, uint32_t link, const char *reason)
{
    (void)user, (void)link, (void)reason;
}

static void on_look(void *user, const struct wire_member *peer)
{
    (void)user, (void)peer;
}

static void on_status(void *user, uint32_t link, bool json)
{
    (void)user, (void)link, (void)json;
    stall_ask(run, true);
}

static bool on_search(void *user, const struct master_search *search)
{
    (void)user, (void)search;
    return false;
}

void play(enum master_event_type type, uint32_t link, const struct wire_msg *m)
{
    uint32_t row = type == MASTER_RECEIVED ? m->type : ROW_EVENTS + type;
    struct master_event e = {
        .type = type, .link = link, .now = run_now, .msg = m};
    uint64_t before = scale_steps;
    master_step(run, &e);
    cost_note(row, before);
}

bool play_is_member(uint32_t link)
{
    return run->peers[link].state == PEER_MEMBER;
}

void play_all(const struct wire_msg *m)
{
    for (uint32_t i = 0; i < run->link_end; i++)
        if (play_is_member(i)) play(MASTER_RECEIVED, i, m);
}

/* --------------------------------------------------------------- beginning */

static void hello(uint32_t link, uint32_t group, bool join)
{
    struct wire_msg m = {.type = WIRE_HELLO, .hello.group = group};
    m.hello.join = join;
    m.hello.self.hint = (int32_t)link;
    m.hello.self.host = 2 * ((uint64_t)link + 1);
    m.hello.self.addr =
        (struct wire_addr){.family = 4,
                           .ip = {10, 0, (uint8_t)(link >> 8), (uint8_t)link},
                           .port = (uint16_t)(link + 1)};
    play(MASTER_CONNECTED, link, NULL);
    play(MASTER_RECEIVED, link, &m);
}

void play_begin(const struct crowd *c)
{
    size_t size = bandwidth_size(PEERS_MAX);
    edges = calloc(1, size);
    run = calloc(1, sizeof *run);
    PCCL_ASSERT(edges && run);
    run_now = PCCL_S;
    struct master_config config = {.out = {.send = on_send,
                                           .close = on_close,
                                           .look = on_look,
                                           .status = on_status,
                                           .search = on_search},
                                   .edges =
                                       bandwidth_init(edges, size, PEERS_MAX),
                                   .deadline = 10 * PCCL_S,
                                   .quorum = c->members,
                                   .warn_after = PCCL_S,
                                   .relays = true,
                                   .key = {{1, 2}}};
    PCCL_ASSERT(master_init(run, &config));
    for (uint32_t i = 0; i < c->members; i++) hello(i, i % c->groups, false);
    play_ready(c);
    PCCL_ASSERT(master_count(run, PEER_MEMBER) == c->members);
}

/* Pairs 2k and 2k + 1 say that they have no link; without `cuts` nobody. */
void play_ready(const struct crowd *c)
{
    for (int rounds = 0; rounds < 12; rounds++) {
        bool any = false;
        for (uint32_t i = 0; i < run->link_end; i++) {
            struct master_peer *p = &run->peers[i];
            if (!p->proposed || p->ready) continue;
            uint64_t other = run->peers[i ^ 1].info.id;
            struct wire_msg m = {.type = WIRE_READY,
                                 .round = run->groups[p->group].round,
                                 .ids = &other};
            m.id_count = i / 2 < c->cuts && rounds == 0 && run->founded;
            any = true;
            play(MASTER_RECEIVED, i, &m);
        }
        if (!any) return;
    }
}

/* ----------------------------------------------------------------- reports */

/* Each waits in an operation of its own, and has not called those of the next
 * ones; every other one waits for the next one in a message. */
static void waiting(const struct crowd *c, uint32_t link)
{
    static struct wire_wait waits[WIRE_WAITS_MAX];
    uint32_t count = 0, half = c->waits / 2;
    const struct master_group *g = &run->groups[run->peers[link].group];
    uint64_t next = run->peers[(link + 2) % c->members].info.id;
    memset(waits, 0, sizeof waits);
    if (link % 2 == 1)
        waits[count++] = (struct wire_wait){
            .kind = WAIT_SEND, .blocks = true, .peer = next, .age_ms = 20000};
    for (uint32_t i = 0; i < half; i++)
        waits[count++] = (struct wire_wait){.kind = WAIT_COLLECTIVE,
                                            .blocks = true,
                                            .tag = link + i * c->members,
                                            .age_ms = 20000};
    for (uint32_t i = 0; i < half && i < WIRE_WANTED_MAX; i++)
        waits[count++] = (struct wire_wait){.kind = WAIT_LACKS,
                                            .tag = (link + 1 + i) % c->members};
    struct wire_msg m = {.type = WIRE_WAITING,
                         .epoch = g->epoch,
                         .waits = waits,
                         .wait_count = count};
    play(MASTER_RECEIVED, link, &m);
}

static void measured(const struct crowd *c, uint32_t link)
{
    struct wire_edge list[WIRE_EDGES_MAX];
    struct wire_msg m = {.type = WIRE_MEASURED, .edges = list};
    uint32_t group = run->peers[link].group;
    for (; m.edge_count < WIRE_EDGES_MAX && m.edge_count < c->listed;
         m.edge_count++) {
        uint32_t other = (link + c->groups * (1 + m.edge_count)) % c->members;
        PCCL_ASSERT(run->peers[other].group == group);
        list[m.edge_count] = (struct wire_edge){
            .peer = run->peers[other].info.id, .rate = 1000000, .rtt = PCCL_MS};
    }
    play(MASTER_RECEIVED, link, &m);
}

static void dials(const struct crowd *c, uint32_t link)
{
    struct wire_msg m = {.type = WIRE_DIAL_REQUEST};
    m.call.peer = run->peers[(link + c->groups) % c->members].info.id;
    play(MASTER_RECEIVED, link, &m);
}

void play_reports(const struct crowd *c)
{
    struct wire_msg beat = {.type = WIRE_HEARTBEAT};
    struct wire_msg samples = {.type = WIRE_SAMPLES};
    struct wire_msg offer = {.type = WIRE_OFFER, .offer.on = true};
    samples.samples.count = 1;
    samples.samples.target = c->members;
    for (uint32_t i = 0; i < c->members; i++) {
        waiting(c, i);
        measured(c, i);
        dials(c, i);
    }
    play_all(&beat);
    play_all(&samples);
    play_all(&offer);
    struct wire_msg get = {.type = WIRE_OFFERS_GET};
    uint32_t link = master_free_link(run);
    play(MASTER_CONNECTED, link, NULL);
    play(MASTER_RECEIVED, link, &get);
    get.type = WIRE_STATUS_GET;
    play(MASTER_RECEIVED, link, &get);
    play(MASTER_CLOSED, link, NULL);
    run_now += 2 * PCCL_S;
    play(MASTER_TICK, 0, NULL);
    for (uint32_t i = 0; i < c->members; i++) waiting(c, i);
    play_status();
    play(MASTER_SLEPT, 0, NULL);
    play(MASTER_QUORUM, 0, NULL);
    /* Half of them are silent. */
    run_now += 4 * PCCL_S;
    for (uint32_t i = 0; i < c->members; i += 2)
        play(MASTER_RECEIVED, i, &beat);
    play(MASTER_TICK, 0, NULL);
    play_status();
    play_all(&beat);
}

static void status(uint32_t row, void (*write)(const struct status_source *s,
                                               struct growing_text *out))
{
    static struct run_events events;
    static struct run_history history;
    static uint64_t noted[NOTE_KIND_COUNT];
    struct status_source s = {.machine = run,
                              .events = &events,
                              .history = &history,
                              .noted = noted,
                              .address = "host"};
    struct growing_text out = {0};
    uint64_t before = scale_steps;
    write(&s, &out);
    cost_note(row, before);
    text_free(&out);
}

static void json(const struct status_source *s, struct growing_text *out)
{
    size_t some, history;
    run_status_json(s, out, &some, &history);
}

void play_status(void)
{
    status(ROW_STATUS_TEXT, run_status_text);
    status(ROW_STATUS_JSON, json);
    status(ROW_METRICS, run_metrics);
}

/* ------------------------------------------------------------------ rounds */

/* Those that run in each member of a view: number i is in the scope of itself
 * and one of the next ones, and has its own tag. */
static void list(const struct crowd *c, uint32_t link)
{
    static struct wire_op ops[WIRE_OPS_MAX];
    static uint8_t sets[WIRE_SETS_MAX * WIRE_SET_SIZE];
    const struct master_peer *p = &run->peers[link];
    const struct master_group *g = &run->groups[p->group];
    struct wire_msg m = {.type = WIRE_FLUSHED,
                         .round = g->round,
                         .epoch = g->epoch,
                         .ops = ops,
                         .sets = sets,
                         .set_size = (g->table.world + 7) / 8};
    memset(sets, 0, sizeof sets);
    for (uint32_t k = 1; k <= c->ops; k++) {
        uint32_t at = (link + k * c->groups) % c->members;
        const struct master_peer *other = &run->peers[at];
        uint64_t pair[] = {p->info.id, other->info.id};
        if (at == link || !play_is_member(at)) continue;
        ops[m.op_count++] = (struct wire_op){.scope = scope_number(pair, 2),
                                             .tag = link * 4096 + k,
                                             .state = OP_RUNNING};
        uint8_t *set = sets + (size_t)m.set_count++ * m.set_size;
        set[p->rank / 8] |= (uint8_t)(1u << p->rank % 8);
        set[other->rank / 8] |= (uint8_t)(1u << other->rank % 8);
    }
    play(MASTER_RECEIVED, link, &m);
}

/* The operations that it has launched run; of the others it has returned every
 * second one, and gives its result. */
static void answer(uint32_t link)
{
    const struct master_peer *p = &run->peers[link];
    const struct master_table *t = &run->groups[p->group].table;
    while (p->asked != MASTER_NO_OP) {
        struct wire_op op = t->ops[p->asked].op;
        bool own = op.tag / 4096 == link, has = op.tag % 2 == 0;
        op.state = own ? OP_RUNNING : has ? OP_RETURNED : OP_NOT_LAUNCHED;
        op.donor = !own && has;
        struct wire_msg m = {.type = WIRE_REPLY,
                             .round = run->groups[p->group].round,
                             .ops = &op,
                             .op_count = 1};
        play(MASTER_RECEIVED, link, &m);
    }
}

static void give(const struct master_op *op, uint32_t round)
{
    struct wire_msg m = {.type = WIRE_RESULT, .round = round};
    if (!op->commit || op->relayed) return;
    m.result.scope = op->op.scope;
    m.result.tag = op->op.tag;
    m.result.seq = op->op.seq;
    play(MASTER_RECEIVED, op->donor, &m);
}

static void round_of(const struct crowd *c)
{
    for (uint32_t i = 0; i < run->link_end; i++) {
        const struct master_peer *p = &run->peers[i];
        if (play_is_member(i) && run->groups[p->group].phase == GROUP_FLUSHING)
            list(c, i);
    }
    for (uint32_t i = 0; i < run->link_end; i++) {
        const struct master_peer *p = &run->peers[i];
        if (play_is_member(i) && run->groups[p->group].phase == GROUP_ASKING)
            answer(i);
    }
    play(MASTER_TICK, 0, NULL);
    play_status();
    for (uint32_t k = 0; k < run->group_count; k++) {
        const struct master_group *g = &run->groups[run->group_list[k]];
        for (uint32_t i = 0;
             g->phase == GROUP_DONATING && i < g->table.op_count; i++)
            give(&g->table.ops[i], g->round);
    }
    for (int i = 0; i < 12 && !master_all_open(run); i++) play_ready(c);
}

static void settle(const struct crowd *c)
{
    for (int i = 0; i < 12 && !master_all_open(run); i++) round_of(c);
    PCCL_ASSERT(master_all_open(run));
}

static void fault(const struct crowd *c, enum wire_type type, uint8_t cause,
                  uint32_t other)
{
    struct wire_msg m = {.type = type, .epoch = run->groups[0].epoch};
    m.fault.cause = cause;
    m.fault.peer = run->peers[other].info.id;
    m.fault.tag = c->groups;
    play(MASTER_RECEIVED, 0, &m);
}

void play_loss(const struct crowd *c)
{
    uint32_t away = c->groups; /* in the same group */
    fault(c, WIRE_SUSPECT, 0, away);
    settle(c);
    fault(c, WIRE_REFRESH, REFRESH_MISMATCH, away);
    settle(c);
    fault(c, WIRE_REFRESH, REFRESH_UNREACHABLE, 2 * away);
    settle(c);
    struct wire_msg blocked = {.type = WIRE_BLOCKED, .blocked.age_ms = 60000};
    for (uint32_t i = 0; i < c->members; i++) {
        blocked.epoch = run->groups[run->peers[i].group].epoch;
        play(MASTER_RECEIVED, i, &blocked);
    }
    settle(c);
    play(MASTER_CLOSED, c->members - 1, NULL);
    settle(c);
    struct wire_msg leave = {.type = WIRE_LEAVE};
    play(MASTER_RECEIVED, c->members - 2, &leave);
    settle(c);
}

static void vote(enum vote_kind kind)
{
    struct wire_msg m = {.type = WIRE_VOTE, .round = ++play_calls};
    m.vote.kind = (uint8_t)kind;
    for (uint32_t i = 0; i < run->link_end; i++) {
        if (!play_is_member(i)) continue;
        m.epoch = run->groups[run->peers[i].group].epoch;
        play(MASTER_RECEIVED, i, &m);
    }
}

void play_votes(const struct crowd *c)
{
    vote(VOTE_PENDING);
    for (uint32_t i = 0; i < c->newcomers; i++)
        hello(run->link_end, i % c->groups, true);
    play_status();
    vote(VOTE_PENDING);
    vote(VOTE_UPDATE);
    settle(c);
    PCCL_ASSERT(master_count(run, PEER_REGISTERED) == 0);
}

/* ---------------------------------------------------------------- the end */

void play_end(const struct crowd *c)
{
    struct master_event e = {
        .type = MASTER_EXPELLED, .now = run_now, .link = 1};
    uint64_t before = scale_steps;
    e.reason = "as the operator wishes";
    master_step(run, &e);
    cost_note(ROW_EVENTS + MASTER_EXPELLED, before);
    settle(c);
    e = (struct master_event){.type = MASTER_EVIDENCE, .now = run_now, .id = 3};
    before = scale_steps;
    master_step(run, &e);
    cost_note(ROW_EVENTS + MASTER_EVIDENCE, before);
    struct wire_msg relay = {.type = WIRE_RELAY};
    uint32_t link = master_free_link(run);
    play(MASTER_CONNECTED, link, NULL);
    play(MASTER_RECEIVED, link, &relay);
    struct wire_msg abort = {.type = WIRE_ABORT};
    play(MASTER_RECEIVED, 0, &abort);
    master_free(run);
    free(run);
    free(edges);
}
