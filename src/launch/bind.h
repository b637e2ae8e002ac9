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
    enum bind_kind
        map;       /* ranks go to parts of this kind; BIND_NONE: in order */
    uint32_t fill; /* that many to one part; 0: one to each in turn */
};

/* "core", "core:2", "socket", "numa", "hwthread", "none", ... */
bool bind_parse(struct bind *bind, const char *text);

/* "socket", "numa:PE=2", "ppr:2:socket", "slot:PE=4", ... of --map-by, but not
 * what chooses hosts. Changes what the text names. */
bool bind_parse_map(struct bind *bind, const char *text);

/* A processor that this process may use. */
struct bind_cpu {
    int number;
    int socket, numa, core; /* core: unique only within the socket */
};

struct bind_machine {
    struct bind_cpu cpus[CPU_SETSIZE];
    uint32_t count;
};

/* By hwloc where the build has found it, otherwise from /sys. */
void bind_read(struct bind_machine *machine);
void bind_read_system(struct bind_machine *machine); /* from /sys */

/* How many parts of that kind there are. */
uint32_t bind_count(const struct bind_machine *machine, enum bind_kind kind);

/* The processors of local rank `local`. Ranks get units in order (within their
 * part of the machine), and again from the first one when there are more ranks
 * than units. False: no
 * binding. */
bool bind_choose(const struct bind_machine *machine, struct bind bind,
                 uint32_t local, cpu_set_t *set);

/* "0-3,8": the processors, or "" for NULL. The caller frees it. */
char *bind_text(const cpu_set_t *set);

#endif
