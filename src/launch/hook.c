/* hook.c - see hook.h. */
#include "hook.h"

#include "descriptor.h"
#include "guard.h"
#include "program_path.h"
#include "spawn.h"

#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    RUNNING_MAX = 8,
    CALLS_MAX = 256, /* with those that wait */
    REASON_SIZE = 160,
    FACT_SIZE = 128,
};

enum call_state { CALL_FREE, CALL_WAITS, CALL_RUNS, CALL_KILLED };

struct call {
    struct hook *hook;
    enum call_state state;
    uint64_t number; /* of the event; calls begin in this order */
    uint64_t ticket; /* 0: nobody waits for an answer */
    char event[16];
    struct master_guest guest; /* its texts are here: */
    char name[FACT_SIZE], wants[16];
    pid_t pid;
    int fd; /* what it prints, or -1 */
    char reason[REASON_SIZE];
    ev_child child;
    ev_timer timer;
};

struct hook {
    struct ev_loop *loop;
    struct master_server *server;
    char *program;
    double limit;
    uint64_t number;
    uint32_t running;
    bool behind; /* events were left out, and that is told */
    struct call calls[CALLS_MAX];
};

/* ------------------------------------------------------------------ answers */

static void answer(struct call *c, bool admits, const char *why)
{
    char text[REASON_SIZE + 64];
    uint64_t ticket = c->ticket;
    c->ticket = 0;
    if (ticket == 0) return;
    snprintf(text, sizeof text, "the operator's hook refuses%s%s",
             *why ? ": " : "", why);
    if (c->hook->server)
        master_server_answer(c->hook->server, ticket, admits, text);
}

/* The first line that it has printed, as far as it is ASCII. */
static void read_reason(struct call *c)
{
    ssize_t n = c->fd >= 0 ? read(c->fd, c->reason, sizeof c->reason - 1) : 0;
    size_t size = n > 0 ? (size_t)n : 0, length = 0;
    while (length < size && c->reason[length] >= ' ' &&
           c->reason[length] <= '~')
        length++;
    c->reason[length] = '\0';
}

static void release(struct call *c)
{
    ev_timer_stop(c->hook->loop, &c->timer);
    if (c->fd >= 0) close(c->fd);
    c->fd = -1;
    c->state = CALL_FREE;
}

/* ----------------------------------------------------------------- programs */

static char **environment(const struct call *c)
{
    const char *path = getenv("PATH"), *home = getenv("HOME");
    const struct master_guest *g = &c->guest;
    char **env = memory_get(11, sizeof *env);
    env[0] = memory_print("PATH=%s", path ? path : "/usr/bin:/bin");
    env[1] = memory_print("HOME=%s", home ? home : "/");
    env[2] = memory_print("HOOK_EVENT=%s", c->event);
    env[3] = memory_print("HOOK_NUMBER=%" PRIu64, c->number);
    env[4] = memory_print("HOOK_NAME=%s", c->name);
    env[5] = memory_print("HOOK_GROUP=%" PRIu32, g->group);
    env[6] = memory_print("HOOK_ADDRESS=%s", g->address);
    env[7] = memory_print("HOOK_ID=%" PRIu64, g->id);
    env[8] = memory_print("HOOK_PID=%" PRIu32, g->pid);
    env[9] = memory_print("HOOK_WANTS=%s", c->wants);
    return env;
}

static void on_end(struct ev_loop *loop, ev_child *child, int events);

static bool spawn(struct call *c, int null, const int ends[2],
                  struct spawn_failure *failure)
{
    char *argv[] = {c->hook->program, c->event, NULL};
    char **env = environment(c);
    struct spawn_request request = {.file = c->hook->program,
                                    .argv = argv,
                                    .argc = 2,
                                    .env = env,
                                    .in = null,
                                    .out = ends[1],
                                    .err = STDERR_FILENO,
                                    .guard_fd = -1};
    getrlimit(RLIMIT_NOFILE, &request.files);
    c->pid = spawn_process(&request, failure);
    for (size_t i = 0; env[i]; i++) free(env[i]);
    free(env);
    return c->pid > 0;
}

/* False: it cannot be started; c->reason says why. */
static bool start(struct call *c)
{
    struct spawn_failure failure = {.what = "cannot connect the files of"};
    int ends[2] = {-1, -1};
    int null = descriptor_null();
    bool done = null >= 0 && descriptor_pipe(ends) == 0;
    if (!done) failure.error = errno;
    done = done && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 &&
           spawn(c, null, ends, &failure);
    if (null >= 0) close(null);
    if (ends[1] >= 0) close(ends[1]);
    c->fd = ends[0];
    if (!done) {
        snprintf(c->reason, sizeof c->reason, "%s it: %s", failure.what,
                 strerror(failure.error));
        complain("--hook: %s %s: %s", failure.what, c->hook->program,
                 strerror(failure.error));
        return false;
    }
    c->state = CALL_RUNS;
    c->hook->running++;
    ev_child_init(&c->child, on_end, c->pid, 0);
    c->child.data = c;
    ev_child_start(c->hook->loop, &c->child);
    return true;
}

static struct call *next_of(struct hook *h)
{
    struct call *found = NULL;
    for (size_t i = 0; i < CALLS_MAX; i++) {
        struct call *c = &h->calls[i];
        if (c->state == CALL_WAITS && (!found || c->number < found->number))
            found = c;
    }
    return found;
}

static void start_waiting(struct hook *h)
{
    struct call *c;
    while (h->running < RUNNING_MAX && (c = next_of(h))) {
        if (start(c)) continue;
        char why[REASON_SIZE];
        snprintf(why, sizeof why, "%s", c->reason);
        answer(c, false, why);
        release(c);
    }
}

static void on_end(struct ev_loop *loop, ev_child *child, int events)
{
    (void)events;
    struct call *c = child->data;
    struct hook *h = c->hook;
    int status = child->rstatus;
    ev_child_stop(loop, child);
    h->running--;
    read_reason(c);
    answer(c, WIFEXITED(status) && WEXITSTATUS(status) == 0, c->reason);
    release(c);
    start_waiting(h);
}

static void on_late(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    struct call *c = timer->data;
    char why[64];
    bool runs = c->state == CALL_RUNS;
    snprintf(why, sizeof why, "it gave no answer in %.1f s", c->hook->limit);
    if (runs) {
        kill(-c->pid, SIGKILL);
        c->state = CALL_KILLED; /* until it is reaped */
    }
    answer(c, false, why);
    if (!runs) release(c);
}

/* ------------------------------------------------------------------- events */

/* Begins with the next turn of the loop at the earliest. */
static void on_begin(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct call *c = timer->data;
    (void)events;
    ev_timer_stop(loop, timer);
    ev_set_cb(timer, on_late);
    ev_timer_set(timer, c->hook->limit, 0.);
    ev_timer_start(loop, timer);
    start_waiting(c->hook);
}

static bool add(struct hook *h, const struct master_guest *guest,
                const char *event)
{
    struct call *c = NULL;
    for (size_t i = 0; i < CALLS_MAX && !c; i++)
        if (h->calls[i].state == CALL_FREE) c = &h->calls[i];
    if (!c) return false;
    *c = (struct call){.hook = h,
                       .state = CALL_WAITS,
                       .number = ++h->number,
                       .ticket = guest->ticket,
                       .guest = *guest,
                       .fd = -1};
    snprintf(c->event, sizeof c->event, "%s", event);
    snprintf(c->name, sizeof c->name, "%s", guest->name);
    snprintf(c->wants, sizeof c->wants, "%s", guest->wants ? guest->wants : "");
    ev_timer_init(&c->timer, on_begin, 0., 0.);
    c->timer.data = c;
    ev_timer_start(h->loop, &c->timer);
    return true;
}

bool hook_ask(void *hook, const struct master_guest *guest, char *why,
              size_t size)
{
    if (add(hook, guest, "ask")) return true;
    snprintf(why, size, "too many wait for the operator's hook: try again");
    return false;
}

void hook_told(void *hook, const struct master_guest *guest, const char *event)
{
    struct hook *h = hook;
    struct master_guest told = *guest;
    told.ticket = 0;
    if (add(h, &told, event)) return;
    if (!h->behind)
        complain("--hook: it is too slow for what happens: "
                 "events are left out");
    h->behind = true;
}

void hook_serve(struct hook *hook, struct master_server *server)
{
    hook->server = server;
}

struct hook *hook_open(struct ev_loop *loop, const char *program, double limit,
                       char *error, size_t error_size)
{
    char *found = program_find(program, NULL, getenv("PATH"));
    if (!found || access(found, X_OK) != 0) {
        snprintf(error, error_size, "--hook %s: %s", program, strerror(errno));
        free(found);
        return NULL;
    }
    struct hook *h = memory_get(1, sizeof *h);
    h->loop = loop;
    h->program = found;
    h->limit = limit;
    return h;
}

void hook_close(struct hook *hook)
{
    for (size_t i = 0; i < CALLS_MAX; i++) {
        struct call *c = &hook->calls[i];
        if (c->state == CALL_FREE) continue;
        if (c->state == CALL_RUNS) kill(-c->pid, SIGKILL);
        if (c->state != CALL_WAITS) ev_child_stop(hook->loop, &c->child);
        release(c);
    }
    free(hook->program);
    free(hook);
}
