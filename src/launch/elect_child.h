/* elect_child.h - the coordinator as a child of its elector, and the signals of
 * both. */
#ifndef PCCL_LAUNCH_ELECT_CHILD_H
#define PCCL_LAUNCH_ELECT_CHILD_H

#include "elect_right.h"

struct elect_child {
    struct elect_right *right;
    int right_fd;
    int signals;   /* descriptor of signals */
    sigset_t mask; /* as it was */
    char **argv;
    bool hangs_up; /* SIGHUP is the coordinator's */
    pid_t pid;     /* 0: there is none */
    pccl_ns until; /* then it is killed */
    int status;    /* of waitpid(), of the last one */
    bool killed;   /* the last one was, by this process */
    bool stopping; /* SIGTERM or SIGINT has come */
};

/* False: see errno. */
bool child_open(struct elect_child *c, char **argv, bool hangs_up);
/* A coordinator begins, whose right lasts until then, and that shows each
 * `pace` that it runs. */
bool child_start(struct elect_child *c, pccl_ns until, pccl_ns pace);
void child_extend(struct elect_child *c, pccl_ns until);
/* Takes signals, and kills the coordinator if its time is over. */
void child_look(struct elect_child *c);
/* Its time is over. It is gone afterwards. */
void child_kill(struct elect_child *c);
/* Looks until that host_time(), or until a signal has come or the coordinator
 * has ended. */
void child_wait(struct elect_child *c, pccl_ns until);
void child_close(struct elect_child *c);

#endif
