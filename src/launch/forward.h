/* forward.h - copies the output of ranks to ours, in whole lines and bounded
 * memory.
 *
 * A stream is the output of one rank and buffers at most one line. A sink is
 * our stdout or stderr, or a file of one stream. When its reader or its disk is
 * slow, the streams stop reading and the ranks block in write(2). No output is
 * lost. */
#ifndef PCCL_LAUNCH_FORWARD_H
#define PCCL_LAUNCH_FORWARD_H

#include "descriptor.h"
#include "agent_link.h"
#include "disk.h"

struct stream;

/* A client that waits for room in a sink. */
struct sink_waiter {
    struct sink_waiter *next;
    void (*go)(struct sink_waiter *waiter);
    bool waiting;
};

struct sink {
    struct ev_loop *loop;
    ev_io io; /* active while there is output to write, unless to a disk: */
    struct disk_file file; /* busy while [begin, ...) is written */
    int fd;
    enum descriptor_kind kind;
    char *buffer; /* [begin, end) is pending */
    size_t size, begin, end;
    struct sink *shared; /* of a file: what breaks with it */
    uint32_t files;      /* that this is `shared` of, and that have output */
    bool closing;        /* a file whose stream has ended */
    bool stamped;        /* the time stands before each line */
    bool framed;   /* an agent's: lines go out as frames of agent_link.h */
    bool mid_line; /* the last byte is not a newline */
    bool broken;   /* nothing can be written any more */
    int error;     /* errno of the break */
    struct stream *open; /* the stream of that unfinished line */
    struct sink_waiter *waiting, **waiting_end; /* in order of arrival */
};

/* shared is STDOUT_FILENO or STDERR_FILENO. */
bool sink_open(struct sink *sink, struct ev_loop *loop, int shared);
void sink_close(struct sink *sink);
bool sink_is_empty(const struct sink *sink);
bool sink_is_terminal(const struct sink *sink);
/* Nobody reads: its ranks are told so by their next write, as without us. A
 * disk that is full or gone is none of their business: what they write then is
 * lost, and the job's status says so. */
bool sink_has_no_reader(const struct sink *sink);

/* Prints a message of the launcher on a line of its own (newline is added).
 * Dropped when even the reserve for such lines is full. */
void sink_message(struct sink *sink, const char *line);

/* Writes a frame of an agent. False when even the reserve is full. */
bool sink_frame(struct sink *sink, enum link_type type, uint32_t rank,
                const void *bytes, size_t size);

void sink_wait(struct sink *sink, struct sink_waiter *waiter);
void sink_wait_end(struct sink *sink, struct sink_waiter *waiter);

/* Names of a stream and of its destinations. */
struct stream_name {
    uint32_t rank;
    const char *label; /* before every line, or NULL */
    bool live; /* parts of lines are passed on when nothing follows for a while
                */
    const char *files[2]; /* files for output and errors, or NULL */
};

struct stream {
    struct sink_waiter waiter; /* first: a waiter is its stream */
    ev_io io;
    ev_timer quiet; /* a live stream has a part of a line */
    bool live;
    bool hasty; /* a part of a line is passed on now */
    struct sink *sink;
    int fd;       /* -1: closed */
    char *buffer; /* LINE_SIZE */
    size_t begin, end;
    bool eof;
    bool abandoned; /* close as soon as there is nothing to read */
    bool piece;     /* the line at begin continues an earlier piece */
    char label[64]; /* "[3] " or "" */
    uint32_t rank;  /* of frames */
    bool is_error;
    bool aborts; /* a line has said why its rank ends the job */
};

/* Takes over fd, the read end of a pipe; -1 for a stream that gets its lines by
 * stream_offer. name may be NULL; where it has a file, that gets the lines. */
void stream_open(struct stream *stream, struct sink *sink, int fd,
                 const struct stream_name *name, bool is_error);

/* Adds a line or a piece of one without a descriptor. False: no room, wait. */
bool stream_offer(struct stream *stream, const char *line, size_t size);

bool stream_is_open(const struct stream *stream);

/* The writer is dead; do not wait for other processes that hold the pipe. */
void stream_abandon(struct stream *stream);
void stream_close(struct stream *stream);

#endif
