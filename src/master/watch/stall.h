/* stall.h - who keeps whom waiting, and why (rules W). Pure: it reads the
 * coordinator's state and what members report with their heartbeats, and
 * changes neither. */
#ifndef PCCL_STALL_H
#define PCCL_STALL_H

#include "../master.h"

enum {
    STALLS_MAX = 64,
    STALL_WAITERS_MAX = 8, /* named; more are counted */
    STALL_TEXT_MAX = 512
};

/* The object of a wait. */
enum stall_object {
    STALL_OPERATION, /* wait: of a member that waits */
    STALL_MESSAGE,   /* wait: the receive or send of one */
    STALL_UPDATE,
    STALL_PENDING, /* whether newcomers wait */
    STALL_OPTIMIZE,
    STALL_SYNC,
    STALL_ADMISSION, /* newcomers wait for members to update */
    STALL_QUORUM,    /* newcomers, or members, wait for more newcomers */
    STALL_ROUND,     /* a change of the view is under way */
};

/* Why the culprit keeps the others waiting. */
enum stall_cause {
    CAUSE_NONE,       /* there is no culprit: members are missing */
    CAUSE_STOPPED,    /* by a signal */
    CAUSE_TRACED,     /* a debugger holds it */
    CAUSE_STARVED,    /* it gets no CPU time */
    CAUSE_SILENT,     /* its heartbeats are missing, its host says nothing:
                         the host or the path to it is down */
    CAUSE_COMPUTES,   /* it has not called, and uses CPU time */
    CAUSE_SWAPS,      /* it has not called, and waits for pages */
    CAUSE_NOT_CALLED, /* it has not called, and sleeps */
    CAUSE_OTHER_CALL, /* it waits in another call: `his`, or a vote */
    CAUSE_RECEIVES,   /* it waits for a message of `other` */
    CAUSE_SENDS,      /* `other` does not take its message */
    CAUSE_CYCLE,      /* CAUSE_SENDS, and `other` waits for it in turn */
    CAUSE_HALF_OPEN,  /* `other` hears nothing of it; it hears `other` */
    CAUSE_PARTITION,  /* neither hears the other one */
    CAUSE_SLOW,       /* all have called, and data move slower than they did */
    CAUSE_NO_DATA,    /* all have called, and none move */
    CAUSE_MOVES,      /* all have called, and data move as they did */
    CAUSE_COUNT,
};

struct stall {
    enum stall_object object;
    enum stall_cause cause;
    uint32_t group;   /* index */
    uint32_t culprit; /* link, or MASTER_NO_LINK */
    uint32_t other;   /* link, or MASTER_NO_LINK */
    pccl_ns age;      /* of the wait, as its first waiter has it */
    struct wire_wait wait;
    struct wire_wait his;       /* CAUSE_OTHER_CALL to CAUSE_CYCLE */
    enum stall_object his_vote; /* OTHER_CALL: STALL_OPERATION if `his` */
    uint32_t waiter_count;
    uint32_t waiters[STALL_WAITERS_MAX]; /* links */
    uint32_t have, want; /* QUORUM: newcomers, or with the members */
    uint64_t rate, best; /* SLOW, MOVES: bytes per second, now and at most */
};

/* All waits that are at least that old, the causes of others first; their
 * number. Zeroes what it needs of `out`. */
uint32_t stall_find(const struct master *m, pccl_ns age, struct stall *out,
                    uint32_t most);

/* Asks members for operations that others wait in and that they do not
 * report (W3). `all`: everybody, who reports at once what it does. */
void stall_ask(struct master *m, bool all);

/* One line, without newline. */
void stall_print(const struct master *m, const struct stall *s,
                 char text[STALL_TEXT_MAX]);
/* "rank 2 (n17, pid 812)", "newcomer (n17, pid 812)". */
void stall_print_peer(const struct master *m, uint32_t link, char *text,
                      size_t size);
/* "MPI_Allreduce on MPI_COMM_WORLD (call 12)". */
void stall_print_wait(const struct wire_wait *w, char *text, size_t size);
const char *stall_cause_name(enum stall_cause cause);
const char *stall_object_name(enum stall_object object);

#endif
