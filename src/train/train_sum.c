/* train_sum.c - the one place where this library communicates. */
#include "train.h"

#include <stdlib.h>
#include <string.h>

enum { VECTOR = 0, EXACT = 1 };

static bool is_quantized(const struct train_sum *s)
{
    return s->quantization.algorithm != pcclQuantNone && s->count > s->exact;
}

bool train_sum_in_flight(const struct train_sum *s)
{
    return s->parts[VECTOR].in_flight || s->parts[EXACT].in_flight;
}

void train_sum_turn(struct train_sum *s, const pcclComm_t *comm)
{
    for (int i = VECTOR; i <= EXACT; i++) {
        struct train_part *part = &s->parts[i];
        bool done; /* a new communicator may have the address of the old one */
        if (part->in_flight &&
            (part->handle.comm != comm ||
             pcclTestAsync(&part->handle, &done) == pcclInvalidArgument))
            part->in_flight = false;
    }
}

pcclResult_t train_sum_scope(struct train_sum *s, const uint64_t *members,
                             size_t count, const char *function)
{
    uint64_t *kept = NULL;
    if ((members == NULL) != (count == 0))
        return train_fail(pcclInvalidArgument,
                          "%s: members and their count do not match", function);
    if (train_sum_in_flight(s))
        return train_fail(pcclPendingAsyncOps, "%s: a sum is in flight",
                          function);
    if (count > 0) {
        kept = malloc(count * sizeof *kept);
        if (!kept)
            return train_fail(pcclInternalError, "%s: out of memory", function);
        memcpy(kept, members, count * sizeof *kept);
    }
    free(s->members);
    s->members = kept;
    s->member_count = count;
    return pcclSuccess;
}

static pcclResult_t launch_quantized(struct train_sum *s, pcclComm_t *comm)
{
    pcclReduceDescriptor_t sum = {.count = s->count - s->exact,
                                  .op = pcclSum,
                                  .tag = s->tag + 1,
                                  .src_descriptor.datatype = pcclFloat,
                                  .quantization_options = s->quantization};
    return pcclAllReduceAsync(s->send, s->recv, &sum, comm,
                              &s->parts[VECTOR].handle);
}

/* All of it, or what follows the quantized vector. */
static pcclResult_t launch_exact(struct train_sum *s, pcclComm_t *comm)
{
    size_t from = is_quantized(s) ? s->count - s->exact : 0;
    pcclCollective_t sum = {.size = sizeof sum,
                            .kind = pcclKindAllReduce,
                            .tag = s->tag,
                            .sendbuf = s->send + from,
                            .recvbuf = s->recv + from,
                            .count = s->count - from,
                            .datatype = pcclFloat,
                            .op = pcclSum,
                            .user_digest = s->digest,
                            .members = s->members,
                            .member_count = s->member_count,
                            .arguments = s->arguments,
                            .argument_count = s->argument_count};
    return pcclCollectiveAsync(&sum, comm, &s->parts[EXACT].handle);
}

pcclResult_t train_sum_launch(struct train_sum *s, pcclComm_t *comm)
{
    if (!comm) return train_fail(pcclInvalidArgument, "comm is NULL");
    s->result = pcclSuccess;
    s->info = (pcclReduceInfo_t){0};
    pcclResult_t rc = launch_exact(s, comm);
    if (rc != pcclSuccess)
        return train_fail_comm(rc, comm, "launching the sum");
    s->parts[EXACT].in_flight = true;
    if (!is_quantized(s)) return pcclSuccess;
    /* A loss meets the exact part, too: its await has the result of both. */
    s->result = launch_quantized(s, comm);
    s->parts[VECTOR].in_flight = s->result == pcclSuccess;
    if (s->result != pcclSuccess)
        (void)train_fail_comm(s->result, comm, "launching the sum");
    return pcclSuccess;
}

pcclResult_t train_sum_await(struct train_sum *s)
{
    for (int i = VECTOR; i <= EXACT; i++) {
        struct train_part *part = &s->parts[i];
        if (!part->in_flight) continue;
        pcclReduceInfo_t info = {0};
        pcclResult_t rc = pcclAwaitAsyncReduce(&part->handle, &info);
        if (rc != pcclSuccess)
            (void)train_fail_comm(rc, part->handle.comm, "the sum");
        if (rc == pcclCancelled || rc == pcclTimedOut) return rc;
        part->in_flight = false;
        if (s->result == pcclSuccess) s->result = rc;
        s->info.local_world_size = info.local_world_size;
        s->info.tx_bytes += info.tx_bytes;
        s->info.rx_bytes += info.rx_bytes;
    }
    return s->result;
}
