/* session_waits.c - the report of what this member waits in (rule W1).
 *
 * It goes out in place of a heartbeat and reads the state of that moment.
 * Nothing is written when an operation begins or ends. So the age of a wait is
 * the time since the first heartbeat that saw it. */
#include "session.h"

#include <string.h>

static uint32_t age_ms(const struct session *s, pccl_ns since)
{
    pccl_ns age = (s->now - since) / PCCL_MS;
    return age > UINT32_MAX ? UINT32_MAX : (uint32_t)age;
}

/* When the operation was first seen: now, or as the last report had it. */
static pccl_ns first_seen(const struct session *s, const struct wire_wait *w)
{
    const struct session_waits *r = &s->waits;
    for (uint32_t i = 0; i < r->seen_count; i++) {
        const struct session_seen *old = &r->seen[i];
        if (old->tag == w->tag && old->seq == w->seq &&
            old->scope == w->scope && old->epoch == s->view->epoch)
            return old->since;
    }
    return s->now;
}

static void set_ages(struct session *s, struct wire_wait *waits, uint32_t count)
{
    struct session_seen seen[WIRE_UNDER_WAY_MAX];
    for (uint32_t i = 0; i < count; i++) {
        struct wire_wait *w = &waits[i];
        seen[i] = (struct session_seen){w->scope, w->tag, w->seq,
                                        s->view->epoch, first_seen(s, w)};
        w->age_ms = age_ms(s, seen[i].since);
    }
    memcpy(s->waits.seen, seen, count * sizeof seen[0]);
    s->waits.seen_count = count;
}

static uint32_t add_calls(struct session *s, struct wire_wait *waits,
                          uint32_t count)
{
    bool all = false; /* the program waits for all operations */
    for (uint32_t i = 0; i < WIRE_CALLS_MAX; i++) {
        const struct session_call *call = &s->waits.calls[i];
        if (!call->key) continue;
        waits[count] = call->wait;
        waits[count].blocks = true;
        waits[count++].age_ms = age_ms(s, call->since);
        all |= call->wait.kind == WAIT_REQUESTS;
    }
    for (uint32_t i = 0; i < count && all; i++) waits[i].blocks = true;
    return count;
}

/* Rule W3. */
static uint32_t add_wanted(const struct session *s, struct wire_wait *waits,
                           uint32_t count)
{
    const struct session_waits *r = &s->waits;
    if (r->wanted_epoch != s->view->epoch || s->state != SESSION_MEMBER)
        return count;
    for (uint32_t i = 0; i < r->wanted_count; i++) {
        const struct wire_op *op = &r->wanted[i];
        bool past = engine_is_past(s->engine, op->scope, op->tag, op->seq);
        waits[count++] =
            (struct wire_wait){.kind = past ? WAIT_PAST : WAIT_LACKS,
                               .scope = op->scope,
                               .tag = op->tag,
                               .seq = op->seq};
    }
    return count;
}

void session_on_wanted(struct session *s, const struct wire_msg *msg)
{
    struct session_waits *r = &s->waits;
    if (!r->reports || msg->epoch != s->view->epoch) return;
    r->wanted_epoch = msg->epoch;
    r->wanted_count =
        msg->op_count < WIRE_WANTED_MAX ? msg->op_count : WIRE_WANTED_MAX;
    for (uint32_t i = 0; i < r->wanted_count; i++) r->wanted[i] = msg->ops[i];
    session_heartbeat(s);
}

static void report(struct session *s)
{
    struct wire_wait waits[WIRE_WAITS_MAX] = {{0}};
    uint8_t sets[WIRE_UNDER_WAY_MAX * WIRE_SET_SIZE];
    uint64_t quiet[2 * WIRE_QUIET_MAX];
    struct wire_msg msg = {.type = WIRE_WAITING,
                           .epoch = s->view->epoch,
                           .waits = waits,
                           .sets = sets,
                           .ids = quiet};
    struct session_waits *r = &s->waits;
    msg.waiting.self = r->self;
    msg.waiting.traffic = r->traffic;
    if (!r->host_told) memcpy(msg.waiting.host, r->host, sizeof r->host);
    if (s->state == SESSION_MEMBER && !links_is_frozen(s->links)) {
        msg.set_size = (s->view->size + 7) / 8;
        memset(sets, 0, (size_t)msg.set_size * WIRE_UNDER_WAY_MAX);
        msg.wait_count =
            engine_waits(s->engine, waits, sets, msg.set_size, &msg.set_count);
        msg.id_count = links_quiet(s->links, quiet, 2 * WIRE_QUIET_MAX);
    }
    for (uint32_t i = 0; i < msg.wait_count && r->name; i++)
        r->name(waits[i].tag, waits[i].where, sizeof waits[i].where);
    set_ages(s, waits, msg.wait_count);
    msg.wait_count = add_calls(s, waits, msg.wait_count);
    msg.wait_count = add_wanted(s, waits, msg.wait_count);
    session_send(s, &msg);
    r->host_told = s->id != 0;
}

void session_heartbeat(struct session *s)
{
    struct wire_msg beat = {.type = WIRE_HEARTBEAT};
    if (s->waits.reports && s->id != 0)
        report(s);
    else
        session_send(s, &beat);
}

void session_wait_begins(struct session *s, const void *key,
                         const struct wire_wait *wait)
{
    struct session_call *call = NULL;
    for (uint32_t i = 0; i < WIRE_CALLS_MAX; i++)
        if (!s->waits.calls[i].key) call = &s->waits.calls[i];
    if (!call) return;
    *call = (struct session_call){key, s->now, *wait};
}

void session_wait_ends(struct session *s, const void *key)
{
    for (uint32_t i = 0; i < WIRE_CALLS_MAX; i++)
        if (s->waits.calls[i].key == key) s->waits.calls[i].key = NULL;
}
