/* env.h - the list of all environment variables that this project reads, so
 * that misspelt ones can be reported. */
#ifndef PCCL_ENV_H
#define PCCL_ENV_H

#include <stdbool.h>
#include <stdint.h>

#define ENV_PREFIX "PCCL_"

#define ENV_LIST(X)                                                            \
    X(PCCL_MASTER, "HOST:PORT of the coordinator, or a list of them")          \
    X(PCCL_RANK, "rank that the launcher gave to this process")                \
    X(PCCL_WORLD_SIZE, "number of ranks that the launcher started")            \
    X(PCCL_PORTS, "FIRST-LAST: where this member listens for others")          \
    X(PCCL_ANNOUNCE, "HOST[:PORT] where other members reach this one")         \
    X(PCCL_ON_FAILURE, "abort, shrink, force or return")                       \
    X(PCCL_LOST_ROOT, "end or promote: a broadcast whose root was lost")       \
    X(PCCL_JOIN, "1: join a running job instead of starting one")              \
    X(PCCL_RESTART, "how often the launcher has started the job again")        \
    X(PCCL_SPARE, "1: wait for a line on standard input before joining")       \
    X(PCCL_DRAIN_SIGNAL, "signal that asks a rank to leave: USR2, TERM, ...")  \
    X(PCCL_DEADLINE, "seconds of silence after which a peer is lost")          \
    X(PCCL_MASTER_PATIENCE, "seconds of silence after which a master is lost") \
    X(PCCL_MASTER_GRACE, "seconds in which a newcomer waits for a master")     \
    X(PCCL_STALL_WARN, "seconds after which a wait is told; 0: never")         \
    X(PCCL_TOKEN_FILE, "file with the key of the run (--make-token)")          \
    X(PCCL_RELAY, "1: the coordinator relays between members (--relay)")       \
    X(PCCL_STATUS_TOKEN, "what readers of --status-http must send")            \
    X(PCCL_TRANSPORT, "auto, tcp or shm: between members of one host")         \
    X(PCCL_PLACE, "0: ranks wait where the kernel has put them")               \
    X(PCCL_EXCHANGE, "0: in-place sums copy, and exchange no pages")           \
    X(PCCL_ALGORITHM, "NAME or COLLECTIVE:NAME,...: forces algorithms")        \
    X(PCCL_INSECURE, "1: other hosts and users are admitted in clear")         \
    X(PCCL_LOG_LEVEL, "TRACE DEBUG INFO WARN ERR FATAL NONE")                  \
    X(PCCL_LOG_FILE, "file for log lines in place of stderr; %r %p %h")        \
    X(PCCL_LOG_FORMAT, "text, or json: an object per line")                    \
    X(PCCL_TRACE, "file for a trace of each rank; %r %p %h")                   \
    X(PCCL_MAX_CONCURRENT_COLLECTIVE_OPS, "operations in flight")              \
    X(PCCL_MULTIPLEX_CHUNK_SIZE, "bytes sent before the next operation")       \
    X(PCCL_NUM_BENCHMARK_CONNECTIONS, "connections of a bandwidth probe")

/* name ends at '\0' or '='. */
bool env_is_known(const char *name);

/* Calls warn once for every variable of this process that begins with PCCL_ and
 * is not in the list. No other thread may change the environment meanwhile. */
void env_warn_unknown(void (*warn)(const char *name));

/* Calls warn once for each variable that is set and has meant something to PCCL
 * 1.0 only. */
void env_warn_idle(void (*warn)(const char *name));

/* PCCL_RANK, or -1. */
int32_t env_rank(void);

/* The variable `name` in nanoseconds. 0: unset, or not a number of seconds
 * between 0.01 and 1e6; in that case warn gets its text. */
int64_t env_seconds_ns(const char *name, void (*warn)(const char *text));
/* The number of PCCL_DRAIN_SIGNAL. 0: unset, or none of HUP, INT, USR1, USR2,
 * TERM, URG and WINCH, with SIG before it or not. */
int env_drain_signal(void);

/* PCCL_RELAY is 1. */
bool env_relays(void);

/* PCCL_STALL_WARN: 30 seconds where it is unset or wrong, 0 where it is 0. */
int64_t env_stall_ns(void (*warn)(const char *text));

#endif
