/* progress_wait.c - calls that wait: for an operation, a synchronization, the
 * fast path, or messages. See progress.h. */
#include "comm.h"

#include <time.h>

/* ------------------------------------------- operations, synchronizations */

/* The goal of a blocking owner: op is DONE, or, without an op, the end of a
 * partial all-reduce, of the synchronization or of a vote (the owner then reads
 * the master's messages), or a message event. */
struct goal {
    const struct op *op;
    const struct partial_call *partial;
    const enum session_vote *vote;
    bool events; /* a message event ends the wait in spite of op */
    bool sync;
    pccl_ns until;
};

static bool needs_master(const struct goal *goal)
{
    return goal->sync || goal->partial || goal->vote;
}

static bool has_event(const pcclComm_t *c)
{
    return c->session->messages.first != NULL ||
           c->session->state == SESSION_GONE;
}

static bool is_done(const pcclComm_t *c, const struct goal *goal)
{
    if (goal->op) return op_is_done(goal->op) || (goal->events && has_event(c));
    if (goal->partial) return goal->partial->phase == PARTIAL_DONE;
    if (goal->vote)
        return *goal->vote == VOTE_ANSWERED ||
               c->session->state != SESSION_MEMBER;
    return goal->sync ? c->session->sync != SYNC_ASKED : has_event(c);
}

static bool is_over(const pcclComm_t *c, const struct goal *goal)
{
    return is_done(c, goal) || comm_interrupted(c, goal->until) != 0;
}

static enum look look_for_goal(pcclComm_t *c, struct poll_loop *loop)
{
    const struct goal *goal = loop->user;
    struct engine *e = c->session->engine;
    if (is_done(c, goal)) return LOOK_DONE;
    if (comm_is_cancelled(c)) return LOOK_ELSE;
    comm_io_expect(c, goal->op);
    engine_set_goal(e, goal->events ? NULL : goal->op);
    bool moved = loop->looks % PASSES_PER_FULL_PASS ? comm_io_move_expected(c)
                                                    : comm_io_move(c);
    engine_set_goal(e, NULL);
    /* After what peers have sent: a FLUSH aborts what lacks its last bytes. */
    if (needs_master(goal)) moved |= comm_master_read(c);
    if (!moved) return LOOK_IDLE;
    if (comm_tells()) comm_tell_wait(c, goal->op, false);
    comm_master_flush(c);
    return LOOK_MOVED;
}

/* Polls until the goal is reached, or nothing has moved for long. Links are
 * made by the background thread: a poll takes it a processor ("all-to-all of
 * many ranks"). */
static void poll_for(pcclComm_t *c, struct goal *goal)
{
    struct poll_loop loop = {.policy = &progress_policy(c)->operation,
                             .look = look_for_goal,
                             .user = goal,
                             .until = goal->until};
    bool polls = !goal->op || !op_lacks_link(goal->op);
    if (!polls) (void)look_for_goal(c, &loop);
    while (polls && progress_poll(c, &loop) == LOOK_IDLE && comm_io_move(c) &&
           comm_now() < goal->until)
        continue;
    comm_master_flush(c);
}

static void own(pcclComm_t *c, struct goal *goal)
{
    progress_enter(c, needs_master(goal));
    while (!is_over(c, goal)) {
        if (comm_tells()) comm_tell_wait(c, goal->op, false);
        poll_for(c, goal);
        if (is_over(c, goal)) break;
        if (comm_tells()) comm_tell_wait(c, goal->op, true);
        pccl_ns left = SLEEP_MAX;
        if (goal->until != PCCL_NEVER) left = goal->until - comm_now();
        if (left <= 0) break;
        progress_sleep(c, left < SLEEP_MAX ? left : SLEEP_MAX);
    }
    if (comm_tells()) comm_tell_wait(c, NULL, false);
    progress_leave(c);
}

static void wait_for(pcclComm_t *c, struct goal *goal)
{
    if (goal->op && op_is_done(goal->op)) return;
    engine_wait_begins(c->session->engine);
    if (progress_has_owner(c) || is_over(c, goal)) progress_changed(c);
    while (!is_over(c, goal)) {
        if (!progress_has_owner(c)) {
            own(c, goal);
            return;
        }
        comm_wait(c, goal->until);
    }
}

void progress_wait(pcclComm_t *c, const struct op *op, pccl_ns until)
{
    wait_for(c, &(struct goal){.op = op, .until = until});
}

void progress_wait_until(pcclComm_t *c, const struct op *op, pccl_ns until)
{
    wait_for(c, &(struct goal){.op = op, .events = true, .until = until});
}

void progress_wait_partial(pcclComm_t *c, const struct partial_call *call,
                           pccl_ns until)
{
    wait_for(c, &(struct goal){.partial = call, .until = until});
}

void progress_wait_sync(pcclComm_t *c, pccl_ns until)
{
    wait_for(c, &(struct goal){.sync = true, .until = until});
}

/* A vote mostly ends as soon as the last member has cast its own, so the caller
 * polls for the answer: the background thread would have to wake it. It sleeps
 * without owning, because operations of another thread may go on beside a vote
 * that takes long. */
void progress_wait_vote(pcclComm_t *c, enum vote_kind kind, pccl_ns until)
{
    struct goal goal = {.vote = &c->session->votes[kind], .until = until};
    if (!progress_has_owner(c) && !is_over(c, &goal)) {
        progress_enter(c, true);
        poll_for(c, &goal);
        progress_leave(c);
    }
    while (!is_over(c, &goal)) comm_wait(c, until);
}

/* -------------------------------------------------------------- fast path */

static void nap_if_handed_on(struct progress *p, bool handed_on)
{
    if (!handed_on) {
        p->handed_on = 0;
        return;
    }
    if (p->nap_after == 0) p->nap_after = NAP_AFTER_MIN;
    if (++p->handed_on < p->nap_after) return;
    p->handed_on = 0;
    if (p->nap_after < NAP_AFTER_MAX) p->nap_after *= 2;
    (void)nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

static void ring_written(pcclComm_t *c)
{
    struct engine *e = c->session->engine;
    uint32_t numbers[64], count = 0;
    for (uint64_t left = fast_written(e); left != 0; left &= left - 1)
        numbers[count++] = fast_conn(e, (uint32_t)__builtin_ctzll(left));
    comm_shm_ring_many(c, numbers, count);
}

static enum look look_at_fast_path(pcclComm_t *c, struct poll_loop *loop)
{
    (void)loop;
    enum look found = fast_poll(c->session->engine);
    ring_written(c);
    return found;
}

enum look progress_fast(pcclComm_t *c, const struct op_request *r,
                        uint64_t view_epoch, struct op **rest)
{
    if (progress_has_owner(c) || !session_fast(c->session, r, view_epoch))
        return LOOK_IDLE;
    const struct wait_policy *policy = progress_policy(c);
    struct poll_loop loop = {.policy = &policy->fast,
                             .look = look_at_fast_path,
                             .until = PCCL_NEVER,
                             .keeps_lock = true};
    if (progress_poll(c, &loop) == LOOK_DONE) {
        uint32_t spins = policy->fast.spins;
        if (policy->naps)
            nap_if_handed_on(&c->progress,
                             loop.looks > spins &&
                                 loop.looks <= spins + HANDED_ON_LOOKS);
        return LOOK_DONE;
    }
    *rest = session_convert(c->session);
    return LOOK_ELSE;
}

/* --------------------------------------------------------------- messages */

/* All messages arrive through memory. */
static bool is_all_shared(struct messages *m)
{
    const struct poll_set *set = message_poll_set(m);
    return set->count > 0 && !set->others && !message_pending(m);
}

/* Moves the bytes that shared memory has. False: there is other work. */
static bool move_messages(pcclComm_t *c, const struct poll_set *set)
{
    struct engine *e = c->session->engine;
    for (uint32_t i = 0; i < set->count; i++) {
        uint32_t number = set->conns[i];
        struct channel *channel = conn_channel(c->session->links, number);
        const uint8_t *from;
        bool sends =
            c->io.sockets[number].blocked || engine_may_send(e, number);
        if (!sends && !channel_shows(channel)) continue;
        if (!comm_shm_sends(c, number)) return false; /* a HELLO first */
        if (sends) (void)comm_shm_transmit(c, number);
        if (!set->known) return false; /* that closed it */
        if (channel_ready(channel, &from) > 0 || channel->broken)
            (void)comm_shm_receive(c, number);
        if (!set->known) return false;
        /* An acknowledgement that the other end waits for: there may be no
         * next call for long. */
        if (engine_may_send(e, number)) (void)comm_shm_transmit(c, number);
        if (!set->known) return false;
    }
    return true;
}

/* loop->user is the destination of the event. */
static enum look look_for_messages(pcclComm_t *c, struct poll_loop *loop)
{
    struct message_event **event = loop->user;
    if (progress_has_owner(c) || !is_all_shared(&c->session->messages) ||
        comm_is_cancelled(c))
        return LOOK_ELSE;
    bool all = move_messages(c, message_poll_set(&c->session->messages));
    *event = message_take(&c->session->messages);
    if (*event) return LOOK_DONE;
    return all ? LOOK_IDLE : LOOK_ELSE;
}

/* Messages through shared memory. The call holds the lock and touches nothing
 * else. NULL: the full progress is due, or a sleep. */
static struct message_event *poll_messages(pcclComm_t *c, pccl_ns until)
{
    struct message_event *event = NULL;
    struct poll_loop loop = {.policy = &progress_policy(c)->message,
                             .look = look_for_messages,
                             .user = &event,
                             .until = until};
    if (until == 0)
        (void)look_for_messages(c, &loop);
    else
        (void)progress_poll(c, &loop);
    return event;
}

/* One pass as the owner; it sleeps until `until` at most. */
static void own_for_event(pcclComm_t *c, pccl_ns until)
{
    struct goal event = {.until = PCCL_NEVER};
    progress_enter(c, false);
    /* Where all memory is shared it has been polled already. */
    if (message_poll_set(&c->session->messages)->others &&
        progress_policy(c)->polls_sockets)
        poll_for(c, &event);
    pccl_ns left = until - comm_now();
    pccl_ns most =
        message_pending(&c->session->messages) ? RETRY_SLEEP_MAX : SLEEP_MAX;
    if (!is_done(c, &event) && left > 0) {
        progress_sleep(c, left < most ? left : most);
        (void)comm_io_move(c);
    }
    progress_leave(c);
}

/* All connections are polled. */
static void move_all(pcclComm_t *c)
{
    if (!progress_has_owner(c) && comm_io_move(c)) comm_master_flush(c);
}

/* Bytes wait for room, and there may be no next call for long. */
static bool is_blocked(pcclComm_t *c)
{
    const struct poll_set *set = message_poll_set(&c->session->messages);
    uint32_t count = set->others ? c->io.end : set->count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = set->others ? i : set->conns[i];
        const struct comm_socket *s = &c->io.sockets[number];
        if (s->fd >= 0 && s->blocked) return true;
    }
    return false;
}

struct message_event *progress_take_event(pcclComm_t *c, pccl_ns until)
{
    message_use(&c->session->messages);
    comm_yield_lock(c);
    struct message_event *event = message_take(&c->session->messages);
    /* All connections are polled every so many calls. */
    if (++c->progress.takes % TAKES_PER_FULL_PASS == 0) move_all(c);
    if (!event) event = poll_messages(c, until);
    if (!event && (until != 0 || !is_all_shared(&c->session->messages)))
        move_all(c);
    while (!event && !(event = message_take(&c->session->messages))) {
        pccl_ns now = comm_now();
        if (now >= until || c->session->state == SESSION_GONE ||
            comm_is_cancelled(c))
            break;
        pccl_ns next = until - now > PCCL_S ? now + PCCL_S : until;
        if (progress_has_owner(c))
            comm_wait(c, next);
        else
            own_for_event(c, next);
    }
    if (is_blocked(c)) progress_changed(c);
    return event;
}

void progress_flush_messages(pcclComm_t *c)
{
    pccl_ns until = comm_now() + links_deadline(c->session->links);
    if (progress_has_owner(c)) return;
    progress_enter(c, false);
    while (c->session->state == SESSION_MEMBER && comm_now() < until) {
        bool waits = message_flush(&c->session->messages);
        (void)comm_io_move(c);
        comm_master_flush(c);
        if (!waits) break;
        comm_watch(c);
        progress_sleep(c, RETRY_SLEEP_MAX);
    }
    progress_leave(c);
}
