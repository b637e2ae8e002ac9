/* api_statistics.c - the calls of pccl.h that tell what has happened. */
#include "api.h"

#include <stddef.h>
#include <string.h>

_Static_assert((int)KIND_COUNT <= (int)PCCL_STATISTICS_KINDS,
               "every kind has a place");

static void copy_operations(const struct counters *n, pcclStatistics_t *to)
{
    for (int i = 0; i < KIND_COUNT; i++)
        to->operations[i] =
            (pcclOperationCounts_t){.started = n->operations[i].started,
                                    .succeeded = n->operations[i].succeeded,
                                    .lost = n->operations[i].lost,
                                    .failed = n->operations[i].failed};
}

static pcclStatistics_t statistics_of(const struct counters *n)
{
    pcclStatistics_t s = {.tcp_sent_bytes = n->tcp_sent,
                          .tcp_received_bytes = n->tcp_received,
                          .shared_sent_bytes = n->shared_sent,
                          .shared_received_bytes = n->shared_received,
                          .mapped_received_bytes = n->mapped_received,
                          .cma_received_bytes = n->cma_received,
                          .sync_sent_bytes = n->synced_sent,
                          .sync_received_bytes = n->synced_received,
                          .epochs = n->epochs,
                          .updates = n->updates,
                          .recoveries = n->recoveries,
                          .recovery_ns = (uint64_t)n->recovery,
                          .recovery_longest_ns = (uint64_t)n->recovery_longest,
                          .losses = n->losses,
                          .joins = n->joins,
                          .restarts = n->restarts,
                          .retries = n->retries,
                          .waits = n->waits,
                          .wait_ns = (uint64_t)n->wait};
    copy_operations(n, &s);
    return s;
}

pcclResult_t pcclGetStatistics(const pcclComm_t *comm,
                               pcclStatistics_t *statistics)
{
    pcclComm_t *c;
    pcclResult_t rc = api_begin(comm, &c);
    if (rc != pcclSuccess) return rc;
    if (!statistics ||
        statistics->size < offsetof(pcclStatistics_t, tcp_sent_bytes))
        return api_leave(c, pcclInvalidArgument);
    struct counters now = c->counters;
    if (c->session) count_fast(&now, c->session);
    pcclStatistics_t all = statistics_of(&now);
    size_t size = statistics->size;
    all.size = size < sizeof all ? size : sizeof all;
    memcpy(statistics, &all, all.size);
    return api_leave(c, pcclSuccess);
}

/* ------------------------------------------------------------------- trace */

pcclResult_t pcclTraceEnabled(bool *enabled_out)
{
    if (!enabled_out) return pcclInvalidArgument;
    *enabled_out = trace_is_on();
    return pcclSuccess;
}

pcclResult_t pcclTraceBegin(pcclComm_t *comm, const char *name, uint64_t member,
                            uint64_t bytes)
{
    if (!comm || !name) return pcclInvalidArgument;
    if (!trace_is_on()) return pcclSuccess;
    pcclComm_t *c;
    pcclResult_t rc = api_begin(comm, &c);
    if (rc != pcclSuccess) return rc;
    comm_tell_call(c, name, member, bytes);
    return api_leave(c, pcclSuccess);
}

pcclResult_t pcclTraceEnd(pcclComm_t *comm)
{
    if (!comm) return pcclInvalidArgument;
    if (!trace_is_on()) return pcclSuccess;
    pcclComm_t *c;
    pcclResult_t rc = api_begin(comm, &c);
    if (rc != pcclSuccess) return rc;
    comm_tell_return(c);
    return api_leave(c, pcclSuccess);
}
