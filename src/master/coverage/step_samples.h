/* step_samples.h - how many samples of a step the members of a group have
 * (rules G).
 *
 * Members report; the coordinator adds, and sends all of them the sum and when
 * the step has as many as it is to have. It has no effect on membership, nor on
 * any operation. */
#ifndef PCCL_STEP_SAMPLES_H
#define PCCL_STEP_SAMPLES_H

#include "../../base/base.h"
#include "../../base/wire.h"

struct master;

/* The last report of a peer, and its speed. */
struct samples_of_peer {
    bool used;
    bool over; /* its step: it was reached, or was not the highest (rule G3) */
    uint64_t step, count, target;
    uint64_t total; /* of all steps */
    /* Samples per second between the last two times that it is read. */
    uint64_t rate, looked;
    pccl_ns looked_at;
};

/* All zero in a new group. */
struct samples_of_group {
    bool used;
    bool stale;   /* the members have changed */
    bool changed; /* since the sum was sent */
    bool urgent;  /* a change that is sent at once */
    /* The highest step that a member has reported: what the members have of
     * it, and the largest of their targets. */
    uint64_t step, sum, target;
    uint32_t members;
    bool reached; /* it is over for a member in it, whoever dies (rule G3) */
};

void samples_take(struct master *m, uint32_t link, const struct wire_msg *msg);
/* The members of a group have changed; true once the sum is sent. */
void samples_settle(struct master *m, uint32_t group);
void samples_tick(struct master *m);
/* Samples per second of a peer, lately; 0: none, or not known. */
uint64_t samples_rate(const struct master *m, uint32_t link);

#endif
