/* universe_step.c - what events and choices do to a universe. See universe.h.
 */
#include "universe_step.h"

#include <string.h>

/* ------------------------------------------------------------------- queues */

enum { QUEUE_MAX = 256 };

/* Of two equal signs of life in a row, with no time between them at the reader,
 * the second one says nothing. */
static uint32_t push(uint32_t queue, uint32_t message, bool is_control)
{
    uint32_t messages[QUEUE_MAX + 1];
    size_t size;
    const void *old = intern_get(&universe_queues, queue, &size);
    PCCL_ASSERT(size / 4 < QUEUE_MAX);
    memcpy(messages, old, size);
    if (size > 0 && messages[size / 4 - 1] == message &&
        party_is_neutral(is_control, message))
        return queue;
    messages[size / 4] = message;
    return intern_put(&universe_queues, messages, size + 4);
}

static uint32_t pop(uint32_t *queue)
{
    uint32_t messages[QUEUE_MAX];
    size_t size;
    const void *old = intern_get(&universe_queues, *queue, &size);
    memcpy(messages, old, size);
    *queue = intern_put(&universe_queues, messages + 1, size - 4);
    return messages[0];
}

/* The rest of the first message. */
static uint32_t unpop(uint32_t queue, uint32_t message)
{
    uint32_t messages[QUEUE_MAX + 1];
    size_t size;
    const void *old = intern_get(&universe_queues, queue, &size);
    messages[0] = message;
    memcpy(messages + 1, old, size);
    return intern_put(&universe_queues, messages, size + 4);
}

/* ------------------------------------------------------------------ streams */

static int end_of(const struct stream *st, uint32_t party, uint32_t conn)
{
    for (int i = 0; i < 2; i++) {
        if (st->party[i] == party && st->conn[i] == conn &&
            !(st->flags & STREAM_LEFT << i))
            return i;
    }
    return -1;
}

struct stream *universe_stream(const struct universe *w, uint32_t party,
                               uint32_t conn)
{
    for (uint32_t i = 0; i < w->stream_count; i++) {
        if (end_of(&w->streams[i], party, conn) >= 0)
            return (struct stream *)&w->streams[i];
    }
    return NULL;
}

/* One end is gone; the other still reads what is under way. */
static void leave(struct stream *st, int end, bool lossy)
{
    st->flags |= (uint8_t)(STREAM_LEFT << end);
    if (lossy) st->flags |= (uint8_t)(STREAM_LOSSY << end);
    st->queue[!end] = 0;
    st->conn[end] = NO_PARTY;
}

static bool is_over(const struct stream *st)
{
    bool left[2] = {st->flags & STREAM_LEFT, st->flags & STREAM_LEFT << 1};
    /* A dial that nobody hears of. */
    return left[0] && (left[1] || st->flags & STREAM_DIALING);
}

/* The order of streams, and bytes of those that are over, have no effect. */
static void tidy(struct universe *w)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->stream_count; i++) {
        if (is_over(&w->streams[i])) continue;
        struct stream st = w->streams[i];
        uint32_t at = count++;
        for (; at > 0 && memcmp(&w->streams[at - 1], &st, sizeof st) > 0; at--)
            w->streams[at] = w->streams[at - 1];
        w->streams[at] = st;
    }
    memset(&w->streams[count], 0,
           (w->stream_count - count) * sizeof w->streams[0]);
    w->stream_count = (uint8_t)count;
}

/* A process is gone, by itself or killed. */
static void end_process(struct universe *w, uint32_t member, bool killed)
{
    w->flags[member] |= killed ? MEMBER_CRASHED : MEMBER_ENDED;
    w->flags[member] |= MEMBER_DEAF;
    if (killed) w->flags[member] |= MEMBER_LOSSY;
    w->down[member] = 0;
    for (uint32_t i = 0; i < w->stream_count; i++) {
        struct stream *st = &w->streams[i];
        for (int end = 0; end < 2; end++) {
            if (st->party[end] == member && !(st->flags & STREAM_LEFT << end) &&
                !(end == 1 && st->flags & STREAM_DIALING))
                leave(st, end, killed);
        }
    }
}

/* ------------------------------------------------------------------ effects */

static bool master_effect(struct universe *w, const struct effect *e)
{
    if (e->kind == EFFECT_CONTROL) {
        if (!(w->flags[e->at] &
              (MEMBER_HUNG_UP | MEMBER_DEAF | MEMBER_STOPPED)))
            w->down[e->at] = push(w->down[e->at], e->number, true);
        return true;
    }
    w->flags[e->at] |= MEMBER_HUNG_UP | MEMBER_UNHEARD;
    w->up[e->at] = 0;
    return true;
}

static bool member_effect(struct universe *w, uint32_t member,
                          const struct effect *e, uint32_t *left)
{
    struct stream *st = NULL;
    switch ((enum effect_kind)e->kind) {
    case EFFECT_CONTROL:
        if (!(w->flags[member] & (MEMBER_UNHEARD | MEMBER_DEAF)))
            w->up[member] = push(w->up[member], e->number, true);
        return true;
    case EFFECT_DIAL:
        if (w->stream_count == STREAMS_MAX)
            return universe_fail("too many connections");
        w->streams[w->stream_count++] =
            (struct stream){.party = {(uint8_t)member, (uint8_t)e->number},
                            .conn = {e->at, NO_PARTY},
                            .flags = STREAM_DIALING};
        return true;
    case EFFECT_DATA:
    case EFFECT_CLOSE:
        st = universe_stream(w, member, e->at);
        if (!st) return true; /* DATA_END has ended it already */
        int end = end_of(st, member, e->at);
        if (e->kind == EFFECT_CLOSE)
            leave(st, end, false);
        else if (!(st->flags & STREAM_LEFT << !end) &&
                 !(w->flags[st->party[!end]] & MEMBER_STOPPED))
            st->queue[end] = push(st->queue[end], e->number, false);
        return true;
    case EFFECT_LEFT:
        *left = e->number;
        return true;
    case EFFECT_QUIT:
        end_process(w, member, false);
        return true;
    case EFFECT_ACCEPTED:
    case EFFECT_HANG_UP:
        return true;
    }
    return true;
}

bool universe_event(struct universe *w, uint32_t party, struct event event,
                    uint32_t *left)
{
    const struct effect *effects;
    uint32_t count, rest = 0;
    uint32_t state =
        party_step(party, w->state[party], event, &effects, &count);
    if (state == PARTY_FAILED) return universe_fail("%s", party_error());
    w->state[party] = state;
    for (uint32_t i = 0; i < count; i++) {
        if (effects[i].kind == EFFECT_ACCEPTED) continue;
        bool good = party == MASTER
                        ? master_effect(w, &effects[i])
                        : member_effect(w, party, &effects[i], &rest);
        if (!good) return false;
    }
    if (left) *left = rest;
    return true;
}

/* ------------------------------------------------------------------ choices */

static bool data(struct universe *w, struct choice c)
{
    struct stream *st = universe_stream(w, c.party, c.at);
    int end = end_of(st, c.party, c.at);
    if (st->queue[!end] == 0) {
        leave(st, end, false);
        return universe_event(w, c.party,
                              (struct event){EVENT_DATA_END, c.at, 0}, NULL);
    }
    uint32_t message = pop(&st->queue[!end]);
    uint32_t left;
    if (!universe_event(w, c.party, (struct event){EVENT_DATA, c.at, message},
                        &left))
        return false;
    st = left ? universe_stream(w, c.party, c.at) : NULL;
    if (st) {
        end = end_of(st, c.party, c.at);
        st->queue[!end] = unpop(st->queue[!end], left);
    }
    return true;
}

static bool accept(struct universe *w, struct choice c)
{
    for (uint32_t i = 0; i < w->stream_count; i++) {
        struct stream *st = &w->streams[i];
        if (!(st->flags & STREAM_PENDING) || st->party[1] != c.party ||
            st->party[0] != c.at)
            continue;
        const struct effect *effects;
        uint32_t count;
        struct event event = {EVENT_ACCEPT, 0, 0};
        uint32_t state =
            party_step(c.party, w->state[c.party], event, &effects, &count);
        if (state == PARTY_FAILED) return universe_fail("%s", party_error());
        for (uint32_t k = 0; k < count; k++) {
            if (effects[k].kind == EFFECT_ACCEPTED) st->conn[1] = effects[k].at;
        }
        st->flags &= (uint8_t)~STREAM_PENDING;
        return universe_event(w, c.party, event, NULL);
    }
    return true;
}

static bool dialed(struct universe *w, struct choice c)
{
    struct stream *st = universe_stream(w, c.party, c.at);
    bool success = universe_runs(w, st->party[1]);
    st->flags &= (uint8_t)~STREAM_DIALING;
    if (success)
        st->flags |= STREAM_PENDING;
    else
        st->flags |= STREAM_LEFT << 1;
    /* The links forget the number of a dial that has failed. */
    return universe_event(w, c.party,
                          (struct event){EVENT_DIALED, c.at, success}, NULL);
}

static bool control(struct universe *w, struct choice c)
{
    uint32_t i = c.party;
    if (c.kind == CHOICE_UP && w->up[i] != 0) {
        uint32_t message = pop(&w->up[i]);
        return universe_event(
            w, MASTER, (struct event){EVENT_CONTROL, c.party, message}, NULL);
    }
    if (c.kind == CHOICE_UP) {
        w->flags[i] |= MEMBER_UNHEARD;
        return universe_event(
            w, MASTER, (struct event){EVENT_CONTROL_END, c.party, 0}, NULL);
    }
    if (w->down[i] != 0) {
        uint32_t message = pop(&w->down[i]);
        return universe_event(w, i, (struct event){EVENT_CONTROL, 0, message},
                              NULL);
    }
    w->flags[i] |= MEMBER_DEAF;
    return universe_event(w, i, (struct event){EVENT_CONTROL_END, 0, 0}, NULL);
}

/* Delivers what only says that its sender lives. */
static bool neutral(struct universe *w, bool *any)
{
    struct choice choices[CHOICES_MAX];
    uint32_t n = universe_choices(w, choices);
    *any = false;
    for (uint32_t i = 0; i < n; i++) {
        struct choice c = choices[i];
        const struct stream *st = universe_stream(w, c.party, c.at);
        uint32_t queue = 0;
        bool is_control = c.kind == CHOICE_UP || c.kind == CHOICE_DOWN;
        if (c.kind == CHOICE_UP) queue = w->up[c.party];
        if (c.kind == CHOICE_DOWN) queue = w->down[c.party];
        if (c.kind == CHOICE_DATA && st)
            queue = st->queue[!end_of(st, c.party, c.at)];
        if (queue == 0) continue;
        const uint32_t *head = intern_get(&universe_queues, queue, NULL);
        if (!party_is_neutral(is_control, *head)) continue;
        *any = true;
        return is_control ? control(w, c) : data(w, c);
    }
    return true;
}

/* A step of time for all that run. */
static bool tick(struct universe *w)
{
    w->step++;
    w->quiet++;
    for (uint32_t i = 0; i < universe_config.members; i++) {
        if (universe_runs(w, i) &&
            !universe_event(w, i, (struct event){EVENT_TICK, 0, w->step}, NULL))
            return false;
    }
    return universe_event(w, MASTER, (struct event){EVENT_TICK, 0, w->step},
                          NULL);
}

/* What members send to show that they live arrives before anything else
 * happens: it has no order of its own. */
static bool time_passes(struct universe *w)
{
    bool any = true;
    if (!tick(w)) return false;
    for (int i = 0; i < 200 && any; i++) {
        if (!neutral(w, &any)) return false;
    }
    return true;
}

/* Each end reads the end of the other, and nothing of what was under way. */
static bool cut(struct universe *w, struct stream *st)
{
    if (w->stream_count == STREAMS_MAX)
        return universe_fail("too many connections");
    struct stream *other = &w->streams[w->stream_count++];
    *other = *st;
    leave(st, 1, false);
    leave(other, 0, false);
    st->queue[1] = other->queue[0] = 0;
    st->flags &= (uint8_t)~STREAM_PENDING;
    if (other->flags & STREAM_PENDING) leave(other, 1, false);
    return true;
}

static bool fault(struct universe *w, struct choice c)
{
    w->quiet = 0;
    struct stream *st = universe_stream(w, c.party, c.at);
    switch ((enum choice_kind)c.kind) {
    case CHOICE_CRASH:
        w->faults[FAULT_CRASH]--;
        end_process(w, c.party, true);
        /* Nobody looks at its state again. */
        w->state[c.party] = party_first(c.party);
        return true;
    case CHOICE_STOP:
        w->faults[FAULT_STOP]--;
        w->flags[c.party] |= MEMBER_STOPPED;
        w->state[c.party] = party_first(c.party);
        w->up[c.party] = w->down[c.party] = 0;
        return true;
    case CHOICE_CUT:
        w->faults[FAULT_CUT]--;
        return cut(w, st);
    case CHOICE_STALL:
        w->faults[FAULT_STALL]--;
        for (uint32_t i = 0; i < universe_config.stall; i++) {
            if (!tick(w)) return false;
        }
        w->quiet = 0;
        return true;
    default:
        w->faults[FAULT_CUT_UP]--;
        w->up[c.party] = w->down[c.party] = 0;
        w->flags[c.party] |= MEMBER_HUNG_UP; /* the master hears it, too */
        return true;
    }
}

enum universe_result universe_choose(const struct universe *w, struct choice c,
                                     struct universe *next)
{
    memcpy(next, w, universe_size(w));
    bool good = true;
    switch ((enum choice_kind)c.kind) {
    case CHOICE_PROGRAM:
        good = universe_event(next, c.party,
                              (struct event){EVENT_PROGRAM, 0, 0}, NULL);
        break;
    case CHOICE_DOWN:
    case CHOICE_UP:
        good = control(next, c);
        break;
    case CHOICE_DIALED:
        good = dialed(next, c);
        break;
    case CHOICE_ACCEPT:
        good = accept(next, c);
        break;
    case CHOICE_DATA:
        good = data(next, c);
        break;
    case CHOICE_LOSE: {
        struct stream *st = universe_stream(next, c.party, c.at);
        st->queue[!end_of(st, c.party, c.at)] = 0;
        break;
    }
    case CHOICE_LOSE_UP:
        next->up[c.party] = 0;
        break;
    case CHOICE_TIME:
        good = time_passes(next);
        break;
    case CHOICE_CRASH:
    case CHOICE_STOP:
    case CHOICE_CUT:
    case CHOICE_CUT_UP:
    case CHOICE_STALL:
        good = fault(next, c);
        break;
    }
    if (!good) return UNIVERSE_BAD;
    tidy(next);
    if (universe_size(next) == universe_size(w) &&
        memcmp(w, next, universe_size(w)) == 0)
        return UNIVERSE_SAME;
    return universe_check(next) ? UNIVERSE_NEXT : UNIVERSE_BAD;
}
