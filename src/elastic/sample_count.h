/* sample_count.h - how many samples of a step of the program this member has,
 * and its group, as far as it knows (rules G).
 *
 * A plain struct, so that a driver may keep a copy for other threads. */
#ifndef PCCL_SAMPLE_COUNT_H
#define PCCL_SAMPLE_COUNT_H

#include "../base/base.h"

/* By the program. */
struct sample_report {
    bool used;
    uint64_t step, count;
    uint64_t target; /* of the group; 0: not known */
};

struct sample_sum {
    bool known;
    uint64_t step, count, target;
    uint32_t members; /* that have reported for the step */
    bool reached;     /* the step of the own report; without one, this step */
};

struct sample_count {
    struct sample_report own, sent;
    pccl_ns sent_at;
    pccl_ns interval; /* between two reports, at least (G5) */
    bool hurried;     /* one has gone out before that time, in this step */
    bool reached;     /* the step of the own report has its samples */
    struct sample_sum told; /* by the coordinator; reached: of its step */
};

/* The program reports. */
void sample_report(struct sample_count *c, const struct sample_report *report);
/* The coordinator tells. */
void sample_told(struct sample_count *c, const struct sample_sum *sum);
/* The report has not been sent yet, and may be now. */
bool sample_due(const struct sample_count *c, pccl_ns now);
/* It is sent now. */
void sample_sent(struct sample_count *c, pccl_ns now);
/* What the program may know. */
struct sample_sum sample_look(const struct sample_count *c);

#endif
