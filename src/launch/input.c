/* input.c - copies standard input to ranks. */
#include "input.h"

#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static const ev_tstamp retry_delay = 1.0; /* s */

static void input_go_on(struct input *input)
{
    bool busy = false;
    for (struct input_target *t = input->targets; t; t = t->next)
        busy = busy || t->busy;
    if (!input->targets)
        input_stop(input);
    else if (input->running && !busy)
        ev_io_start(input->loop, &input->in);
}

static void target_flush(struct input_target *target)
{
    struct input *input = target->input;
    while (target->at < input->size) {
        ssize_t size = write(target->fd, input->buffer + target->at,
                             input->size - target->at);
        if (size >= 0) {
            target->at += (size_t)size;
        } else if (errno == EAGAIN) {
            ev_io_start(input->loop, &target->out);
            return;
        } else if (errno != EINTR) { /* the rank closed its input */
            input_taken(target, false);
            return;
        }
    }
    ev_io_stop(input->loop, &target->out);
    input_taken(target, true);
}

static void target_writable(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    (void)events;
    target_flush(io->data);
}

static void input_give(struct input *input)
{
    ev_io_stop(input->loop, &input->in);
    for (struct input_target *t = input->targets; t; t = t->next) {
        t->busy = true;
        t->at = 0;
    }
    /* serving a target may remove it and others */
    for (struct input_target *t = input->targets, *next; t; t = next) {
        next = t->next;
        if (t->fd >= 0)
            target_flush(t);
        else
            t->send(t, input->buffer, input->size);
    }
}

static void input_readable(struct ev_loop *loop, ev_io *io, int events)
{
    (void)events;
    struct input *input = io->data;
    ssize_t size = read(input->in_fd, input->buffer, sizeof input->buffer);
    if (size > 0) {
        input->size = (size_t)size;
        input_give(input);
    } else if (size == -1 &&
               errno ==
                   EIO) { /* this process is a background job of the terminal */
        ev_io_stop(loop, io);
        ev_timer_again(loop, &input->retry);
    } else if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
        input_stop(input);
    }
}

static void input_retry(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)events;
    struct input *input = timer->data;
    ev_timer_stop(loop, timer);
    ev_io_start(loop, &input->in);
}

static bool input_start(struct input *input, struct ev_loop *loop)
{
    enum descriptor_kind kind; /* read only when it is readable */
    input->loop = loop;
    input->in_fd = descriptor_private(STDIN_FILENO, O_RDONLY, &kind);
    if (input->in_fd < 0) return false;
    input->running = true;
    ev_io_init(&input->in, input_readable, input->in_fd, EV_READ);
    ev_timer_init(&input->retry, input_retry, 0., retry_delay);
    input->in.data = input->retry.data = input;
    ev_io_start(loop, &input->in);
    return true;
}

void input_add(struct input *input, struct ev_loop *loop,
               struct input_target *target, int fd)
{
    target->fd = fd;
    target->busy = false;
    target->input = input;
    target->next = input->targets;
    input->targets = target;
    if (fd >= 0) {
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
        ev_io_init(&target->out, target_writable, fd, EV_WRITE);
        target->out.data = target;
    }
    if (!input->running && !input_start(input, loop)) input_remove(target);
}

void input_taken(struct input_target *target, bool more)
{
    struct input *input = target->input;
    if (!input) return;
    target->busy = false;
    if (!more)
        input_remove(target);
    else
        input_go_on(input);
}

void input_remove(struct input_target *target)
{
    struct input *input = target->input;
    if (!input) return;
    struct input_target **at = &input->targets;
    while (*at != target) at = &(*at)->next;
    *at = target->next;
    target->input = NULL;
    if (target->fd >= 0) {
        ev_io_stop(input->loop, &target->out);
        close(target->fd);
        target->fd = -1;
    } else {
        target->send(target, NULL, 0);
    }
    input_go_on(input);
}

void input_stop(struct input *input)
{
    if (!input->running) return;
    input->running = false;
    ev_io_stop(input->loop, &input->in);
    ev_timer_stop(input->loop, &input->retry);
    close(input->in_fd);
    while (input->targets) input_remove(input->targets);
    if (input->again) return;
    /* gives the writer of our input an error, because it has no reader */
    int null = isatty(STDIN_FILENO) ? -1 : descriptor_null();
    if (null < 0) return;
    dup2(null, STDIN_FILENO);
    close(null);
}
