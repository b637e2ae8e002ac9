/* channel.h - two byte queues, one in each direction, in memory that two
 * processes of one host share.
 *
 * A connection whose ends share memory sends its bytes through a channel once
 * both HELLOs have passed (rule L1); nothing else about it changes. Pure: the
 * memory comes from the driver (shared_memory.h), and so does the byte that
 * wakes a partner that sleeps in the kernel.
 *
 * The partner may write anything at any time. This end accepts only indices of
 * the partner that fit its own, which are in private memory. The partner's
 * bytes may change while they are read, so a header is copied before it is
 * checked.
 *
 * The queues are mapped twice in a row, so that whatever lies in one, or fits
 * into it, is contiguous.
 *
 * A queue that is empty begins anew at its start (rule L6), if it is not far
 * from there: data in small portions stay in the processors' caches, instead of
 * touching all of the queue in turn. Large portions do better with memory that
 * the reader's processor has let go of. */
#ifndef PCCL_CHANNEL_H
#define PCCL_CHANNEL_H

#include "board.h"

enum {
    CHANNEL_PAGE = 64 * 1024, /* indices, before the queues; whole pages */
    CHANNEL_LINE = 128,       /* unit that processors pass to each other */
    CHANNEL_MAGIC = 0x4c4e4845,
};

/* The reason for which the doorbell of one end is armed. */
enum channel_doorbell {
    CHANNEL_AWAKE = 0,      /* not armed */
    CHANNEL_WANTS_DATA = 1, /* sleeps until there is something to read */
    CHANNEL_WANTS_ROOM = 2, /* sleeps until something can be written */
};

/* A post of this number comes when the channel has been read up to there. */
struct channel_mark {
    _Atomic uint64_t post, at;
};

/* In shared memory: one side writes it and the other one reads it. */
struct channel_side {
    _Alignas(CHANNEL_LINE) _Atomic uint64_t written; /* bytes so far */
    _Atomic uint64_t base; /* index of the byte at the start of the queue */
    _Alignas(CHANNEL_LINE) _Atomic uint64_t read;
    _Atomic uint64_t taken; /* posts of the other end's board (L11) */
    /* enum channel_doorbell; the end that rings clears it. */
    _Alignas(CHANNEL_LINE) _Atomic uint32_t asleep;
    _Alignas(CHANNEL_LINE) struct channel_mark marks[BOARD_SLOTS];
};

struct channel_page {
    uint32_t magic;
    uint32_t size;  /* of one queue */
    uint64_t nonce; /* proves that this is the offered memory */
    struct channel_side sides[2];
};

/* The dialer's HELLO carries this offer of the memory that it made. */
struct channel_offer {
    uint32_t pid, fd; /* where to find it */
    uint32_t size;
    uint64_t nonce;
};

/* One end, in private memory. */
struct channel {
    struct channel_side *own, *other;
    uint8_t *out, *in; /* twice `size` each */
    uint64_t size;
    uint64_t written, read, base;     /* own indices */
    uint64_t seen_written, seen_read; /* the other's, believed */
    bool broken; /* the other's indices cannot be: close the connection */
    /* Posts of the other end (rule L11): */
    const uint8_t *board;      /* or NULL */
    uint8_t *post;             /* a copy of the one that is being read */
    size_t post_size, post_at; /* its bytes, those that were read */
    uint64_t taken;            /* posts copied so far */
    bool read_post;            /* what was read last is a post */
    uint64_t seen_taken;       /* own posts that the other end has copied */
};

/* `side`: 0 for the maker. */
static inline void channel_init(struct channel *c, struct channel_page *page,
                                uint8_t *queues, uint32_t size, uint32_t side)
{
    *c = (struct channel){.own = &page->sides[side],
                          .other = &page->sides[!side],
                          .out = queues + (size_t)side * 2 * size,
                          .in = queues + (size_t)!side * 2 * size,
                          .size = size};
}

/* ---------------------------------------------------------------- writing */

/* Bytes that can be written now, and their address. *to is not set when there
 * are none. */
static inline size_t channel_room(struct channel *c, uint8_t **to)
{
    uint64_t used = c->written - c->seen_read;
    uint64_t at = (c->written - c->base) & (c->size - 1);
    bool rewinds = at >= CHANNEL_REWIND && at < CHANNEL_REWIND_END;
    if (used > c->size / 2 || (rewinds && used > 0)) {
        uint64_t read =
            atomic_load_explicit(&c->other->read, memory_order_acquire);
        if (read - c->seen_read > used) {
            c->broken = true;
            return 0;
        }
        c->seen_read = read;
        used = c->written - read;
    }
    if (rewinds && used == 0) {
        at = 0;
        c->base = c->written;
        /* Before any byte of this turn is shown by `written`. */
        atomic_store_explicit(&c->own->base, c->base, memory_order_relaxed);
    }
    *to = c->out + at;
    return (size_t)(c->size - used);
}

/* Shows the written bytes to the other end, which may sleep: call
 * channel_ring() after any number of writes. */
static inline void channel_write(struct channel *c, size_t size)
{
    c->written += size;
    atomic_store_explicit(&c->own->written, c->written, memory_order_release);
}

/* ------------------------------------------------------------- posts, L11 */

/* From the post after the first `posts` ones on, this end reads the board of
 * the other one, in copies in `copy` (BOARD_POST_MAX bytes). */
static inline void channel_attach(struct channel *c, const uint8_t *board,
                                  uint8_t *copy, uint64_t posts)
{
    c->board = board;
    c->post = copy;
    c->taken = posts;
    atomic_store_explicit(&c->own->taken, posts, memory_order_release);
}

/* The other end has copied what the slot of the post after these held. */
static inline bool channel_may_post(struct channel *c, uint64_t posts)
{
    if (posts - c->seen_taken < BOARD_SLOTS) return true;
    uint64_t taken =
        atomic_load_explicit(&c->other->taken, memory_order_acquire);
    if (taken < c->seen_taken || taken > posts) {
        c->broken = true;
        return false;
    }
    c->seen_taken = taken;
    return posts - taken < BOARD_SLOTS;
}

/* Before the post after these. True: the other end has not read all bytes yet
 * that were written; they are marked as older than the post. */
static inline bool channel_mark_post(struct channel *c, uint64_t posts)
{
    if (c->seen_read == c->written) return false;
    uint64_t read = atomic_load_explicit(&c->other->read, memory_order_acquire);
    if (read == c->written) c->seen_read = read;
    if (read == c->written) return false;
    struct channel_mark *mark = &c->own->marks[(posts + 1) % BOARD_SLOTS];
    atomic_store_explicit(&mark->at, c->written, memory_order_relaxed);
    atomic_store_explicit(&mark->post, posts + 1, memory_order_relaxed);
    return true;
}

static inline bool channel_has_post(const struct channel *c, memory_order order)
{
    return c->board && (c->post_at < c->post_size ||
                        board_shows(c->board, c->taken + 1, order));
}

/* The next posts have been read where they lie, or are not needed. */
static inline void channel_skip_posts(struct channel *c, uint32_t posts)
{
    c->taken += posts;
    atomic_store_explicit(&c->own->taken, c->taken, memory_order_release);
}

/* Bytes of the queue that are older than the next post. */
static inline uint64_t channel_before_post(struct channel *c)
{
    uint64_t number = c->taken + 1;
    const struct channel_mark *mark = &c->other->marks[number % BOARD_SLOTS];
    if (atomic_load_explicit(&mark->post, memory_order_relaxed) != number)
        return 0;
    uint64_t size =
        atomic_load_explicit(&mark->at, memory_order_relaxed) - c->read;
    if (size <= c->size) return size;
    c->broken = true;
    return 0;
}

/* The next post but hints, which are skipped; none while a copy is read, or
 * while older bytes are in the queue: then at most *most may be read there. */
static inline struct board_view channel_look_at_post(struct channel *c,
                                                     uint64_t *most)
{
    struct board_view next = {.bytes = NULL};
    if (!c->board || c->post_at < c->post_size) return next;
    for (;;) {
        next = board_look(c->board, c->taken + 1);
        if (next.bytes && next.size == 0) c->broken = true;
        if (!next.bytes || !next.hint || c->broken) break;
        channel_skip_posts(c, 1);
    }
    uint64_t before = next.marked ? channel_before_post(c) : 0;
    if (before > 0) *most = before;
    if (before > 0 || c->broken) next.bytes = NULL;
    return next;
}

/* Copies the next post, if the last one has been read. True: there is one. */
static inline bool channel_take_post(struct channel *c, uint64_t *most)
{
    if (!c->board) return false;
    if (c->post_at < c->post_size) return true;
    struct board_view next = channel_look_at_post(c, most);
    if (!next.bytes) return false;
    memcpy(c->post, next.bytes, next.size);
    c->broken = !board_holds(c->board, c->taken + 1);
    if (c->broken) return false;
    c->post_size = next.size;
    c->post_at = 0;
    channel_skip_posts(c, 1);
    return true;
}

/* ---------------------------------------------------------------- reading */

/* Loads the index of the other end and returns it, if it can be. */
static inline uint64_t channel_seen(struct channel *c)
{
    uint64_t written =
        atomic_load_explicit(&c->other->written, memory_order_acquire);
    if (written == c->seen_written) return written;
    if (written - c->read > c->size || written - c->seen_written > c->size) {
        c->broken = true;
        return c->read;
    }
    c->seen_written = written;
    return written;
}

/* What the queue has up to that index, at most `most`. */
static inline size_t channel_queued(const struct channel *c, uint64_t written,
                                    uint64_t most, const uint8_t **from)
{
    /* Of all that is not read yet: it changes only when nothing is. */
    uint64_t base = atomic_load_explicit(&c->other->base, memory_order_relaxed);
    *from = c->in + ((c->read - base) & (c->size - 1));
    return (size_t)(written - c->read < most ? written - c->read : most);
}

/* Bytes to read, and their address. *from is not set when there are none.
 * A post is older than all bytes in the queue but those before its mark (L11b);
 * one that is older than `written` is seen, because that is loaded first. */
static inline size_t channel_ready(struct channel *c, const uint8_t **from)
{
    uint64_t written = channel_seen(c), most = UINT64_MAX;
    if (channel_take_post(c, &most)) {
        *from = c->post + c->post_at;
        return c->post_size - c->post_at;
    }
    return c->broken ? 0 : channel_queued(c, written, most, from);
}

/* Bytes to read; a post (*posted) is left where it is: afterwards
 * channel_holds() tells whether it was there all the time, and
 * channel_skip_posts() or channel_ready() goes on. */
static inline size_t channel_look(struct channel *c, const uint8_t **from,
                                  bool *posted)
{
    uint64_t written = channel_seen(c), most = UINT64_MAX;
    struct board_view next = channel_look_at_post(c, &most);
    *posted = next.bytes != NULL;
    if (*posted) *from = next.bytes;
    if (*posted) return next.size;
    if (c->board && c->post_at < c->post_size) {
        *from = c->post + c->post_at;
        return c->post_size - c->post_at;
    }
    return c->broken ? 0 : channel_queued(c, written, most, from);
}

/* A hint of that size behind that many posts, where it lies; or NULL. */
static inline const uint8_t *channel_look_at_hint(const struct channel *c,
                                                  uint32_t behind, size_t size)
{
    if (!c->board || c->post_at < c->post_size) return NULL;
    struct board_view hint = board_look(c->board, c->taken + 1 + behind);
    return hint.hint && hint.size == size ? hint.bytes : NULL;
}

/* The next posts are still those that were looked at. */
static inline bool channel_holds(const struct channel *c, uint32_t posts)
{
    bool holds = true;
    for (uint32_t i = 1; i <= posts; i++)
        holds &= board_holds(c->board, c->taken + i);
    return holds;
}

/* Whether channel_ready() has something to say. */
static inline bool channel_shows(const struct channel *c)
{
    return atomic_load_explicit(&c->other->written, memory_order_relaxed) !=
               c->read ||
           channel_has_post(c, memory_order_relaxed) || c->broken;
}

/* Of what channel_ready() has returned. Gives room back. channel_ring() is to
 * follow here as well. */
static inline void channel_read(struct channel *c, size_t size)
{
    c->read_post = c->post_at < c->post_size;
    if (c->read_post) {
        c->post_at += size;
        return;
    }
    c->read += size;
    atomic_store_explicit(&c->own->read, c->read, memory_order_release);
}

/* --------------------------------------------------------- doorbell, L3 */

/* An end that is about to sleep in the kernel arms its doorbell, looks once
 * more, and then waits for the socket of the connection. The other end, after
 * it has written or read, looks whether the doorbell is armed; if so it disarms
 * it and sends one byte through the socket. Rule L3 orders these accesses:
 *
 *     channel_arm                     channel_write or channel_read
 *       asleep = what                   index += size
 *       look at the other's index     channel_ring
 *                                       fence
 *                                       look at the other's asleep
 *
 * The store and the looks are sequentially consistent, as is the fence. If the
 * fence comes before `asleep` is stored, the end that arms sees the new index;
 * if it comes after, the end that rings sees the doorbell armed. Without it
 * both looks may pass both stores, and nobody wakes the sleeper
 * (test_doorbell.c). One fence serves all pieces of a pass; the
 * stores of the indices only order the bytes before them.
 *
 * The end that rings clears the flag, and always sends a byte after that. If it
 * clears a doorbell that was armed anew meanwhile, that byte wakes the sleeper,
 * which looks and arms again. */

/* Arms the own doorbell. True: the data or the room is there already. */
static inline bool channel_arm(struct channel *c, uint32_t what)
{
    atomic_store_explicit(&c->own->asleep, what, memory_order_seq_cst);
    if (what & CHANNEL_WANTS_DATA &&
        (atomic_load_explicit(&c->other->written, memory_order_seq_cst) !=
             c->read ||
         channel_has_post(c, memory_order_seq_cst)))
        return true;
    return what & CHANNEL_WANTS_ROOM &&
           c->written - atomic_load_explicit(&c->other->read,
                                             memory_order_seq_cst) !=
               c->size;
}

static inline void channel_disarm(struct channel *c)
{
    atomic_store_explicit(&c->own->asleep, CHANNEL_AWAKE, memory_order_release);
}

/* After writes (CHANNEL_WANTS_DATA) or reads (CHANNEL_WANTS_ROOM), and a
 * sequentially consistent fence. True: the other end sleeps for this, and a
 * byte is to be sent through the socket; once for each time that it fell
 * asleep. */
static inline bool channel_wakes(struct channel *c, uint32_t what)
{
    uint32_t asleep =
        atomic_load_explicit(&c->other->asleep, memory_order_seq_cst);
    if (!(asleep & what)) return false;
    atomic_store_explicit(&c->other->asleep, CHANNEL_AWAKE,
                          memory_order_release);
    return true;
}

/* Rings one channel, after the fence. */
static inline bool channel_ring(struct channel *c, uint32_t what)
{
    atomic_thread_fence(memory_order_seq_cst);
    return channel_wakes(c, what);
}

#endif
