/* emulator.c - the event loop between the TUN devices and the emulated
 * links. */
#include "emulator.h"

#include "bound.h"
#include "emulator_log.h"
#include "packet.h"
#include "../../src/bench/namespace.h"

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
    READS_MAX = 32, /* packets read from one node before the next is served */
    GRACE_MS = 2000,
};

struct emulator {
    const struct world *world;
    const struct emulator_options *options;
    struct network *network;
    struct ring best;
    uint32_t
        best_at; /* number of network changes for which `best` was computed */
    struct namespace namespaces[NODES_MAX];
    pid_t pids[NODES_MAX]; /* 0: ended, or never started */
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

static wan_ns emulator_now(const struct emulator *em)
{
    return clock_now() - em->begin;
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
    uint32_t ip = namespace_address(node);
    snprintf(text, sizeof text, "%u.%u.%u.%u", ip >> 24, (ip >> 16) & 255,
             (ip >> 8) & 255, ip & 255);
    (void)setenv(name, text, 1);
}

static void become(const struct emulator *em, uint32_t node,
                   const char *command)
{
    const struct world *w = em->world;
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpriority(PRIO_PROCESS, 0, 0);
    if (!namespace_enter(&em->namespaces[node])) _exit(127);
    set_number("WAN_PEER", node);
    set_number("WAN_PEERS", w->nodes - 1);
    set_number("WAN_CONTROL", (uint32_t)em->control_in);
    set_address("WAN_ADDRESS", node);
    set_address("WAN_MASTER", MASTER_NODE);
    (void)setenv("WAN_REGION", w->region_name[w->region_of[node]], 1);
    (void)fcntl(em->control_in, F_SETFD, 0);
    (void)setpgid(0, 0);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

static bool start(struct emulator *em, uint32_t node, const char *command)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) become(em, node, command);
    em->pids[node] = pid > 0 ? pid : 0;
    return pid > 0;
}

static bool start_all(struct emulator *em)
{
    if (em->options->master && !start(em, MASTER_NODE, em->options->master))
        return false;
    for (uint32_t i = 1; i < em->world->nodes; i++) {
        if (!start(em, i, em->options->peer)) return false;
        em->peers_left++;
    }
    return true;
}

/* The first process of a PID namespace inherits all orphans. */
static void reap(struct emulator *em)
{
    struct signalfd_siginfo info;
    ssize_t n = read(em->signal_fd, &info, sizeof info);
    (void)n;
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (uint32_t i = 0; i < em->world->nodes; i++) {
            if (em->pids[i] != pid) continue;
            em->pids[i] = 0;
            em->status[i] = WIFEXITED(status) ? WEXITSTATUS(status)
                                              : 128 + WTERMSIG(status);
            if (i != MASTER_NODE) em->peers_left--;
            emulator_log_end(em->options->log, i, em->status[i],
                             emulator_now(em));
        }
    }
}

/* ---------------------------------------------------------------- packets */

static void collect(struct emulator *em, uint32_t node)
{
    for (int i = 0; i < READS_MAX; i++) {
        ssize_t n =
            read(em->namespaces[node].tun_fd, em->buffer, sizeof em->buffer);
        if (n <= 0) return;
        struct packet *p =
            packet_make(em->buffer, (uint32_t)n, node, em->world->nodes,
                        namespace_address(MASTER_NODE));
        if (p) network_offer(em->network, emulator_now(em), p);
    }
}

static void deliver(struct emulator *em)
{
    struct packet *p;
    while ((p = network_take(em->network)) != NULL) {
        wan_ns late = emulator_now(em) - p->at;
        if (late > em->worst_late) em->worst_late = late;
        em->sum_late += (double)late;
        em->packets++;
        ssize_t n = write(em->namespaces[p->to].tun_fd, p->data, p->size);
        (void)n; /* a device whose queue is full loses packets */
        free(p);
    }
}

/* ---------------------------------------------------------------- control */

/* Computed again only after a change of links: it delays packets. */
static const struct ring *best_ring(struct emulator *em)
{
    uint32_t changes = network_changes(em->network);
    if (em->best_at != changes && em->options->log)
        em->best = bound_best(em->network, em->options->connections);
    em->best_at = changes;
    return &em->best;
}

static void command(struct emulator *em, const char *line)
{
    char error[WORLD_ERROR_SIZE];
    struct statement s;
    network_run(em->network, emulator_now(em));
    if (strncmp(line, "mark ", 5) == 0) {
        emulator_log_mark(em->options->log, em->network, line + 5,
                          emulator_now(em), em->options->connections,
                          best_ring(em));
        network_clear_tallies(em->network);
    } else if (world_statement(em->world, line, &s, error)) {
        network_apply(em->network, &s);
        emulator_log_change(em->options->log, line, emulator_now(em));
    } else {
        fprintf(stderr, "wan-emulator: control: '%s': %s\n", line, error);
    }
}

static void read_control(struct emulator *em)
{
    size_t room = sizeof em->line - 1 - em->line_size;
    ssize_t n = read(em->control_fd, em->line + em->line_size, room);
    if (n <= 0) return;
    em->line_size += (size_t)n;
    em->line[em->line_size] = '\0';
    char *end;
    while ((end = strchr(em->line, '\n')) != NULL) {
        *end++ = '\0';
        command(em, em->line);
        em->line_size = strlen(end);
        memmove(em->line, end, em->line_size + 1);
    }
    if (em->line_size == sizeof em->line - 1) em->line_size = 0; /* no line */
}

/* -------------------------------------------------------------------- loop */

enum { TOKEN_SIGNAL = NODES_MAX, TOKEN_CONTROL };

static bool watch(const struct emulator *em, int fd, uint32_t token)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = token};
    return epoll_ctl(em->epoll_fd, EPOLL_CTL_ADD, fd, &e) == 0;
}

static bool prepare(struct emulator *em)
{
    char error[NAMESPACE_ERROR_SIZE];
    int control[2];
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &child, NULL);
    em->signal_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    em->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (em->signal_fd < 0 || em->epoll_fd < 0 || pipe2(control, O_CLOEXEC) != 0)
        return false;
    em->control_fd = control[0];
    em->control_in = control[1];
    if (fcntl(em->control_fd, F_SETFL, O_NONBLOCK) != 0 ||
        !watch(em, em->signal_fd, TOKEN_SIGNAL) ||
        !watch(em, em->control_fd, TOKEN_CONTROL))
        return false;
    bool offload = packet_offload(em->world);
    for (uint32_t i = 0; i < em->world->nodes; i++) {
        if (!namespace_make(&em->namespaces[i], i, em->world->mtu,
                            em->world->congestion, offload, error)) {
            fprintf(stderr, "wan-emulator: node %u: %s\n", i, error);
            return false;
        }
        if (!watch(em, em->namespaces[i].tun_fd, i)) return false;
    }
    em->network = network_make(em->world);
    return em->network != NULL;
}

static void poll_events(struct emulator *em, wan_ns until)
{
    struct epoll_event events[NODES_MAX + 2];
    wan_ns due = network_due(em->network);
    wan_ns wait = (due < until ? due : until) - emulator_now(em);
    if (wait < 0) wait = 0;
    struct timespec t = {.tv_sec = wait / WAN_S, .tv_nsec = wait % WAN_S};
    int n = epoll_pwait2(em->epoll_fd, events, NODES_MAX + 2, &t, NULL);
    for (int i = 0; i < n; i++) {
        uint32_t token = events[i].data.u32;
        if (token == TOKEN_SIGNAL)
            reap(em);
        else if (token == TOKEN_CONTROL)
            read_control(em);
        else
            collect(em, token);
    }
    network_run(em->network, emulator_now(em));
    deliver(em);
}

/* Ends the programs if they have not ended by themselves. */
static void stop(struct emulator *em)
{
    for (uint32_t i = 0; i < em->world->nodes; i++)
        if (em->pids[i] > 0) (void)kill(-em->pids[i], SIGTERM);
    wan_ns until = emulator_now(em) + GRACE_MS * WAN_MS;
    bool left = true;
    while (left && emulator_now(em) < until) {
        left = false;
        for (uint32_t i = 0; i < em->world->nodes; i++) left |= em->pids[i] > 0;
        if (left) poll_events(em, until);
    }
}

int emulator_run(const struct world *world,
                 const struct emulator_options *options)
{
    struct emulator *em = calloc(1, sizeof *em);
    if (!em) return 1;
    em->world = world;
    em->options = options;
    /* Higher priority than the programs: the emulator is their network. */
    struct sched_param first = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &first) != 0)
        (void)setpriority(PRIO_PROCESS, 0, -10);
    (void)prctl(PR_SET_TIMERSLACK, 1);
    if (!prepare(em)) {
        free(em);
        return 1;
    }
    emulator_log_world(options->log, world, em->network, options->connections,
                       best_ring(em));
    em->begin = clock_now();
    bool ok = start_all(em);
    while (ok && em->peers_left > 0 && emulator_now(em) < world->limit)
        poll_events(em, world->limit);
    int result = ok && em->peers_left == 0 ? 0 : EMULATOR_TIME_LIMIT;
    for (uint32_t i = 1; i < world->nodes; i++) {
        if (em->status[i] != 0 && result == 0) result = 1;
    }
    stop(em);
    emulator_log_over(options->log, emulator_now(em), result, em->packets,
                      em->packets ? em->sum_late / (double)em->packets : 0,
                      em->worst_late);
    if (result == EMULATOR_TIME_LIMIT)
        fprintf(stderr, "wan-emulator: not over within %g s\n",
                (double)world->limit / 1e9);
    network_destroy(em->network);
    free(em);
    return result;
}
