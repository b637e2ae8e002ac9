/* input.c - see input.h. */
#include "input.h"

#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static const ev_tstamp retry_delay = 1.0; /* s */

static void input_flush(struct input *input)
{
    while (input->begin < input->end) {
        ssize_t size = write(input->out_fd, input->buffer + input->begin,
                             input->end - input->begin);
        if (size >= 0) {
            input->begin += (size_t)size;
        } else if (errno == EAGAIN) { /* rank 0 does not read: nor do we */
            ev_io_stop(input->loop, &input->in);
            ev_io_start(input->loop, &input->out);
            return;
        } else if (errno != EINTR) { /* rank 0 closed its input */
            input_stop(input);
            return;
        }
    }
    input->begin = input->end = 0;
    ev_io_stop(input->loop, &input->out);
    ev_io_start(input->loop, &input->in);
}

static void input_writable(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    (void)events;
    input_flush(io->data);
}

static void input_readable(struct ev_loop *loop, ev_io *io, int events)
{
    (void)events;
    struct input *input = io->data;
    ssize_t size = read(input->in_fd, input->buffer, sizeof input->buffer);
    if (size > 0) {
        input->end = (size_t)size;
        input_flush(input);
    } else if (size == -1 && errno == EIO) { /* a terminal's background job */
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

void input_start(struct input *input, struct ev_loop *loop, int pipe_fd)
{
    input->loop = loop;
    input->out_fd = pipe_fd;
    input->begin = input->end = 0;
    fcntl(pipe_fd, F_SETFL, fcntl(pipe_fd, F_GETFL) | O_NONBLOCK);
    enum descriptor_kind kind; /* a terminal only says that it is readable */
    input->in_fd = descriptor_private(STDIN_FILENO, O_RDONLY, &kind);
    input->running = input->in_fd >= 0;
    if (!input->running) {
        close(pipe_fd);
        return;
    }
    ev_io_init(&input->in, input_readable, input->in_fd, EV_READ);
    ev_io_init(&input->out, input_writable, pipe_fd, EV_WRITE);
    ev_timer_init(&input->retry, input_retry, 0., retry_delay);
    input->in.data = input->out.data = input->retry.data = input;
    ev_io_start(loop, &input->in);
}

void input_stop(struct input *input)
{
    if (!input->running) return;
    input->running = false;
    ev_io_stop(input->loop, &input->in);
    ev_io_stop(input->loop, &input->out);
    ev_timer_stop(input->loop, &input->retry);
    close(input->in_fd);
    close(input->out_fd);
}
