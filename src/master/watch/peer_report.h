/* peer_report.h - the last report of each peer (rules W1, W2). */
#ifndef PCCL_PEER_REPORT_H
#define PCCL_PEER_REPORT_H

#include "../master.h"

struct peer_report {
    pccl_ns at; /* when it came */
    uint32_t epoch;
    bool current; /* of the view in force then: its operations are known */
    struct wire_self self;
    struct wire_traffic traffic;
    char host[WIRE_NAME_MAX + 1];
    uint32_t wait_count, set_count, quiet_count;
    struct wire_wait waits[WIRE_WAITS_MAX];
    /* How fast the data of each moved between two reports, and how fast any
     * did at most: bytes per second. */
    struct report_pace {
        uint64_t moved, rate;
    } paces[WIRE_WAITS_MAX];
    pccl_ns paced_at;
    uint64_t best;
    uint64_t quiet[2 * WIRE_QUIET_MAX]; /* members, ms */
    struct master_set *sets;
    enum evidence seen; /* of the process, by its host; after seen_at */
    pccl_ns seen_at;
};

void peer_report_take(struct master *m, uint32_t link,
                      const struct wire_msg *msg);
/* The members of the scope; NULL: the whole view, or not known. */
const struct master_set *peer_report_scope(const struct peer_report *report,
                                           uint64_t scope);
/* The rate of an operation that it lists. */
uint64_t peer_report_rate(const struct peer_report *report,
                          const struct wire_wait *op);
/* It hears nothing of the member. */
bool peer_report_is_quiet(const struct peer_report *report, uint64_t id);

#endif
