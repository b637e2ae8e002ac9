/* agent.c - the agent process: starts ranks on a host for a remote launcher. */
#include "agent.h"

#include "../base/quiet_write.h"
#include "../base/env.h"
#include "../base/host.h"
#include "bind.h"
#include "guard.h"
#include "host_room.h"
#include "key.h"
#include "agent_link.h"
#include "proc.h"
#include "rank_env.h"
#include "reach.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

struct agent;

struct agent_rank {
    struct agent *agent;
    struct agent_rank *next;
    uint32_t rank;
    struct proc proc;
    char *processors; /* that it is bound to, or "" */
    bool end_sent;    /* that it has ended, and nothing since */
    int input;        /* write end of its standard input, or -1 */
    ev_io writable;   /* watches `input` */
    char *waiting;    /* pending input */
    size_t at, size;  /* of it */
};

struct agent {
    struct ev_loop *loop;
    struct guard guard;
    struct agent_link link; /* frames from the launcher */
    struct sink sink;       /* frames to the launcher */
    ev_prepare settle;
    ev_timer beat;
    bool patient; /* the launcher is stopped: ignore its silence */
    bool over;
    const char *library_path;
    struct rlimit files;
    struct bind_machine machine;
    struct agent_rank *ranks;
    uint64_t host;
    struct host_watch watch;
};

static struct agent_rank *rank_find(struct agent *agent, uint32_t number)
{
    struct agent_rank *rank = agent->ranks;
    while (rank && rank->rank != number) rank = rank->next;
    return rank;
}

/* A frame of numbers, and a text behind them or NULL. */
static void tell_all(struct agent *agent, enum link_type type, uint32_t rank,
                     const char *text, const int64_t *numbers, size_t count)
{
    struct link_texts texts = {0};
    for (size_t i = 0; i < count; i++) link_put_number(&texts, numbers[i]);
    if (text) link_put(&texts, text);
    /* the launcher does not read, and the buffer is full */
    if (!sink_frame(&agent->sink, type, rank, texts.bytes, texts.size))
        ev_break(agent->loop, EVBREAK_ALL);
    free(texts.bytes);
}

#define tell(agent, type, rank, text, ...)                                     \
    tell_all(agent, type, rank, text, (int64_t[]){__VA_ARGS__},                \
             sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* ------------------------------------------------------- standard input */

static void input_end(struct agent_rank *rank)
{
    if (rank->input < 0) return;
    ev_io_stop(rank->agent->loop, &rank->writable);
    close(rank->input);
    free(rank->waiting);
    rank->input = -1;
    rank->waiting = NULL;
}

static void input_write(struct agent_rank *rank)
{
    while (rank->at < rank->size) {
        ssize_t size =
            write(rank->input, rank->waiting + rank->at, rank->size - rank->at);
        if (size >= 0) {
            rank->at += (size_t)size;
        } else if (errno == EAGAIN) {
            ev_io_start(rank->agent->loop, &rank->writable);
            return;
        } else if (errno != EINTR) {
            input_end(rank);
            tell(rank->agent, LINK_TAKEN, rank->rank, NULL, 0);
            return;
        }
    }
    ev_io_stop(rank->agent->loop, &rank->writable);
    free(rank->waiting);
    rank->waiting = NULL;
    tell(rank->agent, LINK_TAKEN, rank->rank, NULL, 1);
}

static void input_writable(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    (void)events;
    input_write(io->data);
}

static void on_input(struct agent_rank *rank, const struct link_frame *frame)
{
    if (frame->size == 0) {
        input_end(rank);
        return;
    }
    if (rank->input < 0 || rank->waiting) {
        tell(rank->agent, LINK_TAKEN, rank->rank, NULL, 0);
        return;
    }
    rank->waiting = memory_get(frame->size, 1);
    memcpy(rank->waiting, frame->bytes, frame->size);
    rank->at = 0;
    rank->size = frame->size;
    input_write(rank);
}

/* --------------------------------------------------------- starting ranks */

/* A rank gets the launcher's environment, except variables that belong to the
 * login on this host. */
static bool belongs_to_host(const char *item)
{
    static const char *const names[] = {
        "HOME=",    "USER=", "LOGNAME=", "SHELL=",  "HOSTNAME=", "SSH_", "XDG_",
        "DISPLAY=", "DBUS_", "MAIL=",    "SLURMD_", "TERM=",     "_="};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        if (strncmp(item, names[i], strlen(names[i])) == 0) return true;
    return false;
}

static char **env_take(const struct agent *agent, struct link_texts *texts,
                       int64_t count)
{
    struct env_list list = {0};
    for (char **item = environ; item && *item; item++)
        if (strchr(*item, '=') && !env_is_foreign(*item) &&
            strncmp(*item, ENV_PREFIX, strlen(ENV_PREFIX)) != 0)
            env_put(&list, memory_text(*item));
    for (const char *item; count > 0 && (item = link_get(texts)); count--)
        if (strchr(item, '=') && !belongs_to_host(item))
            env_put(&list, memory_text(item));
    if (key_variable()) env_put(&list, memory_text(key_variable()));
    env_put_library_path(&list, agent->library_path);
    return list.items;
}

struct start {
    const char *path, *directory;
    struct bind bind;
    uint32_t local;
    bool reads;
    bool live; /* parts of lines are for a terminal */
    int argc;
    char **argv, **env;
};

static bool start_read(const struct agent *agent, struct start *start,
                       const struct link_frame *frame)
{
    struct link_texts texts = link_texts_of(frame);
    int64_t kind, width, map, fill, live, local, reads, argc, count;
    start->path = link_get(&texts);
    start->directory = link_get(&texts);
    if (!start->path || !start->directory || !link_get_number(&texts, &kind) ||
        !link_get_number(&texts, &width) || !link_get_number(&texts, &map) ||
        !link_get_number(&texts, &fill) || !link_get_number(&texts, &live) ||
        !link_get_number(&texts, &local) || !link_get_number(&texts, &reads) ||
        !link_get_number(&texts, &argc) || argc < 1 ||
        (uint64_t)argc > frame->size || kind < BIND_NONE ||
        kind > BIND_SOCKET || width < 0 || width > CPU_SETSIZE ||
        map < BIND_NONE || map > BIND_SOCKET || fill < 0 || fill > RANKS_MAX)
        return false;
    start->bind = (struct bind){(enum bind_kind)kind, (uint32_t)width,
                                (enum bind_kind)map, (uint32_t)fill};
    start->live = live != 0;
    start->local = (uint32_t)local;
    start->reads = reads != 0;
    start->argv = memory_get((size_t)argc + 1, sizeof *start->argv);
    for (start->argc = 0; start->argc < argc; start->argc++) {
        const char *word = link_get(&texts);
        if (!word) return false;
        start->argv[start->argc] = (char *)(uintptr_t)word;
    }
    if (!link_get_number(&texts, &count)) return false;
    start->env = env_take(agent, &texts, count);
    return true;
}

static int start_run(struct agent_rank *rank, const struct start *start,
                     char *error, size_t error_size)
{
    struct agent *agent = rank->agent;
    struct stream_name name = {.rank = rank->rank, .live = start->live};
    cpu_set_t cpus;
    int input[2] = {-1, -1};
    int in = start->reads && descriptor_pipe(input) == 0 ? input[0]
                                                         : descriptor_null();
    bool bound = bind_choose(&agent->machine, start->bind, start->local, &cpus);
    struct proc_request request = {
        .spawn = {.argv = start->argv,
                  .argc = start->argc,
                  .env = start->env,
                  .directory = *start->directory ? start->directory : NULL,
                  .in = in,
                  .out = -1,
                  .cpus = bound ? &cpus : NULL,
                  .files = agent->files},
        .path = *start->path ? start->path : NULL,
        .out_sink = &agent->sink,
        .err_sink = &agent->sink,
        .name = &name,
    };
    int status = proc_start(&rank->proc, &request, error, error_size);
    close(in);
    if (status != 0 && input[1] >= 0) close(input[1]);
    if (status != 0) return status;
    rank->end_sent = false;
    rank->input = input[1];
    rank->processors = bind_text(bound ? &cpus : NULL);
    if (rank->input >= 0) {
        fcntl(rank->input, F_SETFL, O_NONBLOCK);
        ev_io_init(&rank->writable, input_writable, rank->input, EV_WRITE);
        rank->writable.data = rank;
    }
    return 0;
}

static struct agent_rank *rank_get(struct agent *agent, uint32_t number)
{
    struct agent_rank *rank = rank_find(agent, number);
    if (rank) return rank;
    rank = memory_get(1, sizeof *rank);
    *rank = (struct agent_rank){.agent = agent,
                                .rank = number,
                                .next = agent->ranks,
                                .input = -1,
                                .end_sent = true};
    proc_init(&rank->proc, agent->loop, agent->guard.fd);
    agent->ranks = rank;
    return rank;
}

static void on_start(struct agent *agent, const struct link_frame *frame)
{
    char error[MESSAGE_SIZE / 2] = "the launcher's request makes no sense";
    struct start start = {0};
    struct agent_rank *rank = rank_get(agent, frame->rank);
    int status = EXIT_FAILURE;
    if (proc_is_gone(&rank->proc) && start_read(agent, &start, frame))
        status = start_run(rank, &start, error, sizeof error);
    rank_env_free(start.env);
    free(start.argv);
    if (status == 0)
        tell(agent, LINK_STARTED, rank->rank, rank->processors, rank->proc.pid,
             (int64_t)agent->host);
    else
        tell(agent, LINK_FAILED, rank->rank, error, status);
    free(rank->processors);
    rank->processors = NULL;
}

/* ------------------------------------------------------------ the launcher */

static void refuse(struct agent *agent, const char *text)
{
    tell_all(agent, LINK_REFUSED, 0, text, NULL, 0);
}

static bool has_room(struct agent *agent, const struct host_load *load)
{
    char error[MESSAGE_SIZE / 2];
    struct host_room room = host_room_here();
    if (host_has_room(&room, load, error, sizeof error)) return true;
    refuse(agent, error);
    return false;
}

/* Adds the address of the ssh client, which is probably the launcher. */
static void add_ssh_client(struct link_texts *addresses, const char *example)
{
    struct address caller, other;
    char host[HOST_SIZE], text[HOST_SIZE + 16];
    const char *connection = getenv("SSH_CONNECTION");
    if (!connection || !example || !address_parse(example, 0, &other)) return;
    snprintf(host, sizeof host, "%.*s", (int)strcspn(connection, " "),
             connection);
    if (!address_parse(host, 0, &caller) || !reach_is_numeric(&caller)) return;
    caller.port = other.port;
    link_put(addresses, address_print(&caller, text, sizeof text));
}

static void on_setup(struct agent *agent, struct link_texts *texts)
{
    struct link_texts addresses = {0};
    const char *directory = link_get(texts);
    int64_t fixed = 0, ranks = -1, inputs = -1;
    const char *key = NULL;
    if (directory && link_get_number(texts, &fixed)) key = link_get(texts);
    if (!key || !link_get_number(texts, &ranks) ||
        !link_get_number(texts, &inputs) || ranks < 0 || ranks > RANKS_MAX ||
        inputs < 0 || inputs > RANKS_MAX || !key_take(key)) {
        refuse(agent, "the launcher's request makes no sense");
        return;
    }
    struct host_load load = {(uint32_t)ranks, (uint32_t)inputs};
    if (!has_room(agent, &load)) return;
    if (chdir(directory) !=
        0) /* otherwise the ranks start in the home directory */
        complain("no directory %s on this host: %s", directory,
                 strerror(errno));
    struct link_texts look = *texts;
    if (!fixed) add_ssh_client(&addresses, link_get(&look));
    for (const char *text; (text = link_get(texts));)
        link_put(&addresses, text);
    struct link_texts first = addresses;
    const char *list = link_get(&first);
    /* Of several coordinators any may be down. */
    bool several = list && strchr(list, ',');
    const char *found = several ? list : reach_first(&addresses);
    if (found)
        tell_all(agent, LINK_READY, 0, found, NULL, 0);
    else
        refuse(agent, "cannot reach the coordinator from there; --listen says "
                      "on which address it is to be called");
    free(addresses.bytes);
}

static void on_signal(struct agent *agent, struct agent_rank *rank,
                      struct link_texts *texts)
{
    int64_t number;
    if (!link_get_number(texts, &number)) return;
    if (number == SIGTSTP) agent->patient = true;
    if (number == SIGKILL)
        proc_kill(&rank->proc);
    else
        proc_signal(&rank->proc, (int)number);
}

/* The coordinator misses a peer that may be on this host (rule M10). */
static void on_look(struct agent *agent, struct link_texts *texts)
{
    int64_t id, host, pid;
    if (!link_get_number(texts, &id) || !link_get_number(texts, &host) ||
        !link_get_number(texts, &pid) || (uint64_t)host != agent->host)
        return;
    pccl_ns now = (pccl_ns)(ev_now(agent->loop) * 1e9);
    tell(agent, LINK_SEEN, 0, NULL, id,
         host_look(&agent->watch, (uint32_t)pid, now));
}

static void on_evict(struct agent *agent, struct link_texts *texts)
{
    int64_t host, pid, patience;
    if (!link_get_number(texts, &host) || !link_get_number(texts, &pid) ||
        !link_get_number(texts, &patience) || (uint64_t)host != agent->host)
        return;
    struct agent_rank *rank = agent->ranks;
    while (rank && !proc_has(&rank->proc, (pid_t)pid)) rank = rank->next;
    if (!rank) return;
    if (patience >= 0)
        proc_retire(&rank->proc, (double)patience / 1000);
    else
        proc_keep(&rank->proc);
    tell(agent, LINK_EVICTS, rank->rank, NULL, patience >= 0);
}

static bool on_frame(struct agent_link *link, const struct link_frame *frame)
{
    struct agent *agent = link->user;
    struct agent_rank *rank = rank_find(agent, frame->rank);
    struct link_texts texts = link_texts_of(frame);
    agent->patient = false;
    switch (frame->type) {
    case LINK_SETUP:
        on_setup(agent, &texts);
        break;
    case LINK_START:
        on_start(agent, frame);
        break;
    case LINK_INPUT:
        if (rank) on_input(rank, frame);
        break;
    case LINK_SIGNAL:
        if (rank) on_signal(agent, rank, &texts);
        break;
    case LINK_CLOSE:
        if (rank && frame->size > 0)
            stream_close(frame->bytes[0] == '1' ? &rank->proc.out
                                                : &rank->proc.err);
        break;
    case LINK_LOOK:
        on_look(agent, &texts);
        break;
    case LINK_EVICT:
        on_evict(agent, &texts);
        break;
    default: /* LINK_ALIVE */
        break;
    }
    return true;
}

static void on_closed(struct agent_link *link, const char *why)
{
    (void)why;
    struct agent *agent = link->user;
    agent->over = true;
    ev_break(agent->loop, EVBREAK_ALL);
}

/* After every turn: reports ended processes. */
static void settle(struct ev_loop *loop, ev_prepare *prepare, int events)
{
    (void)events;
    struct agent *agent = prepare->data;
    for (struct agent_rank *rank = agent->ranks; rank; rank = rank->next) {
        if (rank->proc.news) {
            rank->proc.news = false;
            input_end(rank);
            tell(agent, LINK_ENDED, rank->rank, NULL, rank->proc.wait_status,
                 rank->proc.left);
        }
        if (rank->end_sent || !proc_is_gone(&rank->proc)) continue;
        rank->end_sent = true;
        tell(agent, LINK_GONE, rank->rank, NULL, 0);
    }
    if (agent->over || agent->sink.broken) ev_break(loop, EVBREAK_ALL);
}

static void beat(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)events;
    struct agent *agent = timer->data;
    bool silent = link_is_silent(&agent->link);
    if (silent && !agent->patient) ev_break(loop, EVBREAK_ALL);
    (void)sink_frame(&agent->sink, LINK_ALIVE, 0, NULL, 0);
}

static bool agent_open(struct agent *agent)
{
    descriptor_raise_limit(&agent->files);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    agent->loop = ev_default_loop(0);
    agent->host = host_id();
    int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    if (!agent->loop || in < 0 ||
        !sink_open(&agent->sink, agent->loop, STDOUT_FILENO))
        return false;
    agent->sink.framed = true;
    agent->link.on_frame = on_frame;
    agent->link.on_closed = on_closed;
    agent->link.user = agent;
    link_open(&agent->link, agent->loop, in, -1);
    bind_read(&agent->machine);
    ev_prepare_init(&agent->settle, settle);
    ev_timer_init(&agent->beat, beat, LINK_HEARTBEAT, LINK_HEARTBEAT);
    agent->settle.data = agent->beat.data = agent;
    ev_prepare_start(agent->loop, &agent->settle);
    ev_timer_start(agent->loop, &agent->beat);
    return true;
}

static void agent_close(struct agent *agent)
{
    for (struct agent_rank *rank = agent->ranks, *next; rank; rank = next) {
        next = rank->next;
        proc_kill(&rank->proc);
        input_end(rank);
        proc_free(&rank->proc);
        free(rank);
    }
    ev_prepare_stop(agent->loop, &agent->settle);
    ev_timer_stop(agent->loop, &agent->beat);
    link_close(&agent->link);
    sink_close(&agent->sink);
    ev_loop_destroy(agent->loop);
}

int agent_run(const char *library_path)
{
    static struct agent agent;
    agent.library_path = library_path;
    descriptor_standard();
    quiet_process();
    if (!guard_start(&agent.guard)) return EXIT_FAILURE;
    int status = EXIT_FAILURE;
    static const char magic[] = LINK_MAGIC;
    if (write(STDOUT_FILENO, magic, sizeof magic - 1) ==
            (ssize_t)sizeof magic - 1 &&
        agent_open(&agent)) {
        ev_run(agent.loop, 0);
        status = EXIT_SUCCESS;
        agent_close(&agent);
    }
    guard_stop(&agent.guard); /* kills all remaining processes of the ranks */
    return status;
}
