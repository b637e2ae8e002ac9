/* input.h - copies our standard input to ranks: what a terminal gives, what
 * several ranks read, what a rank on another host reads. (One rank of this
 * host gets a pipe or a file itself: it takes no more than it reads.)
 *
 * The next piece is read when every target has taken the last one. */
#ifndef PCCL_LAUNCH_INPUT_H
#define PCCL_LAUNCH_INPUT_H

#include "launch_base.h"

#include <ev.h>

struct input;

struct input_target {
    struct input *input; /* NULL: reads nothing, or no more */
    struct input_target *next;
    ev_io out;
    int fd; /* writing end of its input; -1: goes out by `send` */
    size_t at;
    bool busy;
    /* Nothing, size 0, is the end. Answered by input_taken. */
    void (*send)(struct input_target *target, const char *bytes, size_t size);
    void *user;
};

struct input {
    struct ev_loop *loop;
    ev_io in;
    ev_timer retry; /* while we are in the background of our terminal */
    int in_fd;
    bool running;
    struct input_target *targets;
    char buffer[32 * 1024];
    size_t size;
};

/* Either takes fd, a pipe, or fd is -1 and target->send is set. Reading begins
 * with the first target. */
void input_add(struct input *input, struct ev_loop *loop,
               struct input_target *target, int fd);
/* more: false when it closed its input. */
void input_taken(struct input_target *target, bool more);
void input_remove(struct input_target *target);
void input_stop(struct input *input);

#endif
