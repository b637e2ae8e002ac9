/* host.h - which host this is, and what it sees of its processes. */
#ifndef PCCL_HOST_H
#define PCCL_HOST_H

#include "base.h"
#include "evidence.h"
#include "host_id.h"

#define HOST_IO_THREAD                                                         \
    "pccl-io" /* name of the thread that sends heartbeats                      \
               */

enum { HOST_WATCHED_MAX = 256, HOST_IO_THREADS_MAX = 4 };

/* Equal for processes that can share memory: same boot, same namespaces. The
 * last bit is 0, and the bits above it are the number of processors: so all
 * members of a view know that of each host. It is that of the system, not that
 * of what a process may use, which differs where processes are bound. A system
 * that changes it while a run lasts is another host to those who start then. */
uint64_t host_id(void);

/* What was seen of some processes, to compare with. Zeroed before. */
struct host_watch {
    struct host_seen {
        uint32_t pid;
        pccl_ns at;
        uint32_t count;
        struct host_thread {
            long id;
            uint64_t sleeps; /* times that it waited of its own will */
            uint64_t delay;  /* total time that it waited for a CPU, ns */
        } threads[HOST_IO_THREADS_MAX];
    } seen[HOST_WATCHED_MAX];
};

/* Looks at a process that was silent for a while. The second look at it, two
 * heartbeats later, knows more than the first: what did not happen meanwhile.
 * `now` may come from any clock. */
enum evidence host_look(struct host_watch *w, uint32_t pid, pccl_ns now);

/* Time that goes on while the host is suspended (rule M15). */
pccl_ns host_time(void);

#endif
