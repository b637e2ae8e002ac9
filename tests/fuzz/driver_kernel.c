/* driver_kernel.c - see driver_kernel.h. */
#include "driver_inside.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_MOST = 5000 }; /* of a call that waits */

pccl_ns kernel_now;
volatile bool kernel_on;
struct kernel_path kernel_path;
uint32_t kernel_processors;
bool kernel_at_once;
char kernel_texts[2][KERNEL_TEXT];

static struct kernel_fd fds[KERNEL_FDS];
static struct kernel_stream streams[KERNEL_STREAMS];
static uint32_t stream_end, open_fds, ports;
static uint32_t steps;

static struct {
    void *(*start)(void *user);
    void *user;
    bool used, over;
} threads[KERNEL_THREADS];
static bool in_turn;
static uint32_t idles;
static jmp_buf idle;
static pthread_mutex_t *own_lock;

static struct {
    enum kernel_call call;
    uint8_t after, times;
    int error;
} faults[KERNEL_FAULTS];
static uint32_t fault_count;
static int error_now;
static struct {
    bool on;
    uint32_t after;
    uint8_t change;
} spoil;

static void (*go_on)(pccl_ns until);
static void (*let_others)(void);
static bool (*has_listener)(uint16_t port);

/* ----------------------------------------------------------------- streams */

struct kernel_stream *kernel_stream(uint32_t number)
{
    assert(number < KERNEL_STREAMS && streams[number].used);
    return &streams[number];
}

uint32_t kernel_pair(uint16_t port)
{
    uint32_t i = 0;
    while (i < KERNEL_STREAMS && streams[i].used) i++;
    if (i == KERNEL_STREAMS) return NO_STREAM;
    struct kernel_stream *s = &streams[i];
    for (int side = 0; side < 2; side++) {
        struct kernel_pipe *p = &s->pipe[side];
        p->first = p->count = 0;
        p->ended = p->reset = false;
        s->held[side] = true;
    }
    s->used = true;
    s->connecting = s->taken = false;
    s->port = port;
    s->error = 0;
    if (i >= stream_end) stream_end = i + 1;
    return i;
}

uint32_t kernel_take(uint16_t port)
{
    for (uint32_t i = 0; i < stream_end; i++) {
        struct kernel_stream *s = &streams[i];
        if (!s->used || s->taken || s->connecting || s->port != port) continue;
        s->taken = true;
        return i;
    }
    return NO_STREAM;
}

size_t kernel_put(uint32_t number, int side, const void *bytes, size_t size)
{
    struct kernel_pipe *p = &kernel_stream(number)->pipe[side];
    if (p->ended) return 0;
    if (p->first + p->count + size > sizeof p->bytes) {
        memmove(p->bytes, p->bytes + p->first, p->count);
        p->first = 0;
    }
    if (size > sizeof p->bytes - p->count) size = sizeof p->bytes - p->count;
    if (size > 0) memcpy(p->bytes + p->first + p->count, bytes, size);
    p->count += size;
    return size;
}

/* As recv() with MSG_PEEK where `bytes` is NULL. */
size_t kernel_get(uint32_t number, int side, void *bytes, size_t size)
{
    struct kernel_pipe *p = &kernel_stream(number)->pipe[!side];
    if (size > p->count) size = p->count;
    if (size > 0 && bytes) memcpy(bytes, p->bytes + p->first, size);
    p->first += size;
    p->count -= size;
    return size;
}

/* The other end reads what has come, unless it is reset. */
void kernel_hang_up(uint32_t number, int side, bool reset)
{
    struct kernel_stream *s = kernel_stream(number);
    struct kernel_pipe *out = &s->pipe[side];
    assert(s->held[side]);
    s->held[side] = false;
    out->ended = true;
    out->reset |= reset || s->pipe[!side].count > 0;
    if (out->reset) out->count = 0;
    /* Nobody reads what the other end sends from now on. */
    s->pipe[!side].ended = true;
    s->pipe[!side].count = 0;
    if (!s->held[!side]) s->used = false;
}

uint32_t kernel_call_driver(uint16_t port)
{
    for (uint32_t i = 0; i < KERNEL_FDS; i++)
        if (fds[i].kind == FD_LISTENER && fds[i].port == port)
            return kernel_pair(port);
    return NO_STREAM;
}

uint16_t kernel_own_port(void)
{
    for (uint32_t i = 0; i < KERNEL_FDS; i++)
        if (fds[i].kind == FD_LISTENER) return fds[i].port;
    return 0;
}

bool kernel_connects(void)
{
    bool any = false;
    for (uint32_t i = 0; i < stream_end; i++) {
        if (!streams[i].used || !streams[i].connecting) continue;
        streams[i].connecting = false;
        any = true;
    }
    return any;
}

uint32_t kernel_any(uint32_t which, int *side)
{
    for (uint32_t i = 0; i < KERNEL_FDS; i++) {
        const struct kernel_fd *f = &fds[(i + which) % KERNEL_FDS];
        if (f->kind != FD_STREAM) continue;
        *side = f->side;
        return f->stream;
    }
    return NO_STREAM;
}

/* ------------------------------------------------------------- descriptors */

struct kernel_fd *kernel_fd(int fd)
{
    if (fd < KERNEL_FD || fd >= KERNEL_FD + KERNEL_FDS) return NULL;
    struct kernel_fd *f = &fds[fd - KERNEL_FD];
    return f->kind == FD_NONE ? NULL : f;
}

int kernel_new_fd(enum kernel_kind kind)
{
    uint32_t i = 0;
    while (i < KERNEL_FDS && fds[i].kind != FD_NONE) i++;
    if (i == KERNEL_FDS) {
        errno = EMFILE;
        return -1;
    }
    struct kernel_fd *f = &fds[i];
    f->kind = kind;
    f->stream = NO_STREAM;
    f->count = 0;
    f->due = f->period = 0;
    f->watched = 0;
    f->port = 0;
    open_fds++;
    return KERNEL_FD + (int)i;
}

/* Nobody will take what waits there. */
static void refuse_all(uint16_t port)
{
    for (uint32_t i = 0; i < stream_end; i++)
        if (streams[i].used && !streams[i].taken && streams[i].port == port)
            kernel_hang_up(i, 1, true);
}

void kernel_close(int fd)
{
    struct kernel_fd *f = kernel_fd(fd);
    assert(f); /* twice */
    if (f->kind == FD_STREAM) kernel_hang_up(f->stream, f->side, false);
    if (f->kind == FD_LISTENER) refuse_all(f->port);
    for (uint32_t i = 0; i < KERNEL_FDS; i++) {
        struct kernel_fd *set = &fds[i];
        for (uint32_t k = 0; set->kind == FD_SET && k < set->watched; k++)
            if (set->set[k].fd == fd) set->set[k--] = set->set[--set->watched];
    }
    f->kind = FD_NONE;
    open_fds--;
}

bool kernel_listens(uint16_t port)
{
    for (uint32_t i = 0; i < KERNEL_FDS; i++)
        if (fds[i].kind == FD_LISTENER && fds[i].port == port) return true;
    return has_listener(port);
}

uint16_t kernel_free_port(void)
{
    return (uint16_t)(PORT_OWN + ports++ % 100);
}

bool kernel_connect(struct kernel_fd *f, uint16_t port)
{
    uint32_t number = kernel_listens(port) ? kernel_pair(port) : NO_STREAM;
    if (number == NO_STREAM) return false;
    f->kind = FD_STREAM;
    f->stream = number;
    f->side = 0;
    streams[number].connecting = !kernel_at_once;
    return true;
}

static short stream_ready(const struct kernel_fd *f)
{
    const struct kernel_stream *s = &streams[f->stream];
    const struct kernel_pipe *in = &s->pipe[!f->side];
    const struct kernel_pipe *out = &s->pipe[f->side];
    if (s->connecting) return 0;
    short events = 0;
    if (in->count > 0 || in->ended) events |= POLLIN;
    if (out->ended || out->count < sizeof out->bytes / 2) events |= POLLOUT;
    if (in->reset || s->error) events |= POLLERR | POLLHUP;
    return events;
}

static bool waits_there(uint16_t port)
{
    for (uint32_t i = 0; i < stream_end; i++)
        if (streams[i].used && !streams[i].taken && !streams[i].connecting &&
            streams[i].port == port)
            return true;
    return false;
}

short kernel_ready(const struct kernel_fd *f)
{
    switch (f->kind) {
    case FD_STREAM:
        return stream_ready(f);
    case FD_LISTENER:
        return waits_there(f->port) ? POLLIN : 0;
    case FD_BELL:
        return f->count > 0 ? POLLIN | POLLOUT : POLLOUT;
    case FD_TIMER:
        return f->due > 0 && f->due <= kernel_now ? POLLIN : 0;
    case FD_SET:
        for (uint32_t i = 0; i < f->watched; i++) {
            const struct kernel_fd *of = kernel_fd(f->set[i].fd);
            uint32_t wanted = f->set[i].event.events | EPOLLERR | EPOLLHUP;
            if (of && ((uint32_t)kernel_ready(of) & wanted)) return POLLIN;
        }
        return 0;
    default:
        return 0;
    }
}

size_t kernel_read(const struct kernel_fd *f, uint8_t *to, size_t size,
                   bool peeks)
{
    struct kernel_pipe *in = &streams[f->stream].pipe[!f->side];
    if (size > in->count) size = in->count;
    if (size > 0) memcpy(to, in->bytes + in->first, size);
    if (peeks) return size;
    in->first += size;
    in->count -= size;
    if (!spoil.on) return size;
    if (spoil.after < size) {
        to[spoil.after] ^= spoil.change;
        spoil.on = false;
    }
    spoil.after -= (uint32_t)size;
    return size;
}

void kernel_spoil(uint32_t after, uint8_t change)
{
    spoil.on = true;
    spoil.after = after;
    spoil.change = change;
}

/* ------------------------------------------------------------------- faults */

void kernel_fail(enum kernel_call call, uint8_t after, uint8_t times, int error)
{
    uint32_t i = fault_count++ % KERNEL_FAULTS;
    faults[i].call = call;
    faults[i].after = after;
    faults[i].times = times;
    faults[i].error = error;
}

int kernel_error(void)
{
    return error_now;
}

bool kernel_fails(enum kernel_call call)
{
    if (!kernel_on) return false;
    for (uint32_t i = 0; i < KERNEL_FAULTS; i++) {
        if (faults[i].times == 0 || faults[i].call != call) continue;
        if (faults[i].after > 0) {
            faults[i].after--;
            continue;
        }
        faults[i].times--;
        error_now = faults[i].error;
        errno = error_now;
        return true;
    }
    return false;
}

/* ------------------------------------------------------------------ threads */

void kernel_own(pthread_mutex_t *lock)
{
    own_lock = lock;
}

/* Its number stands for a thread. */
void kernel_start(void *(*start)(void *user), void *user, pthread_t *thread)
{
    for (uintptr_t i = 0; i < KERNEL_THREADS; i++) {
        if (threads[i].used) continue;
        threads[i].start = start;
        threads[i].user = user;
        threads[i].used = true;
        threads[i].over = false;
        *thread = (pthread_t)(i + 1);
        return;
    }
    abort(); /* there are no more */
}

bool kernel_has_thread(void)
{
    return threads[0].used && !threads[0].over;
}

static void turn_of(uint32_t i)
{
    in_turn = true;
    idles = 0;
    if (setjmp(idle) == 0) {
        (void)threads[i].start(threads[i].user);
        threads[i].over = true;
    }
    in_turn = false;
}

void kernel_idle(void)
{
    if (in_turn && idles++ > 0) longjmp(idle, 1);
}

bool kernel_turn(void)
{
    bool any = false, before = kernel_on;
    if (in_turn || !own_lock || pthread_mutex_trylock(own_lock) != 0)
        return false;
    (void)pthread_mutex_unlock(own_lock);
    kernel_on = true;
    for (uint32_t i = 0; i < KERNEL_THREADS; i++) {
        if (!threads[i].used || threads[i].over) continue;
        turn_of(i);
        any = true;
    }
    kernel_on = before;
    return any;
}

bool kernel_join(pthread_t thread)
{
    uintptr_t i = (uintptr_t)thread - 1;
    if (i >= KERNEL_THREADS || !threads[i].used) return false;
    for (uint32_t n = 0; !threads[i].over; n++) {
        assert(n < 100); /* it ends */
        /* The caller holds the lock where the thread needs it no more. */
        turn_of((uint32_t)i);
    }
    threads[i].used = false;
    return true;
}

/* ------------------------------------------------------------------ waiting */

void kernel_call_begins(void)
{
    steps = 0;
}

/* One step of all others, and a turn. */
void kernel_wait(pccl_ns until)
{
    bool before = kernel_on;
    assert(++steps < STEPS_MOST);
    kernel_on = false;
    go_on(until);
    kernel_on = before;
    (void)kernel_turn();
}

void kernel_ask_yields(void)
{
    bool before = kernel_on;
    kernel_on = false;
    let_others();
    kernel_on = before;
}

/* ------------------------------------------------------------ begin and end */

void kernel_begin(void (*outside)(pccl_ns until), void (*yields)(void),
                  bool (*listens)(uint16_t port))
{
    go_on = outside;
    let_others = yields;
    has_listener = listens;
    kernel_now = PCCL_S;
    stream_end = open_fds = steps = ports = 0;
    fault_count = 0;
    memset(faults, 0, sizeof faults);
    spoil.on = false;
    own_lock = NULL;
    kernel_path = (struct kernel_path){.rtt_us = 100, .least_us = 100};
    kernel_processors = 4;
    kernel_at_once = false;
}

void kernel_end(void)
{
    assert(open_fds == 0);
    for (uint32_t i = 0; i < KERNEL_THREADS; i++) assert(!threads[i].used);
    for (uint32_t i = 0; i < stream_end; i++) assert(!streams[i].used);
}
