/* session_sync.c - synchronization of shared state, as one peer sees it: it
 * asks the master, moves the data that the master's lists name, and reports.
 * Rules S1.. */
#include "session.h"

#include "../../include/pccl.h"

#include <string.h>

static struct wire_msg question(struct session *s)
{
    const struct state_list *list = s->sync_state.list;
    struct wire_msg ask = {
        .type = WIRE_SYNC, .round = ++s->calls, .epoch = s->view->epoch};
    ask.sync.revision = s->sync_revision;
    ask.sync.strategy = s->sync_strategy;
    ask.sync.structure = list->structure;
    ask.sync.content = list->content;
    ask.ids = s->sync_untaken;
    ask.id_count = partial_untaken(&s->partial, s->sync_untaken);
    s->sync_waits = true;
    return ask;
}

int session_sync(struct session *s, struct state_list *list,
                 enum sync_strategy strategy, uint64_t revision)
{
    if (s->state == SESSION_NEW || s->state == SESSION_JOINING)
        return pcclInvalidUsage;
    if (s->master_lost && !session_waits_for_master(s))
        session_gone(s, s->reason); /* rule M9 */
    if (s->state == SESSION_GONE) return pcclMasterConnectionFailed;
    if (session_busy(s)) return pcclPendingAsyncOps;
    if (s->sync != SYNC_IDLE || session_votes_topology(s))
        return pcclInvalidUsage;
    s->sync = SYNC_ASKED;
    s->sync_revision = revision;
    s->sync_given = 0;
    s->sync_strategy = (uint8_t)strategy;
    s->sync_again = s->sync_unspoken = false;
    state_begin(&s->sync_state, list, strategy == SYNC_ENFORCE_POPULAR);
    struct wire_msg ask = question(s);
    session_send(s, &ask);
    return pcclSuccess;
}

/* Rule H6. Who still receives asks when it has all: the state that it has is
 * then the elected one. Until then it has no state that others may get. Who has
 * learned nothing yet does not wait: perhaps no holder knows of it. */
void session_sync_speak(struct session *s)
{
    struct state_sync *t = &s->sync_state;
    if (s->sync != SYNC_ASKED) return;
    bool moves = t->phase == STATE_MOVING && (t->receives || t->differs);
    s->sync_again = true;
    if (moves && t->outcome == STATE_OPEN && !t->hashes_known) {
        state_again(t);
        moves = false;
    }
    s->sync_unspoken = moves && t->outcome == STATE_OPEN;
    s->sync_waits = false;
    if (s->sync_unspoken) return;
    struct wire_msg ask = question(s);
    if (moves && t->outcome == STATE_RECEIVED) {
        ask.sync.revision = s->sync_elected;
        ask.sync.content = t->content;
    }
    ask.sync.again = true;
    ask.sync.id = s->sync_ended;
    session_send(s, &ask);
}

int session_sync_take(struct session *s, uint64_t *revision, uint64_t *tx_bytes,
                      uint64_t *rx_bytes)
{
    PCCL_ASSERT(s->sync == SYNC_OVER);
    s->sync = SYNC_IDLE;
    *revision = s->sync_revision;
    *tx_bytes = s->sync_given;
    *rx_bytes = s->sync_state.rx_bytes;
    return s->sync_result;
}

void session_sync_raise(uint64_t *last, uint64_t id)
{
    if (id > *last) *last = id;
}

/* All members of the group have come to it, or this one is out of it. */
static void end_wait(struct session *s)
{
    if (s->sync_waits) session_call_over(s);
    s->sync_waits = false;
}

void session_sync_end(struct session *s, int result, const char *error)
{
    if (s->sync != SYNC_ASKED) return;
    end_wait(s);
    session_sync_raise(&s->sync_ended, s->sync_state.id);
    state_end(&s->sync_state);
    s->sync = SYNC_OVER;
    s->sync_result = result;
    size_t size = strnlen(error, WIRE_TEXT_MAX);
    memcpy(s->sync_error, error, size);
    s->sync_error[size] = '\0';
    s->out.changed(s->out.user);
}

/* Appends to a text that has room for it. */
static void add_text(char *text, const char *more)
{
    memcpy(text + strlen(text), more, strlen(more) + 1);
}

static void add_number(char *text, uint64_t value)
{
    char digits[21];
    char *at = digits + sizeof digits;
    *--at = '\0';
    do {
        *--at = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    add_text(text, at);
}

/* `expected`: the revision that the group's state has, or is to have. */
static void refuse_sync(struct session *s, enum sync_role role,
                        uint64_t expected)
{
    static const struct {
        int result;
        const char *text;
    } refusals[SYNC_ROLE_COUNT] = {
        [SYNC_NO_STATE] = {pcclNoSharedStateAvailable,
                           "no living peer that may give it has the state of "
                           "the run"},
        [SYNC_AHEAD] = {pcclInvalidUsage,
                        "the revision of this peer is ahead of the group's"},
        [SYNC_FOREIGN] = {pcclInvalidUsage,
                          "the run goes on only from the content it had when "
                          "all had left it; this is another one"},
        [SYNC_CONFLICT] = {pcclInvalidUsage,
                           "this peer only sends, and its content is not the "
                           "elected one"},
        [SYNC_MIXED] = {pcclInvalidArgument,
                        "this peer called with another strategy than the "
                        "group; enforce-popular stands beside no other"},
        [SYNC_CROSSED] = {pcclInvalidUsage,
                          "another peer of the group waits in another call"},
    };
    char text[WIRE_TEXT_MAX + 1] = "";
    add_text(text, refusals[role].text);
    bool counts = role == SYNC_NO_STATE || role == SYNC_AHEAD;
    if (counts && expected != s->sync_revision) {
        add_text(text, " (revision ");
        add_number(text, expected);
        add_text(text, " is expected, this peer has ");
        add_number(text, s->sync_revision);
        add_text(text, ")");
    }
    session_sync_end(s, refusals[role].result, text);
}

/* Rule F6. */
void session_sync_refuse(struct session *s)
{
    if (s->sync_waits) refuse_sync(s, SYNC_CROSSED, 0);
}

/* Rules S6..S8. */
void session_sync_on_message(struct session *s, const struct wire_msg *msg)
{
    enum sync_role role = (enum sync_role)msg->sync.role;
    const struct state_sync *t = &s->sync_state;
    bool ends = role == SYNC_COMPLETE || role > SYNC_DIFFERS;
    bool over = role == SYNC_COMPLETE || role == SYNC_NO_STATE;
    if (ends) session_sync_raise(&s->sync_ended, msg->sync.id);
    if (over) session_sync_raise(&s->sync_over, msg->sync.id);
    if (role == SYNC_COMPLETE) session_sync_raise(&s->sync_well, msg->sync.id);
    if (s->sync != SYNC_ASKED) return;
    if (s->sync_again && t->phase == STATE_MOVING && msg->sync.id > t->id)
        state_again(&s->sync_state);
    /* A refusal without a number is of the call: it may be asked again (H6). */
    bool stale = msg->sync.id != 0 && msg->sync.id <= t->id_before;
    stale |= t->phase == STATE_MOVING && msg->sync.id != t->id;
    if (stale && role != SYNC_CROSSED) return;
    if (role == SYNC_COMPLETE) {
        s->sync_revision = msg->sync.revision;
        s->sync_given = msg->sync.given;
        session_sync_end(s, pcclSuccess, msg->sync.text);
        return;
    }
    if (role > SYNC_DIFFERS) {
        refuse_sync(s, role, msg->sync.revision);
        return;
    }
    struct state_orders orders = {.id = msg->sync.id,
                                  .structure = msg->sync.structure,
                                  .content = msg->sync.content,
                                  .receives = role == SYNC_RECEIVE,
                                  .differs = role == SYNC_DIFFERS,
                                  .ids = msg->ids,
                                  .holders = msg->sync.holders,
                                  .receivers = msg->sync.receivers,
                                  .count = msg->id_count};
    if (orders.holders + orders.receivers > orders.count) return;
    end_wait(s);
    s->sync_elected = msg->sync.revision;
    if (!state_parts(&s->sync_state, &orders))
        session_gone(s, "out of memory for the synchronization");
}

/* The engine has all data, or has given up. */
void session_sync_over(void *user)
{
    struct session *s = user;
    const struct state_sync *t = &s->sync_state;
    if (s->sync != SYNC_ASKED || t->outcome == STATE_OPEN) return;
    struct wire_msg done = {.type = WIRE_SYNCED, .epoch = s->view->epoch};
    done.sync.id = t->id;
    bool ok = t->outcome == STATE_RECEIVED;
    done.sync.role = ok ? SYNC_COMPLETE : SYNC_NO_STATE;
    if (ok) {
        done.ids = t->taken;
        done.id_count = t->taken_count < PEERS_MAX ? t->taken_count : PEERS_MAX;
    }
    if (t->outcome == STATE_EXPLAINED)
        memcpy(done.sync.text, t->explanation, sizeof t->explanation);
    session_send(s, &done);
    if (t->outcome == STATE_EXPLAINED)
        session_sync_end(s, pcclInvalidArgument, t->explanation);
    if (t->outcome == STATE_FAILED && t->explanation[0] != '\0')
        session_sync_end(s, pcclInternalError, t->explanation);
    else if (t->outcome == STATE_FAILED)
        session_sync_end(
            s, pcclNoSharedStateAvailable,
            "no holder of the state could be reached, or none gave the "
            "content it promised");
    if (s->sync_unspoken) session_sync_speak(s);
}
