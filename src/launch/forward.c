/* forward.c - streams (output of one rank) and sinks (our stdout and
 * stderr). */
#include "forward.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void stream_pump(struct stream *stream);

static void sink_break(struct sink *sink, int error)
{
    sink->broken = true;
    sink->error = error;
    sink->begin = sink->end = 0;
}

static void file_begin(struct sink *sink)
{
    sink->file.bytes = sink->buffer + sink->begin;
    sink->file.size = sink->end - sink->begin;
    disk_write(sink->loop, &sink->file);
}

/* Writes as much as possible without blocking. */
static void sink_flush(struct sink *sink)
{
    if (sink->kind == DESCRIPTOR_DISK) {
        if (!sink->file.busy && sink->begin < sink->end) file_begin(sink);
        return;
    }
    while (sink->begin < sink->end && !sink->broken) {
        ssize_t size =
            descriptor_write(sink->fd, sink->kind, sink->buffer + sink->begin,
                             sink->end - sink->begin);
        if (size >= 0) {
            sink->begin += (size_t)size;
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            sink_break(sink, errno);
        }
    }
    if (sink->begin == sink->end) sink->begin = sink->end = 0;
    if (sink->broken)
        return; /* io is active if a stream waits; its callback handles the
                   break */
    if (sink->begin == sink->end && !sink->waiting)
        ev_io_stop(sink->loop, &sink->io);
    else
        ev_io_start(sink->loop, &sink->io);
}

/* Makes room for size more bytes at the end, and leaves `kept` for others. */
static bool sink_reserve(struct sink *sink, size_t size, size_t kept)
{
    size_t used = sink->end - sink->begin;
    if (used + size > sink->size - kept) return false;
    if (sink->end + size > sink->size) { /* not on a disk, see file_written() */
        memmove(sink->buffer, sink->buffer + sink->begin, used);
        sink->begin = 0;
        sink->end = used;
    }
    return true;
}

static void sink_put(struct sink *sink, const char *bytes, size_t size)
{
    if (size == 0) return;
    PCCL_ASSERT(sink->end + size <= sink->size);
    if (sink->shared && sink->begin == sink->end) sink->shared->files++;
    memcpy(sink->buffer + sink->end, bytes, size);
    sink->end += size;
    sink->mid_line = bytes[size - 1] != '\n';
}

/* Resumes the streams that wait for room, in the order of their waiting. */
static void sink_resume(struct sink *sink)
{
    struct sink_waiter *last = NULL;
    while (sink->waiting && sink->waiting != last) {
        if (!sink->broken && sink->end - sink->begin > sink->size / 2) break;
        struct sink_waiter *waiter = sink->waiting;
        sink->waiting = waiter->next;
        if (!sink->waiting) sink->waiting_end = &sink->waiting;
        waiter->waiting = false;
        waiter->go(waiter);
        if (waiter->waiting && !last) last = waiter;
    }
}

static void sink_writable(struct ev_loop *loop, ev_io *io, int events)
{
    (void)events;
    struct sink *sink = io->data;
    sink_flush(sink);
    if (sink->broken) ev_io_stop(loop, io);
    sink_resume(sink);
}

static void sink_free(struct sink *sink)
{
    ev_io_stop(sink->loop, &sink->io);
    close(sink->fd);
    free(sink->buffer);
    sink->buffer = NULL;
}

/* The rest is at the begin of the buffer when its write begins: there is room
 * behind it, and nothing is moved meanwhile. */
static void file_written(struct disk_file *file)
{
    struct sink *sink =
        (struct sink *)((char *)file - offsetof(struct sink, file));
    bool had_output = sink->end > 0;
    if (file->error != 0) {
        sink_break(sink, file->error);
        if (sink->shared) sink_break(sink->shared, file->error);
    } else if (!sink->broken) {
        sink->end -= file->size;
        memmove(sink->buffer, sink->buffer + file->size, sink->end);
    }
    if (sink->shared && had_output && sink->end == 0) sink->shared->files--;
    sink_resume(sink);
    sink_flush(sink); /* a stream that has ended there does not */
    if (!sink->closing || sink->file.busy) return;
    sink_free(sink);
    free(sink);
}

static void sink_begin(struct sink *sink, struct ev_loop *loop, size_t size)
{
    sink->loop = loop;
    sink->size = size;
    /* not zeroed: most sinks use only a part of it */
    sink->buffer = memory_grow(NULL, size, 1);
    sink->waiting_end = &sink->waiting;
    sink->file.fd = sink->fd;
    sink->file.written = file_written;
    ev_io_init(&sink->io, sink_writable, sink->fd, EV_WRITE);
    sink->io.data = sink;
}

bool sink_open(struct sink *sink, struct ev_loop *loop, int shared)
{
    sink->fd = descriptor_private(shared, O_WRONLY, &sink->kind);
    if (sink->fd < 0) return false;
    sink_begin(sink, loop, SINK_SIZE);
    return true;
}

void sink_close(struct sink *sink)
{
    if (!sink->buffer) return;
    disk_end();
    sink_free(sink);
}

bool sink_is_empty(const struct sink *sink)
{
    return (sink->broken || sink->begin == sink->end) && sink->files == 0;
}

bool sink_is_terminal(const struct sink *sink)
{
    return isatty(sink->fd) == 1;
}

void sink_message(struct sink *sink, const char *line)
{
    size_t size = strlen(line);
    if (sink->broken || !sink_reserve(sink, size + 2, 0)) return;
    if (sink->mid_line) sink_put(sink, "\n", 1);
    sink_put(sink, line, size);
    sink_put(sink, "\n", 1);
    sink_flush(sink);
}

bool sink_frame(struct sink *sink, enum link_type type, uint32_t rank,
                const void *bytes, size_t size)
{
    char header[LINK_HEADER];
    if (sink->broken) return true;
    if (!sink_reserve(sink, sizeof header + size, 0)) return false;
    link_header(header, type, rank, size);
    sink_put(sink, header, sizeof header);
    sink_put(sink, bytes, size);
    sink_flush(sink);
    return true;
}

void sink_wait(struct sink *sink, struct sink_waiter *waiter)
{
    waiter->waiting = true;
    waiter->next = NULL;
    *sink->waiting_end = waiter;
    sink->waiting_end = &waiter->next;
    if (sink->kind != DESCRIPTOR_DISK) ev_io_start(sink->loop, &sink->io);
    sink_flush(sink);
}

void sink_wait_end(struct sink *sink, struct sink_waiter *waiter)
{
    struct sink_waiter **at = &sink->waiting;
    if (!waiter->waiting) return;
    while (*at != waiter) at = &(*at)->next;
    *at = waiter->next;
    if (!*at) sink->waiting_end = at;
    waiter->waiting = false;
}

bool sink_has_no_reader(const struct sink *sink)
{
    return sink->broken && (sink->framed || sink->error == EPIPE);
}

static bool frame_put(struct stream *stream, const char *line, size_t size)
{
    char header[LINK_HEADER];
    struct sink *sink = stream->sink;
    if (!sink_reserve(sink, sizeof header + size, MESSAGE_RESERVE))
        return false;
    link_header(header, stream->is_error ? LINK_ERR : LINK_OUT, stream->rank,
                size);
    sink_put(sink, header, sizeof header);
    sink_put(sink, line, size);
    return true;
}

/* The words of the MPI library for a fatal error and for MPI_Abort. */
static bool says_abort(const char *line, size_t size)
{
    static const char *const words[] = {"Abort(", "Fatal error in "};
    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        size_t length = strlen(words[i]);
        if (size > length && memcmp(line, words[i], length) == 0) return true;
    }
    return false;
}

/* "2026-11-22T14:31:18.123 [3] " */
static size_t label_make(const struct stream *stream,
                         char label[sizeof stream->label + STAMP_SIZE])
{
    size_t size = 0;
    if (stream->sink->stamped) {
        double now = ev_now(stream->sink->loop);
        time_t seconds = (time_t)now;
        struct tm tm;
        size = strftime(label, STAMP_SIZE, "%Y-%m-%dT%H:%M:%S",
                        localtime_r(&seconds, &tm));
        size += (size_t)snprintf(label + size, STAMP_SIZE - size, ".%03d ",
                                 (int)((now - (double)seconds) * 1000));
    }
    size_t rest = strlen(stream->label);
    memcpy(label + size, stream->label, rest);
    return size + rest;
}

/* Writes one line, or a piece of a long or unfinished one. With labels, a line
 * of one rank never continues another's; without them no byte is added. */
static bool stream_put(struct stream *stream, const char *line, size_t size)
{
    struct sink *sink = stream->sink;
    if (sink->framed) return frame_put(stream, line, size);
    if (!sink->shared && says_abort(line, size)) stream->aborts = true;
    char label[sizeof stream->label + STAMP_SIZE];
    size_t label_size = label_make(stream, label);
    bool labelled = label_size > 0;
    if (!sink_reserve(sink, size + label_size + 1,
                      sink->shared ? 0 : MESSAGE_RESERVE))
        return false;
    bool continues = stream->piece && sink->mid_line && sink->open == stream;
    if (labelled && !continues) {
        if (sink->mid_line) sink_put(sink, "\n", 1);
        sink_put(sink, label, label_size);
    }
    sink_put(sink, line, size);
    sink->open = stream;
    stream->piece = sink->mid_line;
    return true;
}

/* Moves lines to the sink while both have lines and room. */
static bool stream_move(struct stream *stream)
{
    while (stream->begin < stream->end) {
        const char *line = stream->buffer + stream->begin;
        size_t rest = stream->end - stream->begin;
        const char *newline = memchr(line, '\n', rest);
        size_t size = newline ? (size_t)(newline - line) + 1 : rest;
        if (!newline && !stream->eof && !stream->hasty && rest < LINE_SIZE)
            break;
        if (!stream_put(stream, line, size)) return false;
        stream->begin += size;
    }
    size_t rest = stream->end - stream->begin;
    if (stream->begin > 0)
        memmove(stream->buffer, stream->buffer + stream->begin, rest);
    stream->begin = 0;
    stream->end = rest;
    return true;
}

/* A prompt: whoever reads the terminal is to see it. */
static void quiet_expired(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    struct stream *stream = timer->data;
    struct sink *sink = stream->sink;
    if (stream->waiter.waiting) return;
    stream->hasty = true;
    stream_pump(stream);
    stream->hasty = false;
    sink_flush(sink);
}

static void stream_pump(struct stream *stream)
{
    ev_timer_stop(stream->sink->loop, &stream->quiet);
    if (stream->sink->broken) stream->begin = stream->end = 0;
    if (!stream->sink->broken && !stream_move(stream)) {
        ev_io_stop(stream->sink->loop, &stream->io);
        sink_wait(stream->sink, &stream->waiter);
    } else if (stream->eof || sink_has_no_reader(stream->sink)) {
        stream_close(stream);
    } else {
        ev_io_start(stream->sink->loop, &stream->io);
        if (!stream->live || stream->end == 0) return;
        ev_timer_set(&stream->quiet, LAUNCH_QUIET, 0.);
        ev_timer_start(stream->sink->loop, &stream->quiet);
    }
}

static void stream_readable(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    (void)events;
    struct stream *stream = io->data;
    struct sink *sink = stream->sink;
    ssize_t size;
    do {
        size = read(stream->fd, stream->buffer + stream->end,
                    LINE_SIZE - stream->end);
    } while (size == -1 && errno == EINTR);
    if (size > 0) stream->end += (size_t)size;
    bool nothing = size == -1 && errno == EAGAIN;
    if (size == 0 || (size == -1 && !nothing)) stream->eof = true;
    if (nothing && stream->abandoned) stream->eof = true;
    stream_pump(stream);
    sink_flush(sink);
    if (stream->fd >= 0 && stream->abandoned && !stream->waiter.waiting)
        ev_feed_event(sink->loop, &stream->io, EV_READ);
}

static void stream_go(struct sink_waiter *waiter)
{
    stream_pump((struct stream *)waiter);
}

/* NULL: it cannot be opened, and the shared sink has broken. */
static struct sink *file_open(struct sink *shared, const char *path)
{
    int fd =
        open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
    if (fd < 0) {
        sink_break(shared, errno);
        return NULL;
    }
    struct sink *sink = memory_get(1, sizeof *sink);
    sink->fd = fd;
    sink->kind = DESCRIPTOR_DISK;
    sink->shared = shared;
    sink_begin(sink, shared->loop, FILE_SIZE);
    return sink;
}

void stream_open(struct stream *stream, struct sink *sink, int fd,
                 const struct stream_name *name, bool is_error)
{
    stream->sink = sink;
    stream->fd = fd;
    stream->begin = stream->end = 0;
    stream->eof = stream->abandoned = stream->piece = stream->aborts = false;
    stream->is_error = is_error;
    stream->rank = name ? name->rank : 0;
    stream->live = name && name->live;
    stream->hasty = false;
    ev_timer_init(&stream->quiet, quiet_expired, 0., 0.);
    stream->quiet.data = stream;
    stream->label[0] = '\0';
    const char *path = name ? name->files[is_error] : NULL;
    struct sink *file = path ? file_open(sink, path) : NULL;
    if (file)
        stream->sink = file;
    else if (name && name->label)
        snprintf(stream->label, sizeof stream->label, "%s", name->label);
    stream->waiter.go = stream_go;
    if (fd < 0) return;
    /* not zeroed: most streams use only a part of it */
    if (!stream->buffer) stream->buffer = memory_grow(NULL, LINE_SIZE, 1);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    ev_io_init(&stream->io, stream_readable, fd, EV_READ);
    stream->io.data = stream;
    ev_io_start(sink->loop, &stream->io);
}

bool stream_offer(struct stream *stream, const char *line, size_t size)
{
    if (stream->sink->broken) return true;
    if (!stream_put(stream, line, size)) return false;
    sink_flush(stream->sink);
    return true;
}

bool stream_is_open(const struct stream *stream)
{
    return stream->buffer != NULL && stream->fd >= 0;
}

void stream_abandon(struct stream *stream)
{
    if (!stream_is_open(stream) || stream->abandoned) return;
    stream->abandoned = true;
    if (!stream->waiter.waiting)
        ev_feed_event(stream->sink->loop, &stream->io, EV_READ);
}

/* The rest of its output is written later, and then it is freed: not now,
 * as the caller may be amid a call of it. */
static void file_close(struct sink *sink)
{
    sink->closing = true;
    if (!sink->file.busy) file_begin(sink);
}

void stream_close(struct stream *stream)
{
    struct sink *sink = stream->sink;
    if (!sink) return;
    sink_wait_end(sink, &stream->waiter);
    if (sink->open == stream) sink->open = NULL;
    stream->sink = NULL;
    if (stream_is_open(stream)) {
        ev_io_stop(sink->loop, &stream->io);
        ev_timer_stop(sink->loop, &stream->quiet);
        close(stream->fd);
        stream->fd = -1;
        free(stream->buffer);
        stream->buffer = NULL;
    }
    if (sink->shared) file_close(sink);
}
