/* box.c - see box.h. */
#include "box.h"

#include "bound.h"
#include "box_log.h"
#include "packet.h"
#include "space.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    READS_MAX = 32, /* packets of one node before the next has its turn */
    GRACE_MS = 2000,
};

struct box {
    const struct world *world;
    const struct box_options *options;
    struct fabric *fabric;
    struct ring best;
    uint32_t best_at; /* changes of the fabric that it knows */
    struct space spaces[NODES_MAX];
    pid_t pids[NODES_MAX]; /* 0: ended, or none */
    int status[NODES_MAX];
    uint32_t peers_left;
    int epoll_fd, signal_fd, control_fd, control_in;
    int64_t begin;
    wan_ns worst_late;
    double sum_late;
    uint64_t packets;
    char line[512]; /* of the control pipe */
    size_t line_size;
    uint8_t buffer[VNET_SIZE + 65536];
};

static int64_t clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * WAN_S + t.tv_nsec;
}

static wan_ns box_now(const struct box *b)
{
    return clock_now() - b->begin;
}

/* --------------------------------------------------------------- programs */

static void set_number(const char *name, uint32_t value)
{
    char text[16];
    snprintf(text, sizeof text, "%u", value);
    (void)setenv(name, text, 1);
}

static void set_address(const char *name, uint32_t node)
{
    char text[16];
    uint32_t ip = space_address(node);
    snprintf(text, sizeof text, "%u.%u.%u.%u", ip >> 24, (ip >> 16) & 255,
             (ip >> 8) & 255, ip & 255);
    (void)setenv(name, text, 1);
}

static void become(const struct box *b, uint32_t node, const char *command)
{
    const struct world *w = b->world;
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpriority(PRIO_PROCESS, 0, 0);
    if (!space_enter(&b->spaces[node])) _exit(127);
    set_number("WAN_PEER", node);
    set_number("WAN_PEERS", w->nodes - 1);
    set_number("WAN_CONTROL", (uint32_t)b->control_in);
    set_address("WAN_ADDRESS", node);
    set_address("WAN_MASTER", MASTER_NODE);
    (void)setenv("WAN_REGION", w->region_name[w->region_of[node]], 1);
    (void)fcntl(b->control_in, F_SETFD, 0);
    (void)setpgid(0, 0);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

static bool start(struct box *b, uint32_t node, const char *command)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) become(b, node, command);
    b->pids[node] = pid > 0 ? pid : 0;
    return pid > 0;
}

static bool start_all(struct box *b)
{
    if (b->options->master && !start(b, MASTER_NODE, b->options->master))
        return false;
    for (uint32_t i = 1; i < b->world->nodes; i++) {
        if (!start(b, i, b->options->peer)) return false;
        b->peers_left++;
    }
    return true;
}

/* The first process of a PID namespace inherits everybody's orphans. */
static void reap(struct box *b)
{
    struct signalfd_siginfo info;
    ssize_t n = read(b->signal_fd, &info, sizeof info);
    (void)n;
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (uint32_t i = 0; i < b->world->nodes; i++) {
            if (b->pids[i] != pid) continue;
            b->pids[i] = 0;
            b->status[i] = WIFEXITED(status) ? WEXITSTATUS(status)
                                             : 128 + WTERMSIG(status);
            if (i != MASTER_NODE) b->peers_left--;
            box_log_end(b->options->log, i, b->status[i], box_now(b));
        }
    }
}

/* ---------------------------------------------------------------- packets */

static void collect(struct box *b, uint32_t node)
{
    for (int i = 0; i < READS_MAX; i++) {
        ssize_t n = read(b->spaces[node].tun_fd, b->buffer, sizeof b->buffer);
        if (n <= 0) return;
        struct packet *p =
            packet_make(b->buffer, (uint32_t)n, node, b->world->nodes);
        if (p) fabric_offer(b->fabric, box_now(b), p);
    }
}

static void deliver(struct box *b)
{
    struct packet *p;
    while ((p = fabric_take(b->fabric)) != NULL) {
        wan_ns late = box_now(b) - p->at;
        if (late > b->worst_late) b->worst_late = late;
        b->sum_late += (double)late;
        b->packets++;
        ssize_t n = write(b->spaces[p->to].tun_fd, p->data, p->size);
        (void)n; /* a device without room loses packets, as devices do */
        free(p);
    }
}

/* ---------------------------------------------------------------- control */

/* Sought anew only when links have changed: it takes time from the network. */
static const struct ring *best_ring(struct box *b)
{
    uint32_t changes = fabric_changes(b->fabric);
    if (b->best_at != changes && b->options->log)
        b->best = bound_best(b->fabric, b->options->connections);
    b->best_at = changes;
    return &b->best;
}

static void command(struct box *b, const char *line)
{
    char error[WORLD_ERROR_SIZE];
    struct statement s;
    fabric_run(b->fabric, box_now(b));
    if (strncmp(line, "mark ", 5) == 0) {
        box_log_mark(b->options->log, b->fabric, line + 5, box_now(b),
                     b->options->connections, best_ring(b));
        fabric_clear_tallies(b->fabric);
    } else if (world_statement(b->world, line, &s, error)) {
        fabric_apply(b->fabric, &s);
        box_log_change(b->options->log, line, box_now(b));
    } else {
        fprintf(stderr, "wanbox: control: '%s': %s\n", line, error);
    }
}

static void read_control(struct box *b)
{
    size_t room = sizeof b->line - 1 - b->line_size;
    ssize_t n = read(b->control_fd, b->line + b->line_size, room);
    if (n <= 0) return;
    b->line_size += (size_t)n;
    b->line[b->line_size] = '\0';
    char *end;
    while ((end = strchr(b->line, '\n')) != NULL) {
        *end++ = '\0';
        command(b, b->line);
        b->line_size = strlen(end);
        memmove(b->line, end, b->line_size + 1);
    }
    if (b->line_size == sizeof b->line - 1) b->line_size = 0; /* no line */
}

/* -------------------------------------------------------------------- loop */

enum { TOKEN_SIGNAL = NODES_MAX, TOKEN_CONTROL };

static bool watch(const struct box *b, int fd, uint32_t token)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = token};
    return epoll_ctl(b->epoll_fd, EPOLL_CTL_ADD, fd, &e) == 0;
}

static bool prepare(struct box *b)
{
    char error[SPACE_ERROR_SIZE];
    int control[2];
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &child, NULL);
    b->signal_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    b->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (b->signal_fd < 0 || b->epoll_fd < 0 || pipe2(control, O_CLOEXEC) != 0)
        return false;
    b->control_fd = control[0];
    b->control_in = control[1];
    if (fcntl(b->control_fd, F_SETFL, O_NONBLOCK) != 0 ||
        !watch(b, b->signal_fd, TOKEN_SIGNAL) ||
        !watch(b, b->control_fd, TOKEN_CONTROL))
        return false;
    bool offload = packet_offload(b->world);
    for (uint32_t i = 0; i < b->world->nodes; i++) {
        if (!space_make(&b->spaces[i], i, b->world, offload, error)) {
            fprintf(stderr, "wanbox: node %u: %s\n", i, error);
            return false;
        }
        if (!watch(b, b->spaces[i].tun_fd, i)) return false;
    }
    b->fabric = fabric_make(b->world);
    return b->fabric != NULL;
}

static void turn(struct box *b, wan_ns until)
{
    struct epoll_event events[NODES_MAX + 2];
    wan_ns due = fabric_due(b->fabric);
    wan_ns wait = (due < until ? due : until) - box_now(b);
    if (wait < 0) wait = 0;
    struct timespec t = {.tv_sec = wait / WAN_S, .tv_nsec = wait % WAN_S};
    int n = epoll_pwait2(b->epoll_fd, events, NODES_MAX + 2, &t, NULL);
    for (int i = 0; i < n; i++) {
        uint32_t token = events[i].data.u32;
        if (token == TOKEN_SIGNAL)
            reap(b);
        else if (token == TOKEN_CONTROL)
            read_control(b);
        else
            collect(b, token);
    }
    fabric_run(b->fabric, box_now(b));
    deliver(b);
}

/* The peers have ended, or their time is over. */
static void stop(struct box *b)
{
    for (uint32_t i = 0; i < b->world->nodes; i++)
        if (b->pids[i] > 0) (void)kill(-b->pids[i], SIGTERM);
    wan_ns until = box_now(b) + GRACE_MS * WAN_MS;
    bool left = true;
    while (left && box_now(b) < until) {
        left = false;
        for (uint32_t i = 0; i < b->world->nodes; i++) left |= b->pids[i] > 0;
        if (left) turn(b, until);
    }
}

int box_run(const struct world *world, const struct box_options *options)
{
    struct box *b = calloc(1, sizeof *b);
    if (!b) return 1;
    b->world = world;
    b->options = options;
    /* The emulator is the network: it goes before those who use it. */
    struct sched_param first = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &first) != 0)
        (void)setpriority(PRIO_PROCESS, 0, -10);
    (void)prctl(PR_SET_TIMERSLACK, 1);
    if (!prepare(b)) {
        free(b);
        return 1;
    }
    box_log_world(options->log, world, b->fabric, options->connections,
                  best_ring(b));
    b->begin = clock_now();
    bool ok = start_all(b);
    while (ok && b->peers_left > 0 && box_now(b) < world->limit)
        turn(b, world->limit);
    int result = ok && b->peers_left == 0 ? 0 : BOX_TIME_LIMIT;
    for (uint32_t i = 1; i < world->nodes; i++) {
        if (b->status[i] != 0 && result == 0) result = 1;
    }
    stop(b);
    box_log_over(options->log, box_now(b), result, b->packets,
                 b->packets ? b->sum_late / (double)b->packets : 0,
                 b->worst_late);
    if (result == BOX_TIME_LIMIT)
        fprintf(stderr, "wanbox: not over within %g s\n",
                (double)world->limit / 1e9);
    fabric_destroy(b->fabric);
    free(b);
    return result;
}
