/* input.h - copies a terminal's input to rank 0. Only a terminal: a pipe or a
 * file is handed to rank 0 itself, which then takes no more than it reads,
 * while a terminal would stop a process outside its foreground group. */
#ifndef PCCL_LAUNCH_INPUT_H
#define PCCL_LAUNCH_INPUT_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>

struct input {
    struct ev_loop *loop;
    ev_io in, out;
    ev_timer retry; /* while we are in the background ourselves */
    int in_fd, out_fd;
    bool running;
    char buffer[4096];
    size_t begin, end;
};

/* Takes pipe_fd, the writing end of rank 0's input. */
void input_start(struct input *input, struct ev_loop *loop, int pipe_fd);
void input_stop(struct input *input);

#endif
