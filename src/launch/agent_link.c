/* agent_link.c - frames over a pair of descriptors. */
#include "agent_link.h"

#include "../base/cursor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void header_field(struct cursor *c, uint32_t *size, uint32_t *rank,
                         uint32_t *type)
{
    cursor_u32(c, size);
    cursor_u32(c, rank);
    cursor_u32(c, type);
}

void link_header(char header[LINK_HEADER], enum link_type type, uint32_t rank,
                 size_t size)
{
    struct cursor c = {.out = (uint8_t *)header, .left = LINK_HEADER};
    header_field(&c, &(uint32_t){(uint32_t)size}, &rank, &(uint32_t){type});
}

enum link_result link_decode(const char *bytes, size_t size,
                             struct link_frame *frame)
{
    struct cursor c = {.in = (const uint8_t *)bytes, .left = size};
    uint32_t length = 0, rank = 0, type = 0;
    header_field(&c, &length, &rank, &type);
    if (c.failed) return LINK_MORE;
    if (length > LINK_FRAME_MAX || type < LINK_SETUP || type > LINK_ALIVE)
        return LINK_BAD;
    if (c.left < length) return LINK_MORE;
    *frame = (struct link_frame){.type = (enum link_type)type,
                                 .rank = rank,
                                 .bytes = bytes + LINK_HEADER,
                                 .size = length};
    return LINK_OK;
}

void link_put(struct link_texts *texts, const char *text)
{
    size_t size = strlen(text) + 1;
    texts->bytes = memory_grow(texts->bytes, texts->size + size, 1);
    memcpy(texts->bytes + texts->size, text, size);
    texts->size += size;
}

void link_put_number(struct link_texts *texts, int64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)number);
    link_put(texts, text);
}

const char *link_get(struct link_texts *texts)
{
    size_t rest = texts->size - texts->at;
    if (rest == 0) return NULL; /* of an empty list, which has no bytes */
    const char *text = texts->bytes + texts->at;
    const char *end = memchr(text, '\0', rest);
    if (!end) return NULL;
    texts->at += (size_t)(end - text) + 1;
    return text;
}

bool link_get_number(struct link_texts *texts, int64_t *number)
{
    const char *text = link_get(texts);
    char *end = NULL;
    if (!text || *text == '\0') return false;
    *number = strtoll(text, &end, 10);
    return *end == '\0';
}

void link_close(struct agent_link *link)
{
    if (!link->rx) return;
    ev_io_stop(link->loop, &link->in);
    ev_io_stop(link->loop, &link->out);
    close(link->in.fd);
    if (link->out.fd >= 0) close(link->out.fd);
    free(link->rx);
    free(link->tx);
    link->rx = link->tx = NULL;
    link->broken = true;
}

static void link_break(struct agent_link *link, const char *why)
{
    if (link->broken) return;
    link_close(link);
    link->on_closed(link, why);
}

/* Drops all bytes up to and including the magic. */
static enum link_result prefix_skip(struct agent_link *link)
{
    static const char magic[] = LINK_MAGIC;
    const size_t length = sizeof magic - 1;
    char *found = memmem(link->rx, link->rx_size, magic, length);
    if (!found && link->rx_size > LINK_PREFIX_MAX) return LINK_BAD;
    if (!found) return LINK_MORE;
    size_t used = (size_t)(found - link->rx) + length;
    link->rx_size -= used;
    memmove(link->rx, link->rx + used, link->rx_size);
    link->prefixed = false;
    return LINK_OK;
}

static void link_deliver(struct agent_link *link)
{
    size_t at = 0;
    struct link_frame frame;
    enum link_result result = link->prefixed ? prefix_skip(link) : LINK_OK;
    while (result == LINK_OK && !link->broken) {
        result = link_decode(link->rx + at, link->rx_size - at, &frame);
        if (result != LINK_OK) break;
        if (!link->on_frame(link, &frame)) {
            link->paused = true;
            ev_io_stop(link->loop, &link->in);
            break;
        }
        at += LINK_HEADER + frame.size;
    }
    if (link->broken) return;
    link->rx_size -= at;
    memmove(link->rx, link->rx + at, link->rx_size);
    if (result == LINK_BAD)
        link_break(link, "sent something that is no answer of an agent");
}

static void link_readable(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    (void)events;
    struct agent_link *link = io->data;
    if (link->rx_space - link->rx_size < LINE_SIZE) {
        link->rx_space = 2 * link->rx_space;
        link->rx = memory_grow(link->rx, link->rx_space, 1);
    }
    ssize_t size =
        read(io->fd, link->rx + link->rx_size, link->rx_space - link->rx_size);
    if (size == -1 && (errno == EAGAIN || errno == EINTR)) return;
    if (size <= 0) {
        link_break(link, size == 0 ? "ended" : strerror(errno));
        return;
    }
    link->last_recv = ev_now(link->loop);
    link->heartbeats = 0;
    link->rx_size += (size_t)size;
    link_deliver(link);
}

static void link_flush(struct agent_link *link)
{
    while (link->tx_begin < link->tx_end) {
        ssize_t size = write(link->out.fd, link->tx + link->tx_begin,
                             link->tx_end - link->tx_begin);
        if (size >= 0) {
            link->tx_begin += (size_t)size;
        } else if (errno == EAGAIN) {
            ev_io_start(link->loop, &link->out);
            return;
        } else if (errno !=
                   EINTR) { /* a closed connection is noticed when reading */
            link->tx_begin = link->tx_end;
        }
    }
    link->tx_begin = link->tx_end = 0;
    ev_io_stop(link->loop, &link->out);
}

static void link_writable(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    (void)events;
    link_flush(io->data);
}

static void nonblocking(int fd)
{
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

void link_open(struct agent_link *link, struct ev_loop *loop, int in_fd,
               int out_fd)
{
    link->loop = loop;
    link->rx_space = 4 * LINE_SIZE;
    link->rx = memory_get(link->rx_space, 1);
    link->rx_size = link->tx_begin = link->tx_end = 0;
    link->broken = link->paused = false;
    link->last_recv = link->judged = ev_now(loop);
    nonblocking(in_fd);
    if (out_fd >= 0) nonblocking(out_fd);
    ev_io_init(&link->in, link_readable, in_fd, EV_READ);
    ev_io_init(&link->out, link_writable, out_fd, EV_WRITE);
    link->in.data = link->out.data = link;
    ev_io_start(loop, &link->in);
}

bool link_is_silent(struct agent_link *link)
{
    ev_tstamp now = ev_now(link->loop);
    if (now - link->judged > LINK_SILENCE / 2) link->last_recv = now;
    link->judged = now;
    link->heartbeats++;
    return now - link->last_recv > LINK_SILENCE;
}

void link_send(struct agent_link *link, enum link_type type, uint32_t rank,
               const void *bytes, size_t size)
{
    if (link->broken || link->out.fd < 0) return;
    PCCL_ASSERT(size <= LINK_FRAME_MAX);
    if (link->tx_end + LINK_HEADER + size > link->tx_space) {
        link->tx_space = 2 * (link->tx_end + LINK_HEADER + size);
        link->tx = memory_grow(link->tx, link->tx_space, 1);
    }
    link_header(link->tx + link->tx_end, type, rank, size);
    if (size > 0) memcpy(link->tx + link->tx_end + LINK_HEADER, bytes, size);
    link->tx_end += LINK_HEADER + size;
    if (!ev_is_active(&link->out)) link_flush(link);
}

void link_resume(struct agent_link *link)
{
    if (link->broken || !link->paused) return;
    link->paused = false;
    link->heartbeats = 0;
    link->last_recv = ev_now(link->loop); /* frames were not read meanwhile */
    ev_io_start(link->loop, &link->in);
    link_deliver(link);
}

void link_finish(struct agent_link *link)
{
    if (link->broken || link->out.fd < 0) return;
    ev_io_stop(link->loop, &link->out);
    close(link->out.fd);
    link->out.fd = -1;
}
