/* master_report.h - the master's notes as log lines; no I/O. */
#ifndef PCCL_MASTER_REPORT_H
#define PCCL_MASTER_REPORT_H

#include "../master.h"

enum {
    REPORT_SIZE = 512,
    REPORT_RANKS_MAX = 16, /* ranks named in one line; others are counted */
};

/* Collects departures until the view that ends their round. */
struct master_report {
    const struct master *machine; /* for the names of hosts; or NULL */
    struct report_list {
        uint32_t count;
        char one[160]; /* a single departure */
        uint32_t ranks[REPORT_RANKS_MAX];
    } lost, left;
    bool aborted; /* the run is over: its evictions are not reported */
};

/* Handles a note. True: `line` is to be printed. */
bool master_report_note(struct master_report *r, const struct master_note *note,
                        char line[REPORT_SIZE]);

#endif
