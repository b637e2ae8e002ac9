/* bind.h - binding of ranks to processors. bind_read reads the machine;
 * bind_choose, which selects processors, is pure. */
#ifndef PCCL_LAUNCH_BIND_H
#define PCCL_LAUNCH_BIND_H

#include "launch_base.h"

#include <sched.h>

enum bind_kind { BIND_NONE, BIND_THREAD, BIND_CORE, BIND_NUMA, BIND_SOCKET };

struct bind {
    enum bind_kind kind;
    uint32_t width; /* units per rank, at least 1 */
};

/* "core", "core:2", "socket", "numa", "hwthread", "none", ... */
bool bind_parse(struct bind *bind, const char *text);

/* A processor that this process may use. */
struct bind_cpu {
    int number;
    int socket, numa, core; /* core: unique only within the socket */
};

struct bind_machine {
    struct bind_cpu cpus[CPU_SETSIZE];
    uint32_t count;
};

void bind_read(struct bind_machine *machine);

/* The processors of local rank `local`. Ranks get units in order, and again
 * from the first one when there are more ranks than units. False: no
 * binding. */
bool bind_choose(const struct bind_machine *machine, struct bind bind,
                 uint32_t local, cpu_set_t *set);

#endif
