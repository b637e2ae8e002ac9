/* wait_graph.h - who waits for whom, by the last reports of members (rule W3).
 */
#ifndef PCCL_WAIT_GRAPH_H
#define PCCL_WAIT_GRAPH_H

#include "peer_report.h"

/* It takes part in the view, and goes on to. */
bool wait_is_member(const struct master_peer *p);
/* Nothing was heard of it for two heartbeats. */
bool wait_is_silent(const struct master *m, uint32_t link);
/* The link of the member of that group, or MASTER_NO_LINK. */
uint32_t wait_link_of(const struct master *m, uint32_t group, uint64_t id);
/* Its last report, if that is of the view in force; or NULL. */
const struct peer_report *wait_report(const struct master *m, uint32_t link);
/* The wait that its program is in, or NULL. */
const struct wire_wait *wait_blocked_in(const struct master *m, uint32_t link);

/* What a member has done of an operation that another one waits in. */
enum wait_part {
    WAIT_PART_NONE,    /* it is not of the operation's scope */
    WAIT_PART_SAME,    /* it has it under way */
    WAIT_PART_PAST,    /* it has returned from it */
    WAIT_PART_LACKS,   /* it has not called it */
    WAIT_PART_UNKNOWN, /* that is not known: it has to be asked */
};
enum wait_part wait_part_of(const struct master *m, uint32_t link,
                            uint32_t waiter, const struct wire_wait *w);

/* The report of a member with a lower number has the same operation, and its
 * program waits for it. */
bool wait_is_repeated(const struct master *m, uint32_t link,
                      const struct wire_wait *w);

/* Whether the member, through calls that wait for each other, waits for the
 * target in the end. */
bool wait_leads_to(const struct master *m, uint32_t from, uint32_t target);

#endif
