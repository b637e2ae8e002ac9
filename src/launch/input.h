/* input.h - copies our standard input to ranks: terminal input, input that
 * several ranks read, and input of remote ranks. (A single local rank gets a
 * pipe or file directly: it takes only what it reads.)
 *
 * The next piece is read when all targets have written the last one. */
#ifndef PCCL_LAUNCH_INPUT_H
#define PCCL_LAUNCH_INPUT_H

#include "launch_base.h"

#include <ev.h>

struct input;

struct input_target {
    struct input *input; /* NULL: finished */
    struct input_target *next;
    ev_io out;
    int fd; /* write end of its input; -1: uses `send` */
    size_t at;
    bool busy;
    /* size 0: end of input. input_taken confirms it. */
    void (*send)(struct input_target *target, const char *bytes, size_t size);
    void *user;
};

struct input {
    struct ev_loop *loop;
    ev_io in;
    ev_timer retry; /* while this process is in the terminal's background */
    int in_fd;
    bool running;
    bool again; /* our input stays open for another start of the job */
    struct input_target *targets;
    char buffer[32 * 1024];
    size_t size;
};

/* Either takes over fd, a pipe, or fd is -1 and target->send is set. Reading
 * starts with the first target. */
void input_add(struct input *input, struct ev_loop *loop,
               struct input_target *target, int fd);
/* more: false when the target closed its input. */
void input_taken(struct input_target *target, bool more);
void input_remove(struct input_target *target);
void input_stop(struct input *input);

#endif
