/* job_rank.c - see job_rank.h. */
#include "job_rank.h"

#include "rank_env.h"
#include "spawn.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

bool rank_is_gone(const struct rank *rank)
{
    return !rank->alive && !rank->news && !rank->lingering &&
           !stream_is_open(&rank->out) && !stream_is_open(&rank->err) &&
           !ev_is_active(&rank->respawn);
}

static void group_forget(struct rank *rank)
{
    rank->lingering = false;
    guard_remove(rank->job->setup.guard->fd, rank->pid);
}

/* The rank is dead: its children get the grace that it had, then the end. A
 * pipe that somebody else still holds is left when it is empty. */
static void sweep_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)events;
    struct rank *rank = timer->data;
    bool late = ev_now(loop) >= rank->sweep_until;
    if (rank->lingering && kill(-rank->pid, late ? SIGKILL : 0) != 0)
        group_forget(rank);
    if (late) {
        if (rank->lingering) group_forget(rank);
        stream_abandon(&rank->out);
        stream_abandon(&rank->err);
    }
    bool open = stream_is_open(&rank->out) || stream_is_open(&rank->err);
    if (late || (!rank->lingering && !open)) ev_timer_stop(loop, timer);
}

static void child_ended(struct ev_loop *loop, ev_child *child, int events)
{
    (void)events;
    struct rank *rank = child->data;
    ev_child_stop(loop, child);
    rank->wait_status = child->rstatus;
    rank->alive = false;
    rank->good = child->rstatus == 0;
    rank->news = true;
    rank->lingering = true;
    if (rank->index == 0) input_stop(&rank->job->input);
    if (kill(-rank->pid, SIGTERM) != 0) group_forget(rank);
    rank->sweep_until = ev_now(loop) + LAUNCH_GRACE;
    ev_timer_again(loop, &rank->sweep);
}

void rank_kill(struct rank *rank)
{
    if (rank->alive || rank->lingering) kill(-rank->pid, SIGKILL);
}

/* ours: the reading end of a new pipe. */
static int pipe_open(int *ours, int *theirs)
{
    int ends[2];
    if (descriptor_pipe(ends) != 0) return -1;
    *ours = ends[0];
    *theirs = ends[1];
    return 0;
}

static void failure_print(const struct rank *rank,
                          const struct spawn_failure *failure)
{
    const struct app *app = rank->app;
    const struct job *job = rank->job;
    const char *file = job->files[app - job->setup.options->apps];
    bool missing = failure->error == ENOENT && !failure->is_directory &&
                   (!app->directory || *file == '/') && access(file, F_OK) == 0;
    job_message(job->setup.err, "%s %s: %s%s", failure->what,
                failure->is_directory ? app->directory : app->argv[0],
                strerror(failure->error),
                missing ? " (its interpreter is missing)" : "");
}

static int failure_status(int error)
{
    switch (error) {
    case EAGAIN: /* no more processes */
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return EXIT_FAILURE;
    case ENOENT:
        return EXIT_NOT_FOUND;
    default:
        return EXIT_NOT_EXECUTABLE;
    }
}

/* The parts of a request that depend on the rank. */
static pid_t rank_exec(struct rank *rank, bool newcomer, int in, int out,
                       int err, struct spawn_failure *failure)
{
    struct job *job = rank->job;
    const struct options *options = job->setup.options;
    struct rank_env facts = {.inherited = environ,
                             .options = options,
                             .app = rank->app,
                             .master = job->setup.master,
                             .library_path = job->setup.library_path,
                             .index = rank->index,
                             .newcomer = newcomer};
    char **env = rank_env_build(&facts);
    char **argv = memory_get((size_t)rank->app->argc + 1, sizeof *argv);
    memcpy(argv, rank->app->argv, (size_t)rank->app->argc * sizeof *argv);
    struct spawn_request request = {
        .file = job->files[rank->app - options->apps],
        .argv = argv,
        .argc = rank->app->argc,
        .env = env,
        .directory = rank->app->directory,
        .in = in,
        .out = out,
        .err = err,
        .guard_fd = job->setup.guard->fd,
        .ignore_hangup = job->setup.ignore_hangup,
        .files = job->setup.files,
    };
    pid_t pid = spawn_process(&request, failure);
    free(argv);
    rank_env_free(env);
    return pid;
}

static void rank_running(struct rank *rank, pid_t pid, int out, int err)
{
    struct job *job = rank->job;
    char label[16] = "";
    if (job->setup.options->label)
        snprintf(label, sizeof label, "[%u] ", rank->index);
    rank->pid = pid;
    rank->alive = true;
    rank->good = rank->news = rank->lingering = false;
    rank->started = ev_time();
    stream_open(&rank->out, job->setup.out, out, label);
    stream_open(&rank->err, job->setup.err, err, label);
    ev_child_set(&rank->child, pid, 0);
    ev_child_start(job->setup.loop, &rank->child);
}

/* 0 or the exit status for the failure, which has been printed. */
static int rank_start(struct rank *rank, bool newcomer)
{
    struct job *job = rank->job;
    bool reads = rank->index == 0 && !job->setup.options->join;
    bool terminal = reads && isatty(STDIN_FILENO);
    int in = reads ? STDIN_FILENO : job->null_fd;
    int in_end = -1, in_copy = -1, out = -1, out_end = -1, err = -1,
        err_end = -1;
    struct spawn_failure failure = {.what = "cannot open pipes for"};
    pid_t pid = -1;
    if ((terminal && pipe_open(&in_end, &in_copy) != 0) ||
        pipe_open(&out, &out_end) != 0 || pipe_open(&err, &err_end) != 0) {
        failure.error = errno;
    } else {
        pid = rank_exec(rank, newcomer, terminal ? in_end : in, out_end,
                        err_end, &failure);
    }
    if (in_end >= 0) close(in_end);
    if (out_end >= 0) close(out_end);
    if (err_end >= 0) close(err_end);
    if (pid > 0) {
        rank_running(rank, pid, out, err);
        if (terminal) input_start(&job->input, job->setup.loop, in_copy);
        return 0;
    }
    if (in_copy >= 0) close(in_copy);
    if (out >= 0) close(out);
    if (err >= 0) close(err);
    failure_print(rank, &failure);
    return failure_status(failure.error);
}

static void respawn_due(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)events;
    struct rank *rank = timer->data;
    /* the last words of the old one come first */
    if (stream_is_open(&rank->out) || stream_is_open(&rank->err) ||
        rank->lingering) {
        ev_timer_set(timer, LAUNCH_SWEEP, 0.);
        ev_timer_start(loop, timer);
        return;
    }
    ev_timer_stop(loop, &rank->sweep);
    rank_start(rank, true);
}

static int files_find(struct job *job)
{
    const struct options *options = job->setup.options;
    job->files = memory_get(options->app_count, sizeof *job->files);
    for (size_t i = 0; i < options->app_count; i++) {
        const struct app *app = &options->apps[i];
        job->files[i] = spawn_find(app->argv[0], app->path, getenv("PATH"));
        if (job->files[i]) continue;
        int error = errno;
        job_message(job->setup.err, "cannot execute %s: %s (looked in %sPATH)",
                    app->argv[0], strerror(error),
                    app->path ? "-path and " : "");
        return failure_status(error);
    }
    return 0;
}

static void rank_init(struct rank *rank, struct job *job, uint32_t index,
                      const struct app *app)
{
    rank->job = job;
    rank->index = index;
    rank->app = app;
    ev_child_init(&rank->child, child_ended, 0, 0);
    ev_timer_init(&rank->sweep, sweep_tick, 0., LAUNCH_SWEEP);
    ev_timer_init(&rank->respawn, respawn_due, 0., 0.);
    rank->child.data = rank->sweep.data = rank->respawn.data = rank;
}

int ranks_start(struct job *job)
{
    const struct options *options = job->setup.options;
    uint32_t index = 0;
    for (size_t i = 0; i < options->app_count; i++)
        for (uint32_t k = 0; k < options->apps[i].ranks; k++, index++)
            rank_init(&job->ranks[index], job, index, &options->apps[i]);
    job->null_fd = descriptor_null();
    int status = files_find(job);
    for (index = 0; index < job->count && status == 0; index++)
        status = rank_start(&job->ranks[index], options->join);
    /* whoever writes into our input is to notice when rank 0 closes it */
    if (!options->respawn && !isatty(STDIN_FILENO))
        dup2(job->null_fd, STDIN_FILENO);
    return status;
}

void ranks_stop(struct job *job)
{
    input_stop(&job->input);
    for (uint32_t i = 0; i < job->count; i++) {
        struct rank *rank = &job->ranks[i];
        stream_close(&rank->out);
        stream_close(&rank->err);
        ev_child_stop(job->setup.loop, &rank->child);
        ev_timer_stop(job->setup.loop, &rank->sweep);
        ev_timer_stop(job->setup.loop, &rank->respawn);
    }
    for (size_t i = 0; job->files && i < job->setup.options->app_count; i++)
        free(job->files[i]);
    free(job->files);
    close(job->null_fd);
}
