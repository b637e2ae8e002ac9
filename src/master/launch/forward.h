/* forward.h - output of the ranks to ours, by whole lines, in bounded memory.
 *
 * A stream is the output of one rank; it holds at most one line. A sink is
 * our stdout or stderr; when its reader is slow the streams stop reading, and
 * the ranks wait in write(2). Nothing is lost. */
#ifndef PCCL_LAUNCH_FORWARD_H
#define PCCL_LAUNCH_FORWARD_H

#include "base.h"
#include "descriptor.h"

#include <ev.h>

struct stream;

struct sink {
    struct ev_loop *loop;
    ev_io io; /* active while there is something to write */
    int fd;
    enum descriptor_kind kind;
    char *buffer; /* SINK_SIZE; [begin, end) waits */
    size_t begin, end;
    bool mid_line;       /* the last byte put in is not a newline */
    bool broken;         /* nobody reads any more; streams close */
    int error;           /* errno of the break */
    struct stream *open; /* whose unfinished line mid_line is about */
    struct stream *waiting, **waiting_end; /* for room, first come */
};

/* shared is STDOUT_FILENO or STDERR_FILENO. */
bool sink_open(struct sink *sink, struct ev_loop *loop, int shared);
void sink_close(struct sink *sink);
bool sink_is_empty(const struct sink *sink);

/* One line of our own (newline is added), on a line of its own. Dropped when
 * even the reserve for these lines is full: ours is not worth waiting. */
void sink_message(struct sink *sink, const char *line);

struct stream {
    ev_io io;
    struct sink *sink;
    struct stream *next; /* in sink->waiting */
    int fd;              /* -1: closed */
    char *buffer;        /* LINE_SIZE */
    size_t begin, end;
    bool waiting;
    bool eof;
    bool abandoned; /* close as soon as there is nothing to read */
    bool piece;     /* the line at begin was begun before */
    char label[16]; /* "[3] " or "" */
};

/* Takes fd, the reading end of a pipe. label may be "". */
void stream_open(struct stream *stream, struct sink *sink, int fd,
                 const char *label);
bool stream_is_open(const struct stream *stream);

/* The writer is dead; do not wait for whoever else holds the pipe. */
void stream_abandon(struct stream *stream);
void stream_close(struct stream *stream);

#endif
