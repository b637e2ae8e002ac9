/* told.h - the last report of each peer (rules W1, W2). */
#ifndef PCCL_MASTER_TOLD_H
#define PCCL_MASTER_TOLD_H

#include "../master.h"

struct master_told {
    pccl_ns at; /* when it came */
    uint32_t epoch;
    bool current; /* of the view in force then: its operations are known */
    struct wire_self self;
    struct wire_traffic traffic;
    char host[WIRE_NAME_MAX + 1];
    uint32_t wait_count, set_count, quiet_count;
    struct wire_wait waits[WIRE_WAITS_MAX];
    /* How fast the data of each moved between two looks, and how fast any did
     * at most: bytes per second. */
    struct told_pace {
        uint64_t moved, rate;
    } paces[WIRE_WAITS_MAX];
    pccl_ns paced_at;
    uint64_t best;
    uint64_t quiet[2 * WIRE_QUIET_MAX]; /* members, ms */
    struct master_set *sets;
    enum evidence seen; /* of the process, by its host; after seen_at */
    pccl_ns seen_at;
};

void told_take(struct master *m, uint32_t link, const struct wire_msg *msg);
/* The members of the scope; NULL: the whole view, or not known. */
const struct master_set *told_scope(const struct master_told *told,
                                    uint64_t scope);
/* The same operation in that report, or NULL. */
const struct wire_wait *told_lists(const struct master_told *told,
                                   const struct wire_wait *op);
/* The rate of an operation that it lists. */
uint64_t told_rate(const struct master_told *told, const struct wire_wait *op);
/* That report answers the question for it with PAST, or with LACKS (W3). */
bool told_answers(const struct master_told *told, const struct wire_wait *op,
                  enum wait_kind answer);
/* It hears nothing of the member. */
bool told_is_quiet(const struct master_told *told, uint64_t id);

#endif
