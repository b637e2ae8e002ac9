/* launch.c - connects coordinator, event loop and job. */
#include "launch.h"

#include "../base/append.h"
#include "../base/quiet_write.h"
#include "../base/env.h"
#include "../master/server/master_server.h"
#include "agent.h"
#include "control.h"
#include "coordinators.h"
#include "detach.h"
#include "job.h"
#include "key.h"
#include "issue.h"
#include "look_at.h"
#include "open_run.h"
#include "reach.h"
#include "surroundings.h"
#include "web.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { ADDRESS_SIZE = HOST_SIZE + 16 };

struct launch {
    struct options options;
    struct ev_loop *loop;
    struct guard guard;
    struct sink out_sink, err_sink;
    struct sink *out, *err; /* identical if both are the same file */
    struct master_server *server;
    struct master_http *web; /* --status-http, or NULL */
    struct open_run *open;   /* of a coordinator alone, or NULL */
    struct job *job;
    char master[MASTERS_MAX * ADDRESS_SIZE];
    struct detached detached;
    bool visited;              /* the coordinator has reported an event */
    sigset_t mask;             /* of signals, as we were started */
    struct host_list left_out; /* hosts that a restart could not reach */
    bool again; /* the coordinator leads no more, and begins anew */
};

static void warn_unknown(const char *name)
{
    complain("warning: the environment variable %s is not known and has no "
             "effect",
             name);
}

static void report(void *user, const char *line)
{
    struct launch *launch = user;
    const struct options *options = &launch->options;
    launch->visited = true;
    if (options->mode == MODE_COORDINATOR &&
        (!options->until_done || options->verbose))
        complain("%s", line);
    else if (options->mode == MODE_COORDINATOR)
        return;
    else if (options->elastic || options->verbose)
        job_message(launch->err, "%s", line);
}

static void request(void *user, const char *text, char *answer, size_t size)
{
    const struct launch *launch = user;
    job_request(launch->job, text, answer, size);
}

/* The same for what the user must know in any case. */
static void warn(void *user, const char *line)
{
    struct launch *launch = user;
    launch->visited = true;
    if (launch->job)
        job_message(launch->err, "%s", line);
    else
        complain("%s", line);
}

static void warn_stall(const char *text)
{
    complain("PCCL_STALL_WARN=%s is not a number of seconds; 30 is taken",
             text);
}

static void aborted(void *user, int code, int rank)
{
    struct launch *launch = user;
    if (launch->job)
        job_abort(launch->job, code, rank);
    else
        complain("rank %d aborted its run with code %d", rank, code);
}

static void look(void *user, uint64_t id, uint64_t host, uint32_t pid)
{
    const struct launch *launch = user;
    if (launch->job) job_look(launch->job, id, host, pid);
}

static void process(void *user, uint64_t host, uint32_t pid,
                    enum process_news news)
{
    const struct launch *launch = user;
    if (launch->job) job_process(launch->job, host, pid, news);
}

/* Whether ranks on other hosts need to reach us. */
static bool hosts_are_far(const struct host_list *hosts)
{
    for (size_t i = 0; i < hosts->count; i++)
        if (!host_is_local(hosts->entries[i].name)) return true;
    return false;
}

/* -iface: like --listen with an address of that interface. */
static bool interface_listen(struct options *options)
{
    if (!options->interface || options->has_listen) return true;
    options->has_listen = true;
    options->listen.port = 0;
    if (reach_interface(options->interface, options->listen.host,
                        sizeof options->listen.host))
        return true;
    complain("-iface %s: there is no such interface, or it has no address",
             options->interface);
    return false;
}

static void over(void *user)
{
    struct launch *launch = user;
    launch->again = true;
    ev_break(launch->loop, EVBREAK_ALL);
}

/* Where the coordinator listens. */
static bool listen_choose(struct options *options, struct address *listen)
{
    if (!interface_listen(options)) return false;
    *listen = options->listen;
    if (options->mode == MODE_LAUNCH && !options->has_listen)
        *listen = hosts_are_far(&options->hosts)
                      ? (struct address){.port = 0}
                      : (struct address){.host = "127.0.0.1", .port = 0};
    return host_resolve(listen->host, "--listen");
}

static bool server_open(struct launch *launch)
{
    struct options *options = &launch->options;
    struct address listen;
    if (!listen_choose(options, &listen)) return false;
    uint32_t ranks = options->rank_count ? options->rank_count : 1;
    struct master_server_options setup = {
        .loop = launch->loop,
        .host = *listen.host ? listen.host : NULL,
        .port = listen.port,
        .deadline = options->deadline_ns,
        .key = options->keyed ? options->key.bytes : NULL,
        .quorum = options->quorum ? options->quorum : ranks,
        .minimum = options->minimum,
        .reserve = coordinators_reserve(options),
        .job = options->mode == MODE_LAUNCH,
        .journal = options->journal,
        .grace = options->grace * PCCL_S,
        .relays = options->relays || env_relays(),
        .user = launch,
        .report = report,
        .warn = warn,
        .warn_after = env_stall_ns(warn_stall),
        .aborted = aborted,
        .over = over,
        .look = look,
        .process = process,
    };
    char error[MESSAGE_SIZE / 2] = "";
    char text[ADDRESS_SIZE];
    if (!coordinators_settle(options, &listen, &setup)) return false;
    if (options->mode == MODE_COORDINATOR) {
        launch->open = open_run_begin(options, launch->loop, &setup);
        if (!launch->open) return false;
    }
    launch->server = master_server_open(&setup, error, sizeof error);
    if (!launch->server) {
        if (strncmp(error, "journal ", 8) == 0 ||
            strncmp(error, "a run of ", 9) == 0 ||
            strncmp(error, "--revoked ", 10) == 0)
            complain("%s", error);
        else
            complain("cannot listen on %s: %s",
                     address_print(&listen, text, sizeof text), error);
        return false;
    }
    if (launch->web) master_http_watch(launch->web, launch->server);
    if (launch->open) open_run_serve(launch->open, launch->server);
    listen.port = master_server_port(launch->server);
    address_print_local(&listen, launch->master, sizeof launch->master);
    detach_note(&launch->detached, "coordinator %s", launch->master);
    address_print(&listen, text, sizeof text);
    if (options->mode == MODE_COORDINATOR) {
        printf("pccl-master: listening on %s\n", text);
        fflush(stdout);
    } else {
        char line[ADDRESS_SIZE + 32];
        snprintf(line, sizeof line, "listening on %s", text);
        report(launch, line);
    }
    return true;
}

static void server_close(struct launch *launch)
{
    if (launch->web) master_http_watch(launch->web, NULL);
    if (launch->open) open_run_serve(launch->open, NULL);
    if (launch->server) master_server_close(launch->server);
    launch->server = NULL;
    open_run_end(launch->open);
    launch->open = NULL;
}

static bool web_begin(struct launch *launch)
{
    struct options *options = &launch->options;
    char line[MESSAGE_SIZE];
    if (!options->serves_http) return true;
    if (!host_resolve(options->http.host, "--status-http")) return false;
    launch->web = web_open(&options->http, launch->loop, line, sizeof line);
    if (launch->web && options->mode == MODE_COORDINATOR) {
        printf("pccl-master: %s\n", line);
        fflush(stdout);
    } else {
        complain("%s", line);
    }
    return launch->web != NULL;
}

static void stop_coordinator(struct ev_loop *loop, ev_signal *watcher,
                             int events)
{
    (void)watcher;
    (void)events;
    ev_break(loop, EVBREAK_ALL);
}

/* --until-done: ends a run without peers, or one that all peers have left. */
struct watch {
    struct launch *launch;
    ev_timer timer;
    ev_tstamp begun;
};

static void watch_run(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)events;
    struct watch *watch = timer->data;
    struct master_server *server = watch->launch->server;
    bool late = ev_now(loop) - watch->begun > RUN_PATIENCE;
    bool empty = master_server_members(server) == 0 &&
                 master_server_pending(server) == 0;
    if (empty && (watch->launch->visited || late)) ev_break(loop, EVBREAK_ALL);
}

static void print_status(struct ev_loop *loop, ev_signal *watcher, int events)
{
    (void)loop;
    (void)events;
    const struct launch *launch = watcher->data;
    char *text = launch->server ? master_server_status(launch->server) : NULL;
    if (text) fputs(text, stderr);
    free(text);
}

static int run_coordinator(struct launch *launch)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    ev_signal status;
    ev_signal_init(&status, print_status, SIGUSR1);
    status.data = launch;
    ev_signal_start(launch->loop, &status);
    ev_signal watchers[ARRAY_COUNT(numbers)];
    struct rlimit before;
    descriptor_raise_limit(&before);
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        ev_signal_init(&watchers[i], stop_coordinator, numbers[i]);
        ev_signal_start(launch->loop, &watchers[i]);
    }
    struct watch watch = {.launch = launch, .begun = ev_now(launch->loop)};
    ev_timer_init(&watch.timer, watch_run, RUN_LOOK, RUN_LOOK);
    watch.timer.data = &watch;
    if (launch->options.until_done) ev_timer_start(launch->loop, &watch.timer);
    bool open;
    do {
        launch->again = false;
        open = server_open(launch);
        if (open) ev_run(launch->loop, 0);
        if (launch->again) server_close(launch);
    } while (launch->again);
    ev_timer_stop(launch->loop, &watch.timer);
    ev_signal_stop(launch->loop, &status);
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++)
        ev_signal_stop(launch->loop, &watchers[i]);
    return open ? EXIT_SUCCESS : EXIT_FAILURE;
}

static bool sinks_open(struct launch *launch)
{
    launch->out = launch->err = &launch->out_sink;
    launch->out_sink.stamped = launch->options.timestamps;
    if (!sink_open(&launch->out_sink, launch->loop, STDOUT_FILENO))
        return false;
    if (descriptor_is_same(STDOUT_FILENO, STDERR_FILENO)) return true;
    launch->err = &launch->err_sink;
    launch->err_sink.stamped = launch->options.timestamps;
    return sink_open(&launch->err_sink, launch->loop, STDERR_FILENO);
}

/* Until the next start watches for them. */
static void signals_hold(void)
{
    static const int numbers[] = {SIGINT,  SIGTERM, SIGQUIT, SIGHUP,
                                  SIGUSR1, SIGUSR2, SIGTSTP};
    sigset_t held;
    sigemptyset(&held);
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++)
        sigaddset(&held, numbers[i]);
    sigprocmask(SIG_BLOCK, &held, NULL);
}

/* For PCCL_MASTER of the ranks. */
static void masters_print(const struct options *options, char *text,
                          size_t size)
{
    *text = '\0';
    for (size_t i = 0; i < options->master_count; i++) {
        char one[ADDRESS_SIZE];
        append(text, size, "%s%s", i > 0 ? "," : "",
               address_print(&options->masters[i], one, sizeof one));
    }
}

/* One start of the job. What is to follow is written to setup. */
static int run_start(struct launch *launch, struct job_setup *setup,
                     enum job_next *next)
{
    if (launch->options.join)
        masters_print(&launch->options, launch->master, sizeof launch->master);
    else if (!server_open(launch))
        return EXIT_FAILURE;
    setup->server = launch->server;
    launch->job = job_start(setup);
    sigprocmask(SIG_SETMASK, &launch->mask, NULL);
    ev_run(launch->loop, 0);
    signals_hold();
    *next = job_next(launch->job);
    setup->pause = *next == JOB_AGAIN ? job_pause(launch->job) : 0;
    if (*next == JOB_AGAIN) hosts_free(&launch->left_out);
    setup->restart += *next == JOB_AGAIN;
    int status = job_finish(launch->job);
    launch->job = NULL;
    server_close(launch);
    return status;
}

/* All starts of the job. The status is that of the last one. */
static int run_starts(struct launch *launch, struct job_setup *setup)
{
    int status = EXIT_FAILURE;
    for (enum job_next next = JOB_AGAIN; next != JOB_OVER;) {
        struct host_list hosts;
        setup->hosts = &hosts;
        setup->left_out = &launch->left_out;
        if (!hosts_without(&hosts, &launch->options.hosts, &launch->left_out,
                           launch->options.ranked)) {
            complain("no host is left to start the job again");
            break;
        }
        next = JOB_OVER;
        int ended = run_start(launch, setup, &next);
        if (next != JOB_WITHOUT_HOSTS) status = ended;
        hosts_free(&hosts);
    }
    return status;
}

static int run_job(struct launch *launch)
{
    struct options *options = &launch->options;
    struct sigaction hangup;
    sigaction(SIGHUP, NULL, &hangup);
    /* Orphans of the ranks become our children and libev reaps them. Otherwise
     * a zombie could keep its process group, and us, waiting. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGTTIN,
           SIG_IGN); /* as a background job, reading returns EIO instead */
    struct job_setup setup = {.loop = launch->loop,
                              .options = options,
                              .guard = &launch->guard,
                              .out = launch->out,
                              .err = launch->err,
                              .master = launch->master,
                              .begun = ev_time(),
                              .ignore_hangup = hangup.sa_handler == SIG_IGN};
    descriptor_raise_limit(&setup.files);
    char *library_path = library_path_find();
    setup.library_path = library_path;
    sigprocmask(SIG_BLOCK, NULL, &launch->mask);
    struct control control = {.request = request, .user = launch};
    control_open(&control, launch->loop);
    int status = run_starts(launch, &setup);
    control_close(&control);
    sigprocmask(SIG_SETMASK, &launch->mask, NULL);
    hosts_free(&launch->left_out);
    free(library_path);
    return status;
}

/* Before anything is opened or forked. */
static bool prepare(struct launch *launch)
{
    struct options *options = &launch->options;
    bool alone = options->mode == MODE_COORDINATOR;
    log_setup(options);
    descriptor_standard();
    quiet_process();
    env_warn_unknown(warn_unknown);
    return key_begin(options, !alone && hosts_are_far(&options->hosts)) &&
           (options->join || key_coordinates(options));
}

static int run(struct launch *launch)
{
    bool alone = launch->options.mode == MODE_COORDINATOR;
    if (!prepare(launch)) return EXIT_FAILURE;
    launch->guard.fd = -1;
    if (!alone && !guard_start(&launch->guard)) return EXIT_FAILURE;
    int status = EXIT_FAILURE;
    launch->loop = ev_default_loop(0);
    if (!launch->loop)
        complain("cannot start an event loop: %s", strerror(errno));
    else if (!alone && !sinks_open(launch))
        complain("cannot open the standard output: %s", strerror(errno));
    else if (web_begin(launch))
        status = alone ? run_coordinator(launch) : run_job(launch);
    server_close(launch);
    if (launch->web) master_http_close(launch->web);
    sink_close(&launch->out_sink);
    sink_close(&launch->err_sink);
    if (launch->loop) ev_loop_destroy(launch->loop);
    if (!alone) guard_stop(&launch->guard);
    return status;
}

static int run_agent(void)
{
    char *library_path = library_path_find();
    int status = agent_run(library_path);
    free(library_path);
    return status;
}

/* Returns at once; the job goes on without a terminal. */
static int run_detached(struct launch *launch)
{
    char line[MESSAGE_SIZE];
    switch (detach_begin(&launch->detached, launch->options.state, line)) {
    case DETACH_PARENT:
        printf("pccl-master: %s\n", line);
        return EXIT_SUCCESS;
    case DETACH_FAILED:
        complain("%s", line);
        return EXIT_FAILURE;
    case DETACH_CHILD:
        break;
    }
    detach_tell(&launch->detached);
    int status = run(launch);
    detach_note(&launch->detached, "ended %d", status);
    detach_end(&launch->detached);
    return status;
}

int launch_main(int argc, char **argv)
{
    struct launch launch = {.detached = {.fd = -1, .told = -1}};
    int status = EXIT_SUCCESS;
    struct options_environment environment;
    memory_for_loops();
    environment_read(&environment);
    if (!options_parse(&launch.options, argc, argv) ||
        !options_complete(&launch.options, &environment)) {
        complain("%s", launch.options.error);
        status = EXIT_USAGE;
    } else if (launch.options.mode == MODE_HELP) {
        for (size_t i = 0; options_help[i]; i++) fputs(options_help[i], stdout);
    } else if (launch.options.mode == MODE_VERSION) {
        puts("pccl-master (PCCL/MPI) " PCCL_VERSION_STRING);
    } else if (launch.options.mode == MODE_STATUS) {
        status = look_status(&launch.options);
    } else if (launch.options.mode == MODE_MAKE_TOKEN) {
        status = key_make_file(launch.options.make_token);
    } else if (launch.options.mode == MODE_MAKE_ISSUER) {
        status = issue_make_issuer(launch.options.make_issuer);
    } else if (launch.options.mode == MODE_ISSUE) {
        status = issue_token(&launch.options);
    } else if (launch.options.mode == MODE_AGENT) {
        status = run_agent();
    } else if (launch.options.mode == MODE_DRAIN) {
        char text[MESSAGE_SIZE];
        snprintf(text, sizeof text, "drain %s", launch.options.drain);
        status = control_ask(text, (pid_t)launch.options.pid);
    } else if (launch.options.mode == MODE_ATTACH) {
        status = look_attached(&launch.options);
    } else if (launch.options.detach) {
        status = run_detached(&launch);
    } else {
        status = run(&launch);
    }
    options_free(&launch.options);
    return status;
}
