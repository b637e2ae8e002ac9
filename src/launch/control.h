/* control.h - requests of an operator to a running launcher of the same user on
 * the same host, by datagrams between abstract sockets. The kernel says who
 * sends them. */
#ifndef PCCL_LAUNCH_CONTROL_H
#define PCCL_LAUNCH_CONTROL_H

#include "launch_base.h"

#include <ev.h>

struct control {
    struct ev_loop *loop;
    ev_io io;
    /* Carries out a request, and fills in the answer. */
    void (*request)(void *user, const char *text, char *answer, size_t size);
    void *user;
};

/* Without it there are no requests; the job runs all the same. */
void control_open(struct control *control, struct ev_loop *loop);
void control_close(struct control *control);

/* Sends a request to the launcher with that process id, or to the only one of
 * this user (0), and prints its answer. Returns the exit status. */
int control_ask(const char *text, pid_t pid);

#endif
