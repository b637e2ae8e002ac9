/* timeline.c - rings of events, and the file that they go to. See timeline.h.
 */
#include "timeline.h"

#include "timeline_text.h"
#include "../base/file_pattern.h"
#include "../base/quiet_write.h"
#include "../base/slow_call.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    RING_EVENTS = 8192,
    BUFFER_SIZE = 64 * 1024,
    END_WAITS = 1000 /* ms, when the process ends */
};

/* Of one thread at a time, which puts events at `head`. Whoever holds the lock
 * of the file takes them from `tail`. Rings are never freed: threads may put
 * events while the process ends. */
struct ring {
    struct ring *next;
    atomic_bool used; /* by a living thread */
    bool named;       /* the file has the thread's name */
    int thread;
    char thread_name[16];
    _Atomic uint32_t head, tail;
    struct trace_event events[RING_EVENTS];
};

atomic_bool trace_state;

static pthread_mutex_t file_lock = PTHREAD_MUTEX_INITIALIZER;
static int file = -1;
static bool forked; /* after it was opened */
static bool closed;
static char buffer[BUFFER_SIZE];
static size_t buffered;
static char problem[512];
static atomic_int failure; /* errno of the disk; 0: none */
static atomic_bool ends;
static _Atomic uint64_t lost; /* events, which no ring had room for */

static void flush_all(void *unused);

static struct slow_call disk = SLOW_CALL(flush_all, NULL);

static _Atomic(struct ring *) rings;
static _Thread_local struct ring *own;
static pthread_key_t own_key; /* its destructor gives the ring back */

/* ------------------------------------------------------------------- file */

static void write_buffer(void)
{
    int error = closed ? 0 : quiet_write_all(file, buffer, buffered);
    buffered = 0;
    if (error == 0) return;
    /* A full disk: the trace ends there, and has no hole when there is room
     * again. */
    atomic_store(&failure, error);
    closed = true;
    atomic_store(&trace_state, false);
}

static char *room(size_t size)
{
    if (buffered + size > sizeof buffer) write_buffer();
    return buffer + buffered;
}

static void write_ring(struct ring *r)
{
    uint32_t head = atomic_load_explicit(&r->head, memory_order_acquire);
    uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    if (head != tail && !r->named) {
        r->named = true;
        buffered +=
            trace_text_thread(room(TRACE_TEXT_MAX), r->thread, r->thread_name);
    }
    for (; tail != head; tail++)
        buffered += trace_text_event(room(TRACE_TEXT_MAX), r->thread,
                                     &r->events[tail % RING_EVENTS]);
    atomic_store_explicit(&r->tail, tail, memory_order_release);
}

static void flush_locked(void)
{
    if (file < 0 || closed) return;
    for (struct ring *r = atomic_load(&rings); r; r = r->next) write_ring(r);
    write_buffer();
}

static void flush_all(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&file_lock);
    flush_locked();
    if (atomic_load(&ends) && file >= 0 && !closed) {
        buffered += trace_text_end(room(TRACE_TEXT_MAX));
        write_buffer();
        closed = true;
    }
    pthread_mutex_unlock(&file_lock);
}

void trace_flush(void)
{
    (void)slow_call_ask(&disk, SLOW_CALL_MOMENT);
}

/* The process ends, which a disk does not prevent. */
__attribute__((destructor)) static void finish(void)
{
    if (!atomic_exchange(&trace_state, false)) return;
    atomic_store(&ends, true);
    (void)slow_call_ask(&disk, 0);
    (void)slow_call_end(&disk, END_WAITS);
}

/* ---------------------------------------------------------------- opening */

/* The file is the parent's. A child that connects opens its own. No fork waits
 * for the lock, which a slow disk may keep. */
static void in_child(void)
{
    atomic_store(&trace_state, false);
    if (file >= 0) close(file);
    forked = forked || file >= 0;
    file = -1;
    buffered = 0;
    own = NULL;
    atomic_store(&rings, NULL);
    (void)pthread_mutex_init(&file_lock, NULL);
    slow_call_forked(&disk);
}

static void give_back(void *ring)
{
    struct ring *r = ring;
    trace_flush();
    /* Its events have the name of its thread. */
    if (atomic_load(&r->head) == atomic_load(&r->tail))
        atomic_store(&r->used, false);
}

static bool make_key(void)
{
    static bool made;
    if (made) return true;
    made = pthread_key_create(&own_key, give_back) == 0 &&
           pthread_atfork(NULL, NULL, in_child) == 0;
    return made;
}

static bool names_process(const char *pattern)
{
    return strstr(pattern, "%p") || strstr(pattern, "%r");
}

/* Without %r and %p the rank is appended; a process that has none, or that was
 * forked by one that writes a trace, has its own number there. */
static bool make_path(char *path, size_t size, const char *set, int32_t rank)
{
    char pattern[PATH_MAX], text[32];
    (void)snprintf(text, sizeof text, "p%d", (int)getpid());
    if (rank >= 0 && !forked)
        (void)snprintf(text, sizeof text, "%d", (int)rank);
    int used = snprintf(pattern, sizeof pattern, "%s%s", set,
                        names_process(set) ? "" : ".%r");
    return used > 0 && (size_t)used < sizeof pattern &&
           file_pattern(path, size, pattern, text);
}

static const char *open_locked(const char *set, int32_t rank)
{
    char path[PATH_MAX];
    if (file >= 0 || closed) return NULL;
    errno = ENAMETOOLONG;
    int fd = -1;
    if (make_key() && make_path(path, sizeof path, set, rank))
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        (void)snprintf(problem, sizeof problem,
                       "PCCL_TRACE=%.256s cannot be opened: %s", set,
                       strerror(errno));
        return problem;
    }
    file = fd;
    buffered += trace_text_begin(room(2 * TRACE_TEXT_MAX), rank);
    write_buffer();
    atomic_store(&trace_state, !closed);
    return NULL;
}

const char *trace_open(int32_t rank)
{
    const char *set = getenv("PCCL_TRACE");
    if (!set || *set == '\0') return NULL;
    pthread_mutex_lock(&file_lock);
    const char *why = open_locked(set, rank);
    pthread_mutex_unlock(&file_lock);
    return why;
}

/* ------------------------------------------------------------------- rings */

static void adopt(struct ring *r)
{
    r->thread = (int)syscall(SYS_gettid);
    if (pthread_getname_np(pthread_self(), r->thread_name,
                           sizeof r->thread_name) != 0)
        r->thread_name[0] = '\0';
    r->named = false;
    own = r;
    (void)pthread_setspecific(own_key, r);
}

/* Of a thread that has ended, or a new one. NULL: no memory. */
static struct ring *find_ring(void)
{
    for (struct ring *r = atomic_load(&rings); r; r = r->next) {
        bool used = false;
        if (!atomic_compare_exchange_strong(&r->used, &used, true)) continue;
        adopt(r);
        return r;
    }
    struct ring *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    atomic_store(&r->used, true);
    adopt(r);
    r->next = atomic_load(&rings);
    while (!atomic_compare_exchange_weak(&rings, &r->next, r)) continue;
    return r;
}

bool trace_put(const struct trace_event *event)
{
    struct ring *r = own ? own : find_ring();
    if (!r) return false;
    uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);
    if (head - tail == RING_EVENTS) {
        trace_flush();
        tail = atomic_load_explicit(&r->tail, memory_order_acquire);
        if (head - tail == RING_EVENTS) {
            atomic_fetch_add(&lost, trace_is_on());
            return false;
        }
    }
    r->events[head % RING_EVENTS] = *event;
    atomic_store_explicit(&r->head, head + 1, memory_order_release);
    return head + 1 - tail == RING_EVENTS / 2;
}

bool trace_trouble(char *line, size_t size)
{
    static atomic_bool told;
    if (atomic_load(&failure) == 0 && atomic_load(&lost) == 0) return false;
    if (!slow_call_is_done(&disk)) return false;
    int error = atomic_load(&failure);
    uint64_t some = error == 0 ? atomic_exchange(&lost, 0) : 0;
    if (error != 0 && !atomic_exchange(&told, true))
        (void)snprintf(line, size, "PCCL_TRACE: the trace ends here: %s",
                       strerror(error));
    else if (some > 0)
        (void)snprintf(line, size,
                       "PCCL_TRACE: %llu events are lost: the disk is slow",
                       (unsigned long long)some);
    else
        return false;
    return true;
}

/* Names come from programs: only what needs no escape in JSON. */
void trace_set_name(struct trace_event *event, const char *name)
{
    size_t i = 0;
    for (; i < TRACE_NAME_SIZE - 1 && name[i] != '\0'; i++) {
        char c = name[i];
        bool plain = c >= ' ' && c <= '~' && c != '"' && c != '\\';
        event->name[i] = plain ? c : '?';
    }
    event->name[i] = '\0';
}
