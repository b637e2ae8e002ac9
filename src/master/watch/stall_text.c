/* stall_text.c - stalls in words, for the operator. See stall.h. */
#include "stall.h"

#include "peer_report.h"

#include "../../base/append.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *stall_cause_name(enum stall_cause cause)
{
    static const char *const names[CAUSE_COUNT] = {
        [CAUSE_NONE] = "none",
        [CAUSE_STOPPED] = "stopped",
        [CAUSE_TRACED] = "traced",
        [CAUSE_STARVED] = "starved",
        [CAUSE_SILENT] = "silent",
        [CAUSE_COMPUTES] = "computes",
        [CAUSE_SWAPS] = "swaps",
        [CAUSE_NOT_CALLED] = "not called",
        [CAUSE_OTHER_CALL] = "other call",
        [CAUSE_RECEIVES] = "waits in a receive",
        [CAUSE_SENDS] = "waits in a send",
        [CAUSE_CYCLE] = "cycle",
        [CAUSE_HALF_OPEN] = "half-open connection",
        [CAUSE_PARTITION] = "partition",
        [CAUSE_SLOW] = "slow",
        [CAUSE_NO_DATA] = "no data",
        [CAUSE_MOVES] = "data move",
    };
    return names[cause];
}

const char *stall_object_name(enum stall_object object)
{
    static const char *const names[] = {
        [STALL_OPERATION] = "operation", [STALL_MESSAGE] = "message",
        [STALL_UPDATE] = "update",       [STALL_PENDING] = "pending",
        [STALL_OPTIMIZE] = "optimize",   [STALL_SYNC] = "sync",
        [STALL_ADMISSION] = "admission", [STALL_QUORUM] = "quorum",
        [STALL_ROUND] = "round"};
    return names[object];
}

void stall_print_peer(const struct master *m, uint32_t link, char *text,
                      size_t size)
{
    const struct master_peer *p = &m->peers[link];
    const struct peer_report *report = m->reports[link];
    bool ranked = p->state == PEER_MEMBER || p->state == PEER_DEAD;
    text[0] = '\0';
    if (ranked)
        append(text, size, "rank %" PRIu32 " (", p->rank);
    else
        append(text, size, "newcomer (");
    if (p->info.hint >= 0 && !(ranked && (uint32_t)p->info.hint == p->rank))
        append(text, size, "launched as %" PRId32 ", ", p->info.hint);
    if (p->grant.name[0] != '\0') append(text, size, "%s, ", p->grant.name);
    if (report && report->host[0] != '\0')
        append(text, size, "%s, ", report->host);
    append(text, size, "pid %" PRIu32 ")", p->info.pid);
}

void stall_print_wait(const struct wire_wait *w, char *text, size_t size)
{
    static const char *const colls[WIRE_COLLS] = {
        "an all-reduce", "a broadcast",   "a barrier",
        "an all-gather", "an all-to-all", "a reduce-scatter"};
    static const char *const kinds[WAIT_KIND_COUNT] = {
        [WAIT_RECEIVE] = "a receive",
        [WAIT_SEND] = "a send",
        [WAIT_REQUESTS] = "a wait for requests",
        [WAIT_LACKS] = "nothing",
        [WAIT_PAST] = "nothing"};
    text[0] = '\0';
    bool op = w->kind == WAIT_COLLECTIVE;
    append(text, size, "%s",
           w->call[0] != '\0' ? w->call
                              : (op ? colls[w->coll] : kinds[w->kind]));
    if (w->where[0] != '\0') append(text, size, " on %s", w->where);
    if (op && w->where[0] == '\0')
        append(text, size, " (tag %" PRIu64 ", call %" PRIu32 ")", w->tag,
               w->seq + 1);
    else if (op)
        append(text, size, " (call %" PRIu32 ")", w->seq + 1);
    else if (w->kind != WAIT_REQUESTS && w->tag != UINT64_MAX)
        append(text, size, " (tag %" PRIu64 ")", w->tag);
}

static void add_waiters(const struct master *m, const struct stall *s,
                        char *text)
{
    uint32_t named = s->waiter_count < STALL_WAITERS_MAX ? s->waiter_count
                                                         : STALL_WAITERS_MAX;
    if (named == 0) return;
    append(text, STALL_TEXT_MAX, "; %s",
           s->waiter_count == 1 ? "rank" : "ranks");
    for (uint32_t i = 0; i < named; i++)
        append(text, STALL_TEXT_MAX, "%s %" PRIu32, i > 0 ? "," : "",
               m->peers[s->waiters[i]].rank);
    if (named < s->waiter_count)
        append(text, STALL_TEXT_MAX, " and %" PRIu32 " more",
               s->waiter_count - named);
    append(text, STALL_TEXT_MAX, " wait%s", s->waiter_count == 1 ? "s" : "");
}

static void add_object(const struct stall *s, char *text)
{
    static const char *const votes[] = {
        [STALL_UPDATE] = "a topology update",
        [STALL_PENDING] = "the question whether newcomers wait",
        [STALL_OPTIMIZE] = "a topology optimization",
        [STALL_SYNC] = "a synchronization of shared state",
        [STALL_ADMISSION] = "",
        [STALL_QUORUM] = "",
        [STALL_ROUND] = ""};
    char wait[256];
    stall_print_wait(&s->wait, wait, sizeof wait);
    switch (s->object) {
    case STALL_OPERATION:
        append(text, STALL_TEXT_MAX, "has not called %s", wait);
        return;
    case STALL_MESSAGE:
        append(text, STALL_TEXT_MAX, "has not %s for %s",
               s->wait.kind == WAIT_SEND ? "received" : "sent", wait);
        return;
    case STALL_ROUND:
        append(text, STALL_TEXT_MAX,
               "has not answered in a change of the view");
        return;
    default:
        append(text, STALL_TEXT_MAX, "has not called %s", votes[s->object]);
    }
}

static void add_his_call(const struct master *m, const struct stall *s,
                         char *text)
{
    static const char *const votes[] = {
        [STALL_UPDATE] = "a topology update",
        [STALL_PENDING] = "the question whether newcomers wait",
        [STALL_OPTIMIZE] = "a topology optimization",
        [STALL_SYNC] = "a synchronization of shared state"};
    char wait[256];
    char peer[160] = "any rank";
    stall_print_wait(&s->his, wait, sizeof wait);
    if (s->other != MASTER_NO_LINK)
        stall_print_peer(m, s->other, peer, sizeof peer);
    if (s->cause == CAUSE_OTHER_CALL && s->his_vote != STALL_OPERATION)
        append(text, STALL_TEXT_MAX, "; it waits in %s", votes[s->his_vote]);
    else if (s->cause == CAUSE_OTHER_CALL)
        append(text, STALL_TEXT_MAX, "; it waits in %s", wait);
    else
        append(text, STALL_TEXT_MAX, "; it waits in %s %s %s%s", wait,
               s->his.kind == WAIT_SEND ? "to" : "from", peer,
               s->cause == CAUSE_CYCLE ? ", which waits for it: a deadlock"
                                       : "");
}

static void add_cause(const struct master *m, const struct stall *s, char *text)
{
    const struct peer_report *report = m->reports[s->culprit];
    const struct master_peer *p = &m->peers[s->culprit];
    double silent = (double)(m->now - p->last_recv) / PCCL_S;
    const struct wire_self *self = report ? &report->self : NULL;
    double cpu = self ? self->cpu / 10. : 0;
    switch (s->cause) {
    case CAUSE_STOPPED:
        append(text, STALL_TEXT_MAX, "; its process is stopped by a signal");
        return;
    case CAUSE_TRACED:
        append(text, STALL_TEXT_MAX, "; a debugger holds it");
        return;
    case CAUSE_STARVED:
        append(text, STALL_TEXT_MAX, "; it gets no CPU time");
        return;
    case CAUSE_SILENT:
        append(
            text, STALL_TEXT_MAX,
            "; nothing was heard of it for %.1f s: its host or the path to it "
            "is down",
            silent);
        return;
    case CAUSE_COMPUTES:
        append(text, STALL_TEXT_MAX, "; it computes (%.0f %% CPU)", cpu);
        return;
    case CAUSE_SWAPS:
        append(text, STALL_TEXT_MAX,
               "; it waits for its memory (%" PRIu32 " page faults per second)",
               self ? self->faults : 0);
        return;
    case CAUSE_NOT_CALLED:
        append(text, STALL_TEXT_MAX, "; it sleeps outside of the library");
        return;
    case CAUSE_OTHER_CALL:
    case CAUSE_RECEIVES:
    case CAUSE_SENDS:
    case CAUSE_CYCLE:
        add_his_call(m, s, text);
        return;
    default:
        return;
    }
}

/* The network between two members. */
static void print_link(const struct master *m, const struct stall *s,
                       char *text)
{
    char a[160];
    char b[160];
    char wait[256];
    stall_print_peer(m, s->culprit, a, sizeof a);
    stall_print_peer(m, s->other, b, sizeof b);
    stall_print_wait(&s->wait, wait, sizeof wait);
    if (s->cause == CAUSE_PARTITION)
        append(text, STALL_TEXT_MAX, "%s and %s do not hear each other", a, b);
    else
        append(
            text, STALL_TEXT_MAX,
            "%s hears nothing of %s, which hears it: their connection is half "
            "open",
            b, a);
    append(text, STALL_TEXT_MAX, "; %s is held up for %.0f s", wait,
           (double)s->age / PCCL_S);
}

static void print_newcomers(const struct master *m, const struct stall *s,
                            char *text)
{
    bool members = m->peers[s->waiters[0]].state == PEER_MEMBER;
    bool one = s->waiter_count == 1;
    append(text, STALL_TEXT_MAX, "%" PRIu32 " %s%s wait%s for ",
           s->waiter_count, members ? "member" : "newcomer", one ? "" : "s",
           one ? "s" : "");
    if (s->object == STALL_QUORUM)
        append(text, STALL_TEXT_MAX, "%s: %" PRIu32 " of %" PRIu32 " are there",
               members ? "newcomers" : "others", s->have, s->want);
    else
        append(text, STALL_TEXT_MAX, "a topology update of the members");
    append(text, STALL_TEXT_MAX, ", for %.0f s", (double)s->age / PCCL_S);
}

static void print_no_culprit(const struct stall *s, char *text)
{
    char wait[256];
    stall_print_wait(&s->wait, wait, sizeof wait);
    if (s->object == STALL_MESSAGE)
        append(text, STALL_TEXT_MAX, "%s waits for any rank", wait);
    else
        append(text, STALL_TEXT_MAX, "all have called %s, and %s", wait,
               s->cause == CAUSE_NO_DATA ? "no data move" : "data move");
    if (s->cause == CAUSE_SLOW || s->cause == CAUSE_MOVES)
        append(text, STALL_TEXT_MAX, " at %.3f MB/s", (double)s->rate / 1e6);
    if (s->cause == CAUSE_SLOW)
        append(text, STALL_TEXT_MAX,
               ", slower than the %.3f MB/s that they did",
               (double)s->best / 1e6);
    append(text, STALL_TEXT_MAX, ", for %.0f s", (double)s->age / PCCL_S);
}

void stall_print(const struct master *m, const struct stall *s,
                 char text[STALL_TEXT_MAX])
{
    text[0] = '\0';
    if (s->object == STALL_ADMISSION || s->object == STALL_QUORUM) {
        print_newcomers(m, s, text);
        return;
    }
    if (s->cause == CAUSE_HALF_OPEN || s->cause == CAUSE_PARTITION) {
        print_link(m, s, text);
        return;
    }
    if (s->culprit == MASTER_NO_LINK || s->cause == CAUSE_SLOW ||
        s->cause == CAUSE_NO_DATA || s->cause == CAUSE_MOVES) {
        print_no_culprit(s, text);
        add_waiters(m, s, text);
        return;
    }
    stall_print_peer(m, s->culprit, text, STALL_TEXT_MAX);
    append(text, STALL_TEXT_MAX, " ");
    add_object(s, text);
    append(text, STALL_TEXT_MAX, " for %.0f s", (double)s->age / PCCL_S);
    add_cause(m, s, text);
    add_waiters(m, s, text);
}
