/* keeper.c - see keeper.h. */
#include "keeper.h"

#include "job_rank.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Beyond the grace: the ranks that waited say themselves why they end. */
#define KEEPER_MARGIN 5.0 /* s */

#define LAUNCHER_DELAY_MAX 1.0 /* s before the next launcher */

enum { KEEPER_SIGNALS = 5 };

struct keeper {
    struct keeper_setup setup;
    struct keep_table *table;
    size_t table_size;
    struct ev_loop *loop;
    struct guard guard;
    struct sink out, err;
    struct job *hands; /* starts ranks, and decides nothing */
    char master[HOST_SIZE + 16];
    int port;     /* a socket that keeps the coordinator's port, or -1 */
    int fd;       /* to the launcher, -1: there is none */
    bool due;     /* a launcher is to be forked */
    bool over;    /* ... or none any more */
    bool wished;  /* somebody attaches */
    int status;   /* of the job */
    int failure;  /* of the first rank that could not be started; 0: none */
    ev_io wishes; /* of the launcher */
    ev_child launcher;
    ev_timer grace, pause;
    ev_tstamp forked;
    double delay; /* s before the next launcher */
    ev_signal signals[KEEPER_SIGNALS];
    ev_prepare show;
};

/* ------------------------------------------------------- what is shown */

static void state_show(struct keep_rank *kept, struct rank *rank,
                       bool *has_changed)
{
    uint32_t word = atomic_load(&kept->word);
    enum keep_state was = keep_state_of(word);
    if (was == KEEP_NONE || was == KEEP_FAILED) return;
    if (rank->proc.news) rank_ended(rank);
    rank->proc.news = false;
    enum keep_state now = rank->proc.alive            ? KEEP_RUNS
                          : proc_is_gone(&rank->proc) ? KEEP_GONE
                                                      : KEEP_ENDED;
    kept->wait_status = rank->proc.wait_status;
    kept->aborts = rank->proc.err.aborts;
    if (now == was) return;
    atomic_store(&kept->word, keep_word(keep_start_of(word), now));
    *has_changed = true;
}

static void ring(const struct keeper *k)
{
    /* A full socket wakes the launcher, too. */
    if (k->fd >= 0) (void)!send(k->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void show_all(struct ev_loop *loop, ev_prepare *prepare, int events)
{
    (void)events;
    struct keeper *k = prepare->data;
    bool changed = false;
    for (uint32_t i = 0; i < k->table->count; i++)
        state_show(&k->table->ranks[i], &k->hands->ranks[i], &changed);
    if (k->out.broken || k->err.broken) atomic_store(&k->table->lost, 1);
    if (changed) ring(k);
    if (k->due || k->over) ev_break(loop, EVBREAK_ALL);
}

/* ------------------------------------------------------------- wishes */

/* Where one of the first ranks cannot be started, the others are not tried. */
static void rank_begin(struct keeper *k, const struct keep_wish *wish)
{
    struct keep_rank *kept = &k->table->ranks[wish->rank];
    struct rank *rank = &k->hands->ranks[wish->rank];
    uint32_t start = keep_start_of(atomic_load(&kept->word)) + 1;
    if (!proc_is_gone(&rank->proc)) return;
    if (k->hands->setup.restart != wish->number) k->failure = 0;
    k->hands->setup.restart = wish->number;
    rank->newcomer = wish->newcomer;
    rank->spare = wish->spare;
    bool first = !rank->newcomer;
    int status = first && k->failure ? k->failure : rank_start(rank);
    if (first) k->failure = status;
    kept->pid = rank->proc.pid;
    kept->wait_status = status;
    kept->restart = wish->number;
    kept->newcomer = rank->newcomer;
    kept->released = kept->aborts = false;
    atomic_store(&kept->word,
                 keep_word(start, status == 0 ? KEEP_RUNS : KEEP_FAILED));
    ring(k);
}

static void wish_grant(struct keeper *k, const struct keep_wish *wish)
{
    if (wish->rank >= k->table->count) return;
    struct rank *rank = &k->hands->ranks[wish->rank];
    switch (wish->kind) {
    case KEEP_START:
        rank_begin(k, wish);
        break;
    case KEEP_SIGNAL:
        if (wish->number < NSIG) rank_signal(rank, (int)wish->number);
        break;
    case KEEP_KILL:
        rank_kill(rank);
        break;
    case KEEP_RELEASE:
        if (rank->spare && rank->proc.alive) rank_release(rank);
        k->table->ranks[wish->rank].released = !rank->spare;
        break;
    default:
        break;
    }
}

/* Until nothing is there. */
static void wishes_take(struct keeper *k)
{
    struct keep_wish wish;
    for (ssize_t size; k->fd >= 0;) {
        size = recv(k->fd, &wish, sizeof wish, MSG_DONTWAIT);
        if (size == (ssize_t)sizeof wish) wish_grant(k, &wish);
        if (size == 0 || (size < 0 && errno != EINTR)) break;
    }
}

static void wish_came(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    (void)events;
    wishes_take(io->data);
}

/* ---------------------------------------------------------- launchers */

static void launcher_leave(struct keeper *k)
{
    if (k->fd < 0) return;
    ev_io_stop(k->loop, &k->wishes);
    close(k->fd);
    k->fd = -1;
}

/* One that dies at once is not started at once again. */
static void launcher_next(struct keeper *k)
{
    if (k->table->late || k->fd >= 0 || ev_is_active(&k->pause)) return;
    ev_timer_set(&k->pause, k->delay, 0.);
    ev_timer_start(k->loop, &k->pause);
}

static void pause_expired(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)events;
    struct keeper *k = timer->data;
    ev_timer_stop(loop, &k->grace);
    k->wished = false;
    k->due = true;
}

/* Nobody attaches: the next launcher ends the job. */
static void no_launcher_came(struct keeper *k)
{
    if (k->fd >= 0 || k->due) return;
    ev_timer_stop(k->loop, &k->pause);
    k->table->late = k->due = true;
}

static void grace_expired(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    no_launcher_came(timer->data);
}

static void launcher_ended(struct ev_loop *loop, ev_child *child, int events)
{
    (void)events;
    struct keeper *k = child->data;
    ev_child_stop(loop, child);
    wishes_take(k); /* its last ones */
    launcher_leave(k);
    if (WIFEXITED(child->rstatus) || k->table->late) {
        k->status = WIFEXITED(child->rstatus) ? WEXITSTATUS(child->rstatus)
                                              : EXIT_FAILURE;
        k->over = true;
        return;
    }
    bool healthy = ev_now(loop) - k->forked >= RESPAWN_HEALTHY;
    k->delay = healthy ? 0 : k->delay > 0 ? 2 * k->delay : RESPAWN_DELAY_MIN;
    if (k->delay > LAUNCHER_DELAY_MAX) k->delay = LAUNCHER_DELAY_MAX;
    ev_timer_set(&k->grace, k->table->grace + KEEPER_MARGIN, 0.);
    ev_timer_start(loop, &k->grace);
    if (k->wished) launcher_next(k);
}

/* Whoever attaches may have learned of the launcher's death before us. */
static bool launcher_is_dead(const struct keeper *k)
{
    siginfo_t info = {.si_pid = 0};
    if (k->fd < 0) return true;
    int rc = waitid(P_PID, (id_t)k->launcher.pid, &info,
                    WEXITED | WNOHANG | WNOWAIT);
    return rc != 0 || info.si_pid != 0; /* or it has just been waited for */
}

static void signal_came(struct ev_loop *loop, ev_signal *watcher, int events)
{
    (void)loop;
    (void)events;
    struct keeper *k = watcher->data;
    if (watcher->signum != DETACH_ATTACH) {
        no_launcher_came(k);
    } else if (launcher_is_dead(k)) {
        k->wished = true;
        if (k->fd < 0) launcher_next(k);
    }
}

/* ------------------------------------------------- beginning and end */

static void signals_start(struct keeper *k)
{
    static const int numbers[] = {DETACH_ATTACH, SIGTERM, SIGINT, SIGQUIT,
                                  SIGHUP};
    static_assert(ARRAY_COUNT(numbers) == KEEPER_SIGNALS, "a watcher each");
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        ev_signal_init(&k->signals[i], signal_came, numbers[i]);
        k->signals[i].data = k;
        if (numbers[i] == SIGHUP && k->hands->setup.ignore_hangup) continue;
        ev_signal_start(k->loop, &k->signals[i]);
    }
}

/* The coordinator of each launcher listens on one port, which no other process
 * gets in between. */
static bool port_take(struct keeper *k, int family)
{
    struct address *listen = &k->setup.options->listen;
    const char *host = *listen->host ? listen->host : NULL;
    struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICHOST,
                             .ai_family = family,
                             .ai_socktype = SOCK_STREAM};
    struct addrinfo *at = NULL;
    struct sockaddr_storage name;
    socklen_t size = sizeof name;
    char port[NI_MAXSERV] = "";
    int on = 1;
    if (getaddrinfo(host, "0", &hints, &at) != 0) return false;
    k->port = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool kept =
        k->port >= 0 &&
        setsockopt(k->port, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        bind(k->port, at->ai_addr, at->ai_addrlen) == 0 &&
        getsockname(k->port, (struct sockaddr *)&name, &size) == 0 &&
        getnameinfo((struct sockaddr *)&name, size, NULL, 0, port, sizeof port,
                    NI_NUMERICSERV) == 0;
    freeaddrinfo(at);
    listen->port = (uint16_t)strtoul(port, NULL, 10);
    if (!kept && k->port >= 0) close(k->port);
    if (!kept) k->port = -1;
    return kept;
}

/* All interfaces: IPv6, which takes IPv4 as well, where there is that. */
static bool port_keep(struct keeper *k)
{
    const struct address *listen = &k->setup.options->listen;
    if (listen->port != 0) return true;
    if (*listen->host) return port_take(k, AF_UNSPEC);
    return port_take(k, AF_INET6) || port_take(k, AF_INET);
}

static bool hands_make(struct keeper *k)
{
    struct options *options = k->setup.options;
    struct sigaction hangup;
    struct job_setup setup = {.loop = k->loop,
                              .options = options,
                              .guard = &k->guard,
                              .out = &k->out,
                              .err = &k->err,
                              .master = k->master,
                              .library_path = k->setup.library_path,
                              .hosts = &options->hosts,
                              .begun = ev_time()};
    sigaction(SIGHUP, NULL, &hangup);
    setup.ignore_hangup = hangup.sa_handler == SIG_IGN;
    descriptor_raise_limit(&setup.files);
    address_print_local(&options->listen, k->master, sizeof k->master);
    k->hands = job_make(&setup);
    k->hands->input.again = true; /* our input stays */
    if (!hosts_open(k->hands) || !hosts_are_ready(k->hands)) return false;
    ranks_init(k->hands);
    ranks_prepare(k->hands);
    return true;
}

static bool table_make(struct keeper *k)
{
    const struct options *o = k->setup.options;
    uint32_t count = o->rank_count + o->spares;
    k->table_size = sizeof *k->table + (size_t)count * sizeof *k->table->ranks;
    k->table = mmap(NULL, k->table_size, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (k->table == MAP_FAILED) k->table = NULL;
    if (!k->table) return false;
    k->table->count = count;
    k->table->grace = o->grace;
    k->table->begun = ev_time();
    return true;
}

static void watchers_init(struct keeper *k)
{
    ev_prepare_init(&k->show, show_all);
    ev_timer_init(&k->grace, grace_expired, 0., 0.);
    ev_timer_init(&k->pause, pause_expired, 0., 0.);
    ev_child_init(&k->launcher, launcher_ended, 0, 0);
    k->show.data = k->grace.data = k->pause.data = k->launcher.data = k;
}

static bool keeper_open(struct keeper *k)
{
    if (!port_keep(k) || !table_make(k) || guard_start(&k->guard) != 0)
        return false;
    k->loop = ev_default_loop(0);
    if (!k->loop || !sink_open(&k->out, k->loop, STDOUT_FILENO) ||
        !sink_open(&k->err, k->loop, STDERR_FILENO))
        return false;
    k->out.stamped = k->err.stamped = k->setup.options->timestamps;
    watchers_init(k);
    if (!hands_make(k)) return false;
    /* Orphans of the ranks, see run_job(). */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_NAME, "pccl-keeper");
    signals_start(k);
    ev_prepare_start(k->loop, &k->show);
    return true;
}

/* Closes what is in this process; a launcher does so with its copy. */
static void keeper_close(struct keeper *k)
{
    if (k->hands) {
        for (size_t i = 0; i < KEEPER_SIGNALS; i++)
            ev_signal_stop(k->loop, &k->signals[i]);
        ev_prepare_stop(k->loop, &k->show);
        ev_timer_stop(k->loop, &k->grace);
        ev_timer_stop(k->loop, &k->pause);
        ev_child_stop(k->loop, &k->launcher);
        launcher_leave(k);
        job_free(k->hands);
    }
    sink_close(&k->out);
    sink_close(&k->err);
    if (k->loop) ev_loop_destroy(k->loop);
    if (k->port >= 0) close(k->port);
}

/* True in the launcher. */
static bool launcher_fork(struct keeper *k, struct keep *keep)
{
    int ends[2];
    sigset_t all, old;
    k->due = false;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    pid_t pid = fork();
    if (pid == 0) {
        struct keep_table *table = k->table;
        close(ends[0]);
        keeper_close(k);
        close(k->guard.fd);
        detach_told(k->setup.detached);
        prctl(PR_SET_NAME, "pccl-master");
        sigprocmask(SIG_SETMASK, &old, NULL);
        *keep = (struct keep){.table = table, .fd = ends[1]};
        return true;
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return false;
    }
    k->fd = ends[0];
    k->forked = ev_time();
    ev_io_init(&k->wishes, wish_came, k->fd, EV_READ);
    k->wishes.data = k;
    ev_io_start(k->loop, &k->wishes);
    ev_child_set(&k->launcher, pid, 0);
    ev_child_start(k->loop, &k->launcher);
    detach_tell(k->setup.detached, pid);
    return false;
}

bool keeper_run(const struct keeper_setup *setup, struct keep *keep,
                int *status)
{
    struct keeper k = {
        .setup = *setup, .port = -1, .fd = -1, .status = EXIT_FAILURE};
    bool open = keeper_open(&k);
    if (!open)
        fprintf(stderr, "pccl-master: the keeper of the ranks: %s\n",
                strerror(errno));
    if (open) detach_keeps(setup->detached);
    for (k.due = open; k.due && !k.over;) {
        if (launcher_fork(&k, keep)) return true;
        if (k.fd < 0) {
            job_message(&k.err, "cannot start a launcher: %s; ending the job",
                        strerror(errno));
            break;
        }
        ev_run(k.loop, 0);
    }
    sigset_t all; /* whoever attaches now waits for the status */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    if (k.guard.pid > 0) guard_stop(&k.guard); /* kills what is left */
    keeper_close(&k);
    if (k.table) munmap(k.table, k.table_size);
    *status = k.status;
    return false;
}
