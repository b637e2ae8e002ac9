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

/* The words of a member's report about an operation. */
struct wait_entry {
    uint32_t link;
    uint32_t next; /* of the operation, as a number plus 1; 0: none */
    enum wait_part part;
    const struct wire_wait *wait;
};

/* An operation that the program of a member waits in. */
struct wait_op {
    uint32_t group, waiter;         /* index; link of the first one */
    const struct wire_wait *wait;   /* its report */
    const struct master_set *scope; /* that it reports; NULL: see `whole` */
    bool whole;                     /* the whole view */
    uint32_t same_hash, entries;    /* numbers plus 1; 0: none */
    uint32_t visit;                 /* of wait_leads_to() */
    bool judged;                    /* by the user of the graph */
};

/* All operations that somebody waits in, and all reports about them. Made in
 * time linear in the reports, and valid as long as these are. */
struct wait_graph {
    const struct master *m;
    struct wait_op *ops; /* as their first waiters list them, by link */
    uint32_t op_count;
    struct wait_entry *entries;
    uint32_t entry_count;
    uint32_t *heads, mask;    /* a hash of the operations */
    struct wait_ranks *ranks; /* by group */
    uint32_t visit;
    /* The operation of wait_part(), and by link its entries. */
    const struct wait_op *of;
    const struct wait_entry *of_link[MASTER_LINKS_MAX];
};

/* NULL: no memory. */
struct wait_graph *wait_graph_new(const struct master *m);
void wait_graph_free(struct wait_graph *g);
/* The operation of that name, or NULL: nobody waits in it. */
struct wait_op *wait_graph_find(const struct wait_graph *g, uint32_t group,
                                const struct wire_wait *w);
/* The entries about it, by link. */
const struct wait_entry *wait_graph_first(const struct wait_graph *g,
                                          const struct wait_op *op);
const struct wait_entry *wait_graph_next(const struct wait_graph *g,
                                         const struct wait_entry *e);
/* From here on wait_part() is about this operation. */
void wait_graph_choose(struct wait_graph *g, const struct wait_op *op);
enum wait_part wait_part(const struct wait_graph *g, uint32_t link);
/* The numbers of members that lack it, and of whom that is not known. */
void wait_graph_count(const struct wait_graph *g, const struct wait_op *op,
                      uint32_t *lacks, uint32_t *unknown);
/* Calls the function for the members of the scope that are not silent, by rank,
 * until it says false: this member is left out from then on. */
typedef bool wait_visitor(void *user, uint32_t link);
void wait_graph_visit(struct wait_graph *g, const struct wait_op *op,
                      wait_visitor *visit, void *user);
/* Whether the member, through calls that wait for each other, waits for one of
 * the targets in the end. */
bool wait_leads_to(struct wait_graph *g, uint32_t from, const uint32_t *targets,
                   uint32_t count);

#endif
