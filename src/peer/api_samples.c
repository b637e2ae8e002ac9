/* api_samples.c - the calls of pccl.h for the samples of a step. They take no
 * lock but the box's (comm_samples.c). */
#include "api.h"

_Static_assert(PCCL_SAMPLES_MAX == WIRE_SAMPLES_MAX, "limits");

/* Begins a call; the lock is held on success. */
static pcclResult_t enter(const pcclComm_t *comm, struct comm_samples **box)
{
    pcclResult_t rc = api_ready(comm);
    if (rc != pcclSuccess) return rc;
    struct comm_samples *b = &((pcclComm_t *)(uintptr_t)comm)->samples;
    atomic_fetch_add(&b->inside, 1);
    pthread_mutex_lock(&b->lock);
    *box = b;
    if (b->state != SAMPLES_CLOSED) return pcclSuccess;
    pthread_mutex_unlock(&b->lock);
    atomic_fetch_sub(&b->inside, 1);
    return pcclInvalidUsage;
}

static pcclResult_t leave(struct comm_samples *b, pcclResult_t result)
{
    if (b->state == SAMPLES_LOST && result == pcclSuccess)
        result = pcclMasterConnectionFailed;
    pthread_mutex_unlock(&b->lock);
    atomic_fetch_sub(&b->inside, 1);
    return result;
}

pcclResult_t pcclReportProgress(pcclComm_t *comm, uint64_t step,
                                uint64_t samples, uint64_t target)
{
    struct comm_samples *b;
    pcclResult_t rc = enter(comm, &b);
    if (rc != pcclSuccess) return rc;
    if (samples > PCCL_SAMPLES_MAX) return leave(b, pcclInvalidArgument);
    b->report = (struct sample_report){true, step, samples, target};
    b->fresh = true;
    sample_report(&b->count, &b->report);
    /* It writes to an eventfd, which does not wait. The descriptor lives until
     * the box is closed. */
    if (b->state == SAMPLES_OPEN && sample_due(&b->count, comm_now()))
        io_loop_wake(&comm->background.loop);
    return leave(b, pcclSuccess);
}

pcclResult_t pcclGetProgress(const pcclComm_t *comm, pcclProgress_t *progress)
{
    struct comm_samples *b;
    const size_t all = sizeof *progress;
    if (!progress || progress->size < all) {
        pcclResult_t rc = api_ready(comm);
        return rc != pcclSuccess ? rc : pcclInvalidArgument;
    }
    pcclResult_t rc = enter(comm, &b);
    if (rc != pcclSuccess) return rc;
    struct sample_sum sum = sample_look(&b->count);
    *progress = (pcclProgress_t){.size = all,
                                 .step = sum.step,
                                 .samples = sum.count,
                                 .target = sum.target,
                                 .members = sum.members,
                                 .reached = sum.reached};
    if (b->state == SAMPLES_LOST) progress->reached = true;
    return leave(b, pcclSuccess);
}
