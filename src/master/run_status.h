/* run_status.h - the state of a run for its operator, as text and as JSON (rule
 * W6). */
#ifndef PCCL_MASTER_RUN_STATUS_H
#define PCCL_MASTER_RUN_STATUS_H

#include "events.h"
#include "master.h"
#include "growing_text.h"

struct status_source {
    const struct master *machine;
    const struct run_events *events;
    const char *address; /* of the coordinator */
    time_t now;
    double up; /* s */
};

void run_status_text(const struct status_source *s, struct growing_text *out);
void run_status_json(const struct status_source *s, struct growing_text *out);

/* --- shared by the files of the status --- */
/* "member", "newcomer", "lost", ... */
const char *run_status_state(const struct master *m, uint32_t link);
/* What the peer does, as it told last: "MPI_Allreduce on ...", "computes". */
void run_status_activity(const struct master *m, uint32_t link, char *text,
                         size_t size);
/* Waits shorter than this are not shown as such. */
pccl_ns run_status_age(const struct master *m);

enum { STATUS_LINKS_MAX = 32 }; /* links are shown in worlds up to this size */

#endif
