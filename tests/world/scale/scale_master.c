/* scale_master.c - the driver of the coordinator, and what it costs. See
 * scale.h.
 *
 * A turn is what its event loop does between two looks at the sockets: it reads
 * one connection, steps the machine, and sends what follows. */
#include "scale.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { PAGE = 4096 };

static bool turning; /* what is allocated now is the coordinator's */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *bytes);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *bytes);

static void grows(const void *bytes, bool more)
{
    struct scale_work *w = &scale.work;
    if (!turning || !bytes) return;
    size_t size = malloc_usable_size((void *)(uintptr_t)bytes);
    w->heap = more ? w->heap + size : w->heap - size;
    if (w->heap > w->heap_most) w->heap_most = w->heap;
}

void *__wrap_malloc(size_t size)
{
    void *bytes = __real_malloc(size);
    grows(bytes, true);
    return bytes;
}

void *__wrap_calloc(size_t count, size_t size)
{
    void *bytes = __real_calloc(count, size);
    grows(bytes, true);
    return bytes;
}

void *__wrap_realloc(void *old, size_t size)
{
    grows(old, false);
    void *bytes = __real_realloc(old, size);
    grows(bytes, true);
    return bytes;
}

void __wrap_free(void *bytes)
{
    grows(bytes, false);
    __real_free(bytes);
}

/* ------------------------------------------------------------------- turns */

static struct {
    struct timespec at;
    uint64_t steps, bytes;
} begun;

static void turn_begins(void)
{
    SCALE_CHECK(!turning);
    turning = true;
    begun.steps = scale_steps;
    begun.bytes = scale.work.bytes_out;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun.at);
}

static void turn_ends(void)
{
    struct scale_work *w = &scale.work;
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    pccl_ns took = (now.tv_sec - begun.at.tv_sec) * PCCL_S + now.tv_nsec -
                   begun.at.tv_nsec;
    uint64_t steps = scale_steps - begun.steps;
    uint64_t bytes = w->bytes_out - begun.bytes;
    turning = false;
    if (switchboard_is_behind(scale.board)) scale_wake(SCALE_MASTER, NULL);
    w->cpu += took;
    w->steps += steps;
    w->turns++;
    if (took > w->longest) w->longest = took;
    if (steps > w->longest_steps) w->longest_steps = steps;
    if (bytes > w->longest_bytes) w->longest_bytes = bytes;
}

/* ----------------------------------------------------------------- effects */

static struct scale_stream *stream_of(const struct master_conn *c)
{
    return c->user;
}

static void send_out(void *user, const uint32_t *links, uint32_t count,
                     const struct wire_msg *msg)
{
    (void)user;
    scale.work.messages_out += count;
    switchboard_send(scale.board, links, count, msg);
}

static void close_out(void *user, uint32_t link, const char *reason)
{
    (void)user;
    (void)reason;
    switchboard_close(scale.board, link);
}

static void step_out(void *user, struct master_event *e)
{
    (void)user;
    scale.work.messages_in += e->type == MASTER_RECEIVED;
    e->now = scale.now;
    master_step(scale.master, e);
}

static enum conn_result flush_out(void *user, struct master_conn *c)
{
    (void)user;
    struct master_chunk part;
    while (master_conn_parts(c, &part, 1) > 0) {
        turning = false;
        size_t sent = scale_write(stream_of(c), 1, part.bytes, part.size);
        turning = true;
        if (sent == 0) return CONN_WAIT;
        scale.work.bytes_out += sent;
        master_conn_sent(c, sent);
    }
    return CONN_DONE;
}

static void finish_out(void *user, struct master_conn *c)
{
    (void)user;
    stream_of(c)->pipe[1].ended = true;
}

static void end_out(void *user, struct master_conn *c)
{
    (void)user;
    struct scale_stream *st = stream_of(c);
    st->at_master = NULL;
    turning = false;
    if (st->party[1] == SCALE_MASTER) scale_leave(st, 1);
    turning = true;
}

/* ------------------------------------------------------------------ events */

void scale_master_accept(struct scale_stream *st)
{
    struct wire_addr addr = {.family = 4, .ip = {127, 0, 0, 1}};
    if (st->party[0] == SCALE_NOBODY) return;
    turn_begins();
    SCALE_CHECK(!switchboard_is_full(scale.board));
    st->at_master = switchboard_accept(scale.board, &addr, st);
    SCALE_CHECK(st->at_master != NULL);
    switchboard_turn(scale.board);
    turn_ends();
    if (st->pipe[0].count > 0) scale_wake(SCALE_MASTER, st);
}

void scale_master_read(struct scale_stream *st)
{
    struct net_pipe *p = &st->pipe[0];
    if (!st->at_master) return;
    turn_begins();
    while (st->at_master && p->count > 0) {
        size_t room;
        uint8_t *to = master_conn_room(st->at_master, &room);
        size_t size = net_read(p, to, room);
        scale.work.bytes_in += size;
        switchboard_received(scale.board, st->at_master, size);
    }
    if (st->at_master && p->ended)
        switchboard_lose(scale.board, st->at_master, "closed by the peer");
    switchboard_turn(scale.board);
    turn_ends();
    scale_was_read(st, 1);
}

void scale_master_writable(struct scale_stream *st)
{
    if (!st->at_master) return;
    turn_begins();
    switchboard_touch(scale.board, st->at_master);
    switchboard_turn(scale.board);
    turn_ends();
}

void scale_master_rest(void)
{
    if (!switchboard_is_behind(scale.board)) return;
    turn_begins();
    switchboard_turn(scale.board);
    turn_ends();
}

void scale_master_tick(void)
{
    struct master_event e = {.type = MASTER_TICK};
    scale.master_tick_at = scale.now + PCCL_TIME_TO_PING(SCALE_DEADLINE);
    turn_begins();
    switchboard_linger(scale.board, scale.now);
    step_out(NULL, &e);
    switchboard_turn(scale.board);
    turn_ends();
}

/* ------------------------------------------------------------------ memory */

static void *map(size_t size)
{
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    SCALE_CHECK(bytes != MAP_FAILED);
    return bytes;
}

static uint64_t touched(void *bytes, size_t size)
{
    static unsigned char pages[64 << 20 >> 12];
    uint64_t sum = 0;
    SCALE_CHECK(size <= sizeof pages * PAGE);
    SCALE_CHECK(mincore(bytes, size, pages) == 0);
    for (size_t i = 0; i < (size + PAGE - 1) / PAGE; i++) sum += pages[i] & 1;
    return sum * PAGE;
}

uint64_t scale_master_touched(void)
{
    return touched(scale.master, sizeof *scale.master) +
           touched(scale.board, sizeof *scale.board) +
           touched(scale.edges, bandwidth_size(PEERS_MAX));
}

void scale_master_begin(uint32_t quorum)
{
    scale.master = map(sizeof *scale.master);
    scale.board = map(sizeof *scale.board);
    scale.edges = map(bandwidth_size(PEERS_MAX));
    struct master_config config = {
        .out = {.send = send_out, .close = close_out},
        .edges =
            bandwidth_init(scale.edges, bandwidth_size(PEERS_MAX), PEERS_MAX),
        .deadline = SCALE_DEADLINE,
        .quorum = quorum,
        .job = true,
        .warn_after = 10 * PCCL_S,
        .key = {{1, 2}}};
    struct switchboard_output out = {NULL, step_out, flush_out, finish_out,
                                     end_out};
    SCALE_CHECK(master_init(scale.master, &config));
    switchboard_init(scale.board, scale.master, &out,
                     &(struct switchboard_limits){0});
}

void scale_master_end(void)
{
    turning = true;
    switchboard_free(scale.board);
    master_free(scale.master);
    turning = false;
    (void)munmap(scale.master, sizeof *scale.master);
    (void)munmap(scale.board, sizeof *scale.board);
    (void)munmap(scale.edges, bandwidth_size(PEERS_MAX));
}
