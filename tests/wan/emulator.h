/* emulator.h - a running network emulator, with a program in every node.
 *
 * Everything lives in a PID namespace whose first process is the emulator. When
 * the emulator ends, in whatever way, the kernel ends all other processes, and
 * namespaces and devices end with the processes. */
#ifndef WAN_EMULATOR_H
#define WAN_EMULATOR_H

#include "network.h"

#include <stdio.h>

enum {
    EMULATOR_TIME_LIMIT = 124, /* exit statuses beside 0 and 1 */
    EMULATOR_SKIPPED = 77,
};

struct emulator_options {
    const char *peer;     /* commands for /bin/sh */
    const char *master;   /* or NULL */
    FILE *log;            /* JSON lines, or NULL */
    uint32_t connections; /* per link, for the bounds in the log */
};

/* Runs until all peers have ended or the world's time limit. Returns 0 if all
 * peers ended with 0, 1 if one did not, or EMULATOR_TIME_LIMIT. Call it once,
 * in the first process of a PID namespace. */
int emulator_run(const struct world *world,
                 const struct emulator_options *options);

#endif
