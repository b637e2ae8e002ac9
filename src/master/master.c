/* master.c - what each message begins, and what follows from the state after
 * every event. See master.h. */
#include "master.h"

#include "admission.h"
#include "coverage/coverage.h"
#include "grants.h"
#include "watch/peer_report.h"
#include "votes.h"

#include <string.h>

#define STATE_BIT(s) BIT(PEER_##s)

/* States in which a peer may send each message; zero: only the master sends
 * it. */
static const uint32_t may_send_in[WIRE_TYPE_COUNT] = {
    [WIRE_HELLO] = STATE_BIT(CONNECTED),
    [WIRE_VOTE] = STATE_BIT(MEMBER),
    [WIRE_SUSPECT] = STATE_BIT(MEMBER),
    [WIRE_REFRESH] = STATE_BIT(MEMBER),
    [WIRE_FLUSHED] = STATE_BIT(MEMBER),
    [WIRE_REPLY] = STATE_BIT(MEMBER),
    [WIRE_RESULT] = STATE_BIT(MEMBER),
    [WIRE_READY] = STATE_BIT(MEMBER) | STATE_BIT(REGISTERED),
    [WIRE_LEAVE] = STATE_BIT(MEMBER) | STATE_BIT(REGISTERED),
    [WIRE_ABORT] = STATE_BIT(MEMBER) | STATE_BIT(REGISTERED),
    [WIRE_SYNC] = STATE_BIT(MEMBER),
    [WIRE_SYNCED] = STATE_BIT(MEMBER),
    [WIRE_MEASURED] = STATE_BIT(MEMBER),
    [WIRE_BLOCKED] = STATE_BIT(MEMBER),
    [WIRE_DIAL_REQUEST] = STATE_BIT(MEMBER),
    [WIRE_HEARTBEAT] = STATE_BIT(MEMBER) | STATE_BIT(REGISTERED),
    [WIRE_WAITING] = STATE_BIT(MEMBER) | STATE_BIT(REGISTERED),
    [WIRE_SAMPLES] = STATE_BIT(MEMBER),
    [WIRE_STATUS_GET] = STATE_BIT(CONNECTED),
    [WIRE_OFFER] = STATE_BIT(MEMBER),
    [WIRE_OFFERS_GET] = STATE_BIT(CONNECTED),
    [WIRE_PARTIAL] = STATE_BIT(MEMBER),
    [WIRE_RELAY] = STATE_BIT(CONNECTED),
    [WIRE_RESUME] = STATE_BIT(CONNECTED) | STATE_BIT(MEMBER),
    [WIRE_KEEP] = STATE_BIT(CONNECTED),
    [WIRE_CLAIM] = STATE_BIT(CONNECTED) | STATE_BIT(MEMBER),
    [WIRE_KEPT] =
        STATE_BIT(CONNECTED) | STATE_BIT(REGISTERED) | STATE_BIT(MEMBER),
};

bool master_init(struct master *m, const struct master_config *config)
{
    m->out = config->out;
    m->deadline = config->deadline;
    m->quorum = config->quorum > 0 ? config->quorum : 1;
    m->peers_max = config->peers_max > 0 ? config->peers_max : PEERS_MAX;
    m->job = config->job;
    m->alone = config->alone;
    m->minimum = config->minimum;
    /* Nobody else says how many founders a coordinator alone waits for. */
    if (m->alone && m->minimum > m->quorum) m->quorum = m->minimum;
    m->warn_after = config->warn_after;
    m->key = config->key;
    succession_init(m, config);
    m->may_relay = config->relays;
    m->tokens = config->tokens;
    m->edges = config->edges;
    m->probe_bytes =
        config->probe_bytes > 0 ? config->probe_bytes : MASTER_PROBE_BYTES;
    m->small_world =
        config->small_world > 0 ? config->small_world : BANDWIDTH_FULL_MAX;
    m->probe_time =
        config->probe_time > 0 ? config->probe_time : MASTER_PROBE_TIME;
    return succession_begin(m, config->memory);
}

static void group_clear(struct master_group *g)
{
    round_ops_clear(g);
    dispute_end(g);
    coverage_clear(g);
}

void master_free(struct master *m)
{
    for (uint32_t i = 0; i < m->group_end; i++) group_clear(&m->groups[i]);
    m->edges = NULL; /* it outlives the master */
    for (uint32_t i = 0; i < m->link_end; i++) master_release(m, i);
    replicas_void(m);
    succession_end(m);
}

static uint32_t find_group(struct master *m, uint32_t number)
{
    uint32_t unused =
        0; /* the lowest unused number, and its place in the list */
    for (uint32_t i = 0; i < m->group_count; i++) {
        uint32_t group = m->group_list[i];
        if (m->groups[group].number == number) return group;
        unused += group == unused;
    }
    if (unused == GROUPS_MAX) return GROUPS_MAX;
    struct master_group *g = &m->groups[unused];
    group_clear(g);
    memset(g, 0, sizeof *g);
    g->used = true;
    g->number = number;
    if (unused >= m->group_end) m->group_end = unused + 1;
    memmove(m->group_list + unused + 1, m->group_list + unused,
            (m->group_count - unused) * sizeof m->group_list[0]);
    m->group_list[unused] = (uint16_t)unused;
    m->group_count++;
    return unused;
}

static void on_hello(struct master *m, uint32_t link,
                     const struct wire_msg *msg)
{
    struct master_peer *p = &m->peers[link];
    uint32_t known = master_count(m, PEER_MEMBER) +
                     master_count(m, PEER_REGISTERED) +
                     master_count(m, PEER_DEAD) + succession_missing(m);
    uint32_t group = find_group(m, msg->hello.group);
    if (known >= m->peers_max || group == GROUPS_MAX) {
        admission_full(m, link, known);
        return;
    }
    struct wire_addr seen = p->info.addr;
    p->info = msg->hello.self;
    p->info.id = ++m->id_last;
    if (p->info.addr.family == 0) {
        uint16_t port = p->info.addr.port;
        p->info.addr = seen;
        p->info.addr.port = port;
    }
    p->group = group;
    /* Rule M2d. */
    p->join = msg->hello.join && (m->founded || !m->alone);
    p->stays = msg->hello.stays;
    p->must_leave = msg->hello.must_leave;
    p->since = m->now;
    master_peer_move(m, link, PEER_REGISTERED);
    edges_add(m, link);

    struct wire_msg welcome = {.type = WIRE_WELCOME};
    welcome.welcome.id = p->info.id;
    welcome.welcome.key = m->key;
    welcome.welcome.deadline_ms = (uint32_t)(m->deadline / PCCL_MS);
    welcome.welcome.minimum = m->minimum;
    succession_welcome(m, &welcome);
    master_send(m, link, &welcome);
    struct master_note note = {.kind = NOTE_REGISTERED, .peer = p};
    master_note_send(m, &note);
    offers_hello(m, link, msg);
}

static void on_abort(struct master *m, uint32_t link,
                     const struct wire_msg *msg)
{
    struct master_note note = {
        .kind = NOTE_ABORTED, .peer = &m->peers[link], .code = msg->abort.code};
    if (m->peers[link].state == PEER_REGISTERED && m->peers[link].join) {
        master_drop(m, link, "it failed before it was accepted"); /* M3 */
        return;
    }
    master_note_send(m, &note);
    for (uint32_t i = 0; i < m->link_end; i++) {
        enum master_peer_state s = m->peers[i].state;
        if (s == PEER_MEMBER || s == PEER_REGISTERED)
            master_drop(m, i, "the run was aborted by one of its peers");
    }
}

/* A leave is a loss that waits for the flush, so that the leaver's knowledge of
 * operations in doubt is not lost (rule M7). */
static void on_leave(struct master *m, uint32_t link,
                     const struct wire_msg *msg)
{
    struct master_peer *p = &m->peers[link];
    struct master_group *g = &m->groups[p->group];
    if (p->state == PEER_REGISTERED) {
        m->out.close(m->out.user, link, "left before it was accepted");
        master_forget(m, link, false);
        return;
    }
    if (p->leaving) return;
    m->traits_left |= msg->leave.traits;
    master_leaves(m, link);
    g->samples.stale = true;
    m->left = true;
    bool waits = g->phase == GROUP_PROBING || g->phase == GROUP_SOLVING;
    if (g->phase == GROUP_OPEN || waits) {
        if (!g->restart) g->broken_at = m->now;
        g->restart = true;
    }
}

/* Rule P2P-10. Requests to a peer that is not a member are dropped. */
static void forward_dial_request(struct master *m, uint32_t link,
                                 const struct wire_msg *msg)
{
    const struct master_peer *p = &m->peers[link];
    uint32_t to = master_link_of(m, p->group, msg->call.peer);
    if (to == MASTER_NO_LINK || to == link || m->peers[to].state != PEER_MEMBER)
        return;
    struct wire_msg call = *msg;
    call.call.peer = p->info.id;
    master_send(m, to, &call);
}

/* Rule N12a. */
static void on_relay(struct master *m, uint32_t link,
                     const struct wire_msg *msg)
{
    if (!relays_take(m, msg)) {
        master_drop(m, link, "nobody is to be relayed so");
        return;
    }
    m->out.relay(m->out.user, link, msg);
    master_peer_move(m, link, PEER_FREE);
}

/* False: it was dropped. */
static bool may_send(struct master *m, uint32_t link,
                     const struct wire_msg *msg)
{
    char why[WIRE_TEXT_MAX];
    bool fits = may_send_in[msg->type] & BIT(m->peers[link].state);
    if (fits && grants_allow(m, link, msg, why, sizeof why)) return true;
    master_drop(m, link,
                fits ? why : "sent a message that is not allowed in its state");
    return false;
}

void master_received(struct master *m, uint32_t link,
                     const struct wire_msg *msg)
{
    if (replicas_pass(m, link, msg) || !may_send(m, link, msg)) return;
    silence_heard(m, link);
    if (replicas_take(m, link, msg)) return;
    switch (msg->type) {
    case WIRE_HELLO:
        on_hello(m, link, msg);
        return;
    case WIRE_VOTE:
        votes_take(m, link, msg);
        return;
    case WIRE_SYNC:
        state_vote_asked(m, link, msg);
        return;
    case WIRE_SUSPECT:
    case WIRE_REFRESH:
        round_fault(m, link, msg);
        return;
    case WIRE_FLUSHED:
        round_flushed(m, link, msg);
        return;
    case WIRE_REPLY:
        round_reply(m, link, msg);
        return;
    case WIRE_RESULT:
        round_result(m, link, msg);
        return;
    case WIRE_READY:
        round_ready(m, link, msg);
        return;
    case WIRE_LEAVE:
        on_leave(m, link, msg);
        return;
    case WIRE_ABORT:
        on_abort(m, link, msg);
        return;
    case WIRE_SYNCED:
        state_vote_done(m, link, msg);
        return;
    case WIRE_MEASURED:
        optimize_measured(m, link, msg);
        return;
    case WIRE_BLOCKED:
        deadlock_reported(m, link, msg);
        return;
    case WIRE_DIAL_REQUEST:
        forward_dial_request(m, link, msg);
        return;
    case WIRE_WAITING:
        peer_report_take(m, link, msg);
        return;
    case WIRE_SAMPLES:
        samples_take(m, link, msg);
        return;
    case WIRE_PARTIAL:
        coverage_received(m, link, msg);
        return;
    case WIRE_STATUS_GET:
        if (m->out.status) m->out.status(m->out.user, link, msg->status.json);
        return;
    case WIRE_RELAY:
        on_relay(m, link, msg);
        return;
    case WIRE_RESUME:
        succession_resume(m, link, msg);
        return;
    case WIRE_OFFER:
        offers_take(m, link, msg);
        return;
    case WIRE_OFFERS_GET:
        offers_tell(m, link, msg);
        return;
    case WIRE_HEARTBEAT:
    default: /* may_send_in has refused the rest */
        return;
    }
}

static void on_tick(struct master *m)
{
    silence_tick(m);
    replicas_tick(m);
    if (m->succession.waits || m->replicas.phase == REPLICAS_COLLECTS) return;
    limits_tick(m);
    stall_tick(m);
    samples_tick(m);
    for (uint32_t i = 0; i < m->group_count; i++)
        optimize_tick(m, m->group_list[i]);
}

pccl_ns master_next_tick(const struct master *m)
{
    uint32_t heard = m->in_state[PEER_CONNECTED] +
                     m->in_state[PEER_REGISTERED] + m->in_state[PEER_MEMBER];
    if (heard == 0 && !replicas_need_tick(m)) return PCCL_NEVER;
    pccl_ns ping = m->now + PCCL_TIME_TO_PING(m->deadline);
    pccl_ns average = coverage_next(m);
    return average < ping ? average : ping;
}

static void free_empty_groups(struct master *m)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < m->group_count; i++) {
        uint16_t group = m->group_list[i];
        m->groups[group].used = m->groups[group].peers > 0;
        if (m->groups[group].used) m->group_list[kept++] = group;
    }
    m->group_count = kept;
}

/* Each may evict, which is for the others to know. */
static void settle_groups(struct master *m)
{
    uint32_t members;
    do {
        members = master_count(m, PEER_MEMBER);
        for (uint32_t i = 0; i < m->group_count; i++)
            coverage_settle(m, m->group_list[i]);
        round_settle(m);
        admission_admit(m);
        round_settle(m);
    } while (master_count(m, PEER_MEMBER) < members);
}

/* Decides all that depends on more than one peer, after every event. */
static void settle(struct master *m)
{
    if (replicas_collect(m) || succession_waits(m)) return; /* H13, H5 */
    free_empty_groups(m);
    settle_groups(m);
    if (votes_all(m, VOTE_PENDING)) {
        uint32_t have;
        bool yes = master_count(m, PEER_REGISTERED) > 0;
        votes_answer(m, VOTE_PENDING, yes || admission_lacks(m, &have));
    }
    votes_refuse_crossed(m);
    bool elected = false;
    for (uint32_t i = 0; i < m->group_count; i++) {
        elected |= state_vote_settle(m, m->group_list[i]);
        samples_settle(m, m->group_list[i]);
    }
    if (elected) settle_groups(m); /* rounds are over by A14 */
    free_empty_groups(m);
    admission_settle(m);
}

static const char *invalid(const struct master *m, const struct master_peer *p)
{
    if (p->state == PEER_FREE || p->state == PEER_CONNECTED) return NULL;
    if (p->group >= GROUPS_MAX || !m->groups[p->group].used)
        return "a peer belongs to no group";
    if (p->leaving && p->state == PEER_REGISTERED)
        return "a newcomer is leaving";
    return NULL;
}

const char *master_invalid(const struct master *m)
{
    uint32_t counts[PEER_STATE_COUNT] = {0};
    for (uint32_t i = 0; i < m->link_end; i++) {
        const char *what = invalid(m, &m->peers[i]);
        if (what) return what;
        counts[m->peers[i].state]++;
    }
    for (int s = PEER_FREE + 1; s < PEER_STATE_COUNT; s++)
        if (counts[s] != m->in_state[s]) return "peers are counted wrongly";
    return NULL;
}

void master_step(struct master *m, const struct master_event *event)
{
    bool about = event->type < MASTER_TICK; /* one peer */
    PCCL_ASSERT(!about || event->link < MASTER_LINKS_MAX);
    PCCL_ASSERT(!about || !invalid(m, &m->peers[event->link]));
    PCCL_ASSERT(event->type != MASTER_TICK || !master_invalid(m));
    m->now = event->now;
    bool plain = false; /* a heartbeat, which decides nothing: stay O(1) */
    switch (event->type) {
    case MASTER_CONNECTED:
        master_peer_move(m, event->link, PEER_CONNECTED);
        if (event->link >= m->link_end) m->link_end = event->link + 1;
        m->peers[event->link].last_recv = event->now;
        m->peers[event->link].info.addr = event->addr;
        break;
    case MASTER_RECEIVED:
        plain = event->msg->type == WIRE_HEARTBEAT ||
                event->msg->type == WIRE_WAITING ||
                event->msg->type == WIRE_SAMPLES ||
                (event->msg->type == WIRE_MEASURED && event->msg->round == 0);
        master_received(m, event->link, event->msg);
        break;
    case MASTER_GRANTED:
        m->peers[event->link].grant = *event->grant;
        m->peers[event->link].last_recv = event->now;
        return;
    case MASTER_EXPELLED:
        master_drop(m, event->link, event->reason);
        break;
    case MASTER_CLOSED:
        master_forget(m, event->link, !m->peers[event->link].leaving);
        break;
    case MASTER_TICK:
        on_tick(m);
        break;
    case MASTER_QUORUM:
        m->quorum = event->quorum > 0 ? event->quorum : 1;
        break;
    case MASTER_SEARCHED:
        optimize_found(m, event);
        break;
    case MASTER_EVIDENCE:
        silence_evidence(m, event);
        return; /* nothing follows before the next tick */
    case MASTER_SLEPT:
        silence_slept(m, event->gap);
        return;
    }
    enum master_peer_state state = PEER_FREE;
    if (plain) state = m->peers[event->link].state;
    if (state != PEER_FREE && state != PEER_DEAD) return;
    settle(m);
    PCCL_ASSERT(!about || !invalid(m, &m->peers[event->link]));
}
