/* box.h - an emulated network that runs, with a program in every node.
 *
 * Everything lives in a PID namespace whose first process is the emulator:
 * when that ends, however it does, the kernel ends the rest, and with the
 * processes go namespaces and devices. */
#ifndef WAN_BOX_H
#define WAN_BOX_H

#include "fabric.h"

#include <stdio.h>

enum {
    BOX_TIME_LIMIT = 124, /* exit statuses beside 0 and 1 */
    BOX_SKIPPED = 77,
};

struct box_options {
    const char *peer;     /* commands for /bin/sh */
    const char *master;   /* or NULL */
    FILE *log;            /* JSON lines, or NULL */
    uint32_t connections; /* of a link, for the bounds in the log */
};

/* Runs to the end of all peers or of the world's time. 0: all peers ended with
 * 0. 1: not all. BOX_TIME_LIMIT. To be called in the first process of a PID
 * namespace, once. */
int box_run(const struct world *world, const struct box_options *options);

#endif
