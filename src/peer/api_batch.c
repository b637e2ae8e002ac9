/* api_batch.c - the calls of pccl.h for many all-reduces at once. */
#include "api.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH_MAX = 128 }; /* operations of a batch in flight */

/* Operations of pcclAllReduceMultipleWithRetry in flight: a ring. */
struct batch {
    const pcclReduceOpDescriptor_t *ops;
    size_t count;
    pcclResult_t *results;   /* of each operation; LOST: it is to be launched */
    pcclReduceInfo_t *infos; /* of each, or NULL */
    pcclReduceInfo_t sum;
    pccl_ns until;
    size_t room, first, flying, next;
    struct op *window[BATCH_MAX];
    size_t index[BATCH_MAX]; /* of each of the window */
};

/* Launches as many as may fly; stops at an error, and returns it. */
static pcclResult_t launch_some(pcclComm_t *c, struct batch *b)
{
    for (; b->next < b->count && b->flying < b->room; b->next++) {
        const pcclReduceOpDescriptor_t *d = &b->ops[b->next];
        size_t slot = (b->first + b->flying) % b->room;
        if (b->results[b->next] != pcclRankConnectionLost) continue;
        pcclResult_t rc = api_launch_reduce(c, d->sendbuf, d->recvbuf,
                                            &d->descriptor, &b->window[slot]);
        if (rc == pcclRankConnectionLost) continue; /* the next pass */
        if (rc != pcclSuccess) {
            b->results[b->next] = rc;
            return rc;
        }
        op_set_awaited(b->window[slot], true);
        progress_launched(c);
        b->index[slot] = b->next;
        b->flying++;
    }
    return pcclSuccess;
}

/* The oldest one. */
static pcclResult_t land(pcclComm_t *c, struct batch *b)
{
    size_t index = b->index[b->first];
    pcclReduceInfo_t info = {0};
    pcclResult_t rc = api_take(c, b->window[b->first], b->until, &info);
    b->results[index] = rc;
    b->first = (b->first + 1) % b->room;
    b->flying--;
    if (rc != pcclSuccess) return rc;
    if (b->infos) b->infos[index] = info;
    b->sum.tx_bytes += info.tx_bytes;
    b->sum.rx_bytes += info.rx_bytes;
    b->sum.local_world_size = info.local_world_size;
    return rc;
}

static bool stops(pcclResult_t rc)
{
    return rc != pcclSuccess && rc != pcclRankConnectionLost;
}

/* One pass over the operations that are left: launches as many as may fly,
 * awaits the oldest first. Returns the first result that ends the call. */
static pcclResult_t pass(pcclComm_t *c, struct batch *b)
{
    pcclResult_t worst = pcclSuccess;
    b->next = 0;
    do {
        if (worst == pcclSuccess) worst = launch_some(c, b);
        if (b->flying == 0) break;
        pcclResult_t rc = land(c, b);
        if (stops(rc) && worst == pcclSuccess) worst = rc;
    } while (b->flying > 0 || (b->next < b->count && worst == pcclSuccess));
    return worst;
}

static size_t count_left(const struct batch *b)
{
    size_t left = 0;
    for (size_t i = 0; i < b->count; i++)
        left += b->results[i] == pcclRankConnectionLost;
    return left;
}

/* Locked. Lost members are no reason to end. */
static pcclResult_t reduce_all(pcclComm_t *c, struct batch *b,
                               int max_in_flight)
{
    b->room = (size_t)max_in_flight;
    if (b->room > BATCH_MAX) b->room = BATCH_MAX;
    b->until = comm_limit(c);
    for (size_t i = 0; i < b->count; i++)
        b->results[i] = pcclRankConnectionLost;
    pcclResult_t rc = pcclSuccess;
    for (size_t left = b->count; left > 0 && rc == pcclSuccess;) {
        rc = pass(c, b);
        left = count_left(b);
        if (rc == pcclSuccess) c->counters.retries += left;
    }
    return rc;
}

pcclResult_t pcclAllReduceMultipleWithRetry(const pcclReduceOpDescriptor_t *ops,
                                            size_t count,
                                            const pcclComm_t *comm,
                                            pcclReduceInfo_t *reduce_info_out,
                                            int max_in_flight)
{
    pcclComm_t *c;
    pcclResult_t rc = api_enter(comm, &c);
    if (rc != pcclSuccess) return rc;
    if (!ops || count == 0 || max_in_flight <= 0)
        return api_leave(c, pcclInvalidArgument);
    struct batch b = {.ops = ops, .count = count};
    b.results = calloc(count, sizeof *b.results);
    if (!b.results) return api_leave(c, pcclInternalError);
    rc = reduce_all(c, &b, max_in_flight);
    free(b.results);
    if (rc == pcclSuccess && reduce_info_out) *reduce_info_out = b.sum;
    return api_leave(c, rc);
}

pcclResult_t pcclAllReduceMultipleWithResults(
    const pcclReduceOpDescriptor_t *ops, size_t count, const pcclComm_t *comm,
    pcclResult_t *results, pcclReduceInfo_t *infos, int max_in_flight)
{
    pcclComm_t *c;
    pcclResult_t rc = api_enter(comm, &c);
    if (rc != pcclSuccess) return rc;
    if (!ops || count == 0 || max_in_flight <= 0 || !results)
        return api_leave(c, pcclInvalidArgument);
    struct batch b = {
        .ops = ops, .count = count, .results = results, .infos = infos};
    if (infos) memset(infos, 0, count * sizeof *infos);
    return api_leave(c, reduce_all(c, &b, max_in_flight));
}
