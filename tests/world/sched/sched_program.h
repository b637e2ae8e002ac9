/* sched_program.h - the programs that members run in a schedule. */
#ifndef SCHED_PROGRAM_H
#define SCHED_PROGRAM_H

#include "pccl.h"

#include "sched.h"

enum { SCHED_MEMBERS_MAX = 6, SCHED_OPS_MAX = 256 };

struct sched_run {
    uint64_t seed;
    int members; /* founders, and those that join later */
    int founders;
    int rounds;
    uint16_t port;
    pcclMasterInstance_t *master;
    const struct sched_program *program;
    uint32_t met[SCHED_MEMBERS_MAX];      /* meetings so far */
    int batches[SCHED_MEMBERS_MAX];       /* that a member has finished */
    uint64_t contributors[SCHED_OPS_MAX]; /* of each operation; 0: unknown */
    struct sched_seat {
        struct sched_run *run;
        int member;
        pcclComm_t *comm;
        uint64_t *in, *out;
        bool ended;
    } seats[SCHED_MEMBERS_MAX];
};

struct sched_program {
    const char *name;
    void (*body)(struct sched_seat *seat);
    bool prompt;      /* needs no timer */
    bool loses;       /* a member is killed at a random point */
    int rounds;       /* at most */
    int members_most; /* 0: SCHED_MEMBERS_MAX */
    int joins;        /* members that are no founders */
};

extern const struct sched_program sched_programs[];
extern const int sched_program_count;

/* --- sched_run.c --- */
void sched_run_program(const struct sched_program *program, uint64_t seed);
/* All live members come here. */
void sched_meet(struct sched_seat *seat);
/* Creates a communicator and connects it. */
void sched_join(struct sched_seat *seat);
/* Updates until the world has that size. */
void sched_gather(struct sched_seat *seat, int size);
int sched_world(const struct sched_seat *seat, int *rank);
/* The same number on all members. */
uint32_t sched_common(const struct sched_run *run, uint64_t what,
                      uint32_t limit);

/* --- sched_program.c --- */
void sched_collectives(struct sched_seat *seat);
void sched_losses(struct sched_seat *seat);
void sched_small(struct sched_seat *seat);
void sched_asynchronous(struct sched_seat *seat);
void sched_two_threads(struct sched_seat *seat);
/* An all-reduce that is repeated until no member is lost in it. False: this
 * member is alone. */
bool sched_reduce(struct sched_seat *seat, uint64_t key, uint64_t *in,
                  uint64_t *out);

#define SCHED_CHECK(seat, condition)                                           \
    do {                                                                       \
        if (!(condition))                                                      \
            sched_fail("%s:%d: member %d: not %s", __FILE__, __LINE__,         \
                       (seat)->member, #condition);                            \
    } while (0)

#define SCHED_RESULT(seat, got, want)                                          \
    do {                                                                       \
        pcclResult_t got_ = (got);                                             \
        if (got_ != (want))                                                    \
            sched_fail("%s:%d: member %d: %s is %d", __FILE__, __LINE__,       \
                       (seat)->member, #got, (int)got_);                       \
    } while (0)

#endif
