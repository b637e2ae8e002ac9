/* run_status.h - the state of a run for its operator, as text and as JSON (rule
 * W6). */
#ifndef PCCL_MASTER_RUN_STATUS_H
#define PCCL_MASTER_RUN_STATUS_H

#include "events.h"
#include "../master.h"
#include "../../base/growing_text.h"

struct status_source {
    const struct master *machine;
    const struct run_events *events;
    const struct run_history *history;
    pccl_ns first;         /* its times count from here */
    const uint64_t *noted; /* events so far, of each master_note_kind */
    const char *address;   /* of the coordinator */
    time_t begun, now;
    double up;   /* s */
    double took; /* s, to write the former status */
};

void run_status_text(const struct status_source *s, struct growing_text *out);
/* Also where the events begin, and what a reader needs once only. */
void run_status_json(const struct status_source *s, struct growing_text *out,
                     size_t *events, size_t *history);
/* In the text format of Prometheus. */
void run_metrics(const struct status_source *s, struct growing_text *out);

/* --- shared by the files of the status --- */
/* "joined", "lost", ... */
const char *run_event_kind(enum master_note_kind kind);
/* "member", "newcomer", "lost", ... */
const char *run_status_state(const struct master *m, uint32_t link);
/* What the peer does, by its last report: "MPI_Allreduce on ...", "computes".
 */
void run_status_activity(const struct master *m, uint32_t link, char *text,
                         size_t size);
struct status_link {
    uint32_t from, to; /* as the coordinator's links */
    struct bandwidth_edge edge;
};
/* The measured links between members of one group, in a small world, and their
 * number: from each of STATUS_LINKS_MAX members no more than so many. */
uint32_t run_status_links(const struct master *m, struct status_link *links);
/* Waits shorter than this are not shown as such. */
pccl_ns run_status_age(const struct master *m);

enum {
    STATUS_LINKS_MAX = 32,   /* links are shown in worlds up to this size */
    STATUS_SERIES_MAX = 512, /* metrics of members, likewise */
    NOTE_KIND_COUNT = NOTE_SUCCESSION + 1,
};

#endif
