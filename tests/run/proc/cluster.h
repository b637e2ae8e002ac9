/* cluster.h - a master and ranks as real processes, for one test.
 *
 * The test process starts a master and forks ranks that run a given body. It
 * receives their reports, sends them orders and signals. Every child dies with
 * its parent, and cluster_stop() kills and reaps the rest. All waits are on
 * pipes, and end after PATIENCE_MS. */
#ifndef PROC_CLUSTER_H
#define PROC_CLUSTER_H

#include "pccl.h"

#include "../../patience.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

enum { CLUSTER_RANKS_MAX = 64 };

struct report {
    int32_t kind;
    int32_t unused;
    int64_t value;
};

/* State of a rank, in its own process. */
struct seat {
    int index;
    uint16_t port; /* of the master */
    const void *arg;
    int report_fd;
    int order_fd;
};

typedef void seat_body(struct seat *seat);

struct cluster {
    uint16_t port;
    pid_t master; /* 0: none */
    int count;
    struct cluster_rank {
        pid_t pid; /* 0: reaped */
        int report_fd;
        int order_fd;
    } ranks[CLUSTER_RANKS_MAX];
};

/* --- in the test process; failures end the CMocka test --- */
/* deadline: seconds, for the master and every rank started afterwards. */
void cluster_start(struct cluster *c, const char *deadline);
void cluster_stop(struct cluster *c);
int cluster_add(struct cluster *c, seat_body *body, const void *arg);
/* The value of the next report of this rank, which must be of that kind. */
int64_t cluster_await(struct cluster *c, int rank, int kind);
/* Whether the rank sends a report or ends within the time; consumes no
 * report. */
bool cluster_has_report(const struct cluster *c, int rank, int timeout_ms);
void cluster_order(struct cluster *c, int rank, int32_t order);
/* Asserts that the rank ends with status 0 and without further reports. */
void cluster_finish(struct cluster *c, int rank);
/* Returns when the process is gone (SIGKILL) or stopped (SIGSTOP). */
void cluster_signal(struct cluster *c, int rank, int sig);
void cluster_signal_master(struct cluster *c, int sig);

/* --- in a rank; failures end its process with status 1 --- */
void seat_report(const struct seat *seat, int kind, int64_t value);
int32_t seat_hear(const struct seat *seat);
/* A communicator of the cluster's run, not connected; its rank hint is the
 * seat's number. */
pcclComm_t *seat_create(const struct seat *seat);
/* Likewise, with that many connections to each neighbour. */
pcclComm_t *seat_create_pool(const struct seat *seat, uint32_t pool);
/* Created and connected. */
pcclComm_t *seat_join(const struct seat *seat);
/* Updates until the world has that size. An admitted member continues at the
 * same point as the others. */
void seat_gather(const struct seat *seat, pcclComm_t *comm, int size);
_Noreturn void seat_fail(const struct seat *seat, const char *file, int line,
                         const char *text, int64_t got, int64_t want);

#define SEAT_CHECK(seat, condition)                                            \
    do {                                                                       \
        if (!(condition))                                                      \
            seat_fail((seat), __FILE__, __LINE__, #condition, 0, 1);           \
    } while (0)

#define SEAT_EQUAL(seat, got, want)                                            \
    do {                                                                       \
        int64_t got_ = (int64_t)(got);                                         \
        int64_t want_ = (int64_t)(want);                                       \
        if (got_ != want_)                                                     \
            seat_fail((seat), __FILE__, __LINE__, #got, got_, want_);          \
    } while (0)

/* --- in both --- */
ccoip_socket_address_t cluster_address(uint16_t port); /* 127.0.0.1 */
int world_size(const pcclComm_t *comm);
int64_t now_ms(void);
/* Returns when the thread of this process, 0 before it has its number, sleeps:
 * its call waits. */
void wait_until_asleep(const atomic_int *thread);

#endif
