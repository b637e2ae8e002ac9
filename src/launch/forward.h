/* forward.h - output of the ranks to ours, by whole lines, in bounded memory.
 *
 * A stream is the output of one rank; it holds at most one line. A sink is
 * our stdout or stderr; when its reader is slow the streams stop reading, and
 * the ranks wait in write(2). Nothing is lost. */
#ifndef PCCL_LAUNCH_FORWARD_H
#define PCCL_LAUNCH_FORWARD_H

#include "descriptor.h"
#include "agent_link.h"

struct stream;

/* Somebody who waits for room in a sink. */
struct sink_waiter {
    struct sink_waiter *next;
    void (*go)(struct sink_waiter *waiter);
    bool waiting;
};

struct sink {
    struct ev_loop *loop;
    ev_io io; /* active while there is something to write */
    int fd;
    enum descriptor_kind kind;
    char *buffer; /* SINK_SIZE; [begin, end) waits */
    size_t begin, end;
    bool framed;         /* an agent's: lines go out as frames of link.h */
    bool mid_line;       /* the last byte put in is not a newline */
    bool broken;         /* nobody reads any more; streams close */
    int error;           /* errno of the break */
    struct stream *open; /* whose unfinished line mid_line is about */
    struct sink_waiter *waiting, **waiting_end; /* first come */
};

/* shared is STDOUT_FILENO or STDERR_FILENO. */
bool sink_open(struct sink *sink, struct ev_loop *loop, int shared);
void sink_close(struct sink *sink);
bool sink_is_empty(const struct sink *sink);

/* One line of our own (newline is added), on a line of its own. Dropped when
 * even the reserve for these lines is full: ours is not worth waiting. */
void sink_message(struct sink *sink, const char *line);

/* One frame of an agent. False when even the reserve is full. */
bool sink_frame(struct sink *sink, enum link_type type, uint32_t rank,
                const void *bytes, size_t size);

void sink_wait(struct sink *sink, struct sink_waiter *waiter);
void sink_wait_end(struct sink *sink, struct sink_waiter *waiter);

/* Whose output it is, and where it goes. */
struct stream_name {
    uint32_t rank;
    const char *label;    /* before every line, or NULL */
    const char *files[2]; /* NULL, or where output and errors go instead */
};

struct stream {
    struct sink_waiter waiter; /* first: a waiter is its stream */
    ev_io io;
    struct sink *sink;
    int fd;       /* -1: closed */
    char *buffer; /* LINE_SIZE */
    size_t begin, end;
    bool eof;
    bool abandoned; /* close as soon as there is nothing to read */
    bool piece;     /* the line at begin was begun before */
    char label[64]; /* "[3] " or "" */
    uint32_t rank;  /* of frames */
    bool is_error;
    int file; /* output goes there and not to the sink; -1: none */
};

/* Takes fd, the reading end of a pipe; -1 for a stream that gets its lines by
 * stream_offer. name may be NULL. */
void stream_open(struct stream *stream, struct sink *sink, int fd,
                 const struct stream_name *name, bool is_error);

/* A line, or a piece of one, that came another way. False: no room, wait. */
bool stream_offer(struct stream *stream, const char *line, size_t size);

bool stream_is_open(const struct stream *stream);

/* The writer is dead; do not wait for whoever else holds the pipe. */
void stream_abandon(struct stream *stream);
void stream_close(struct stream *stream);

#endif
