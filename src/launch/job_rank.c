/* job_rank.c - starts ranks, locally or through an agent. */
#include "job_rank.h"

#include "../base/host.h"
#include "rank_env.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool rank_is_gone(const struct rank *rank)
{
    return proc_is_gone(&rank->proc) && !ev_is_active(&rank->respawn);
}

void rank_signal(struct rank *rank, int number)
{
    if (!rank->proc.alive) return;
    if (rank->host->remote)
        remote_send_number(rank->host->remote, LINK_SIGNAL, rank->index,
                           number);
    else
        proc_signal(&rank->proc, number);
}

void rank_kill(struct rank *rank)
{
    if (!rank->host) return;
    if (rank->host->remote)
        rank_signal(rank, SIGKILL);
    else
        proc_kill(&rank->proc);
}

void rank_ended(struct rank *rank)
{
    input_remove(&rank->input);
}

/* ------------------------------------------------------------------ input */

enum reads { READS_NOTHING, READS_ITSELF, READS_COPY };

/* A single local rank inherits our input directly. */
static enum reads rank_reads(const struct rank *rank)
{
    const struct options *options = rank->job->setup.options;
    bool all = options->stdin_to == STDIN_ALL;
    if (options->join || rank->spare) return READS_NOTHING;
    if (!all && options->stdin_to != (int64_t)rank->index) return READS_NOTHING;
    bool alone = !all || options->rank_count == 1;
    if (alone && !rank->host->remote && !isatty(STDIN_FILENO))
        return READS_ITSELF;
    return READS_COPY;
}

static void input_send(struct input_target *target, const char *bytes,
                       size_t size)
{
    const struct rank *rank = target->user;
    remote_send(rank->host->remote, LINK_INPUT, rank->index, bytes, size);
}

/* Releases a spare: writes a byte to its input and closes it. */
void rank_release(struct rank *rank)
{
    rank->spare = false;
    if (rank->host->remote) {
        remote_send(rank->host->remote, LINK_INPUT, rank->index, "\n", 1);
        remote_send(rank->host->remote, LINK_INPUT, rank->index, NULL, 0);
        return;
    }
    ssize_t ignored = write(rank->input.fd, "\n", 1);
    (void)ignored; /* a dead spare is reported separately */
    close(rank->input.fd);
    rank->input.fd = -1;
}

/* --------------------------------------------------------------- starting */

static void name_make(const struct rank *rank, const char *pattern, char **file)
{
    *file = NULL;
    if (!pattern) return;
    *file = memory_text("");
    for (; *pattern; pattern++) {
        char *old = *file;
        if (pattern[0] == '%' && pattern[1] == 'r')
            *file = memory_print("%s%u", old, rank->index);
        else if (pattern[0] == '%' && pattern[1] == 'h')
            *file = memory_print("%s%s", old, rank->host->shown);
        else
            *file = memory_print("%s%c", old, *pattern);
        if (pattern[0] == '%' && pattern[1] && strchr("rh%", pattern[1]))
            pattern++;
        free(old);
    }
}

/* Label and destinations of a rank's output. */
struct outputs {
    struct stream_name name;
    char *label, *files[2];
};

/* Open MPI's layout: FOLDER/1/rank.N/stdout and stderr. */
static void folder_make(const struct rank *rank, const char *folder,
                        char *files[2])
{
    static const char *const words[] = {":nocopy", ":nojobid"};
    size_t length = strlen(folder);
    bool job = true;
    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        const char *word = strstr(folder, words[i]);
        if (!word) continue;
        if (i == 1) job = false;
        if ((size_t)(word - folder) < length) length = (size_t)(word - folder);
    }
    for (int i = 0; i < 2; i++)
        files[i] =
            memory_print("%.*s/%srank.%u/%s", (int)length, folder,
                         job ? "1/" : "", rank->index, i ? "stderr" : "stdout");
}

static void outputs_make(const struct rank *rank, struct outputs *outputs)
{
    const struct options *options = rank->job->setup.options;
    name_make(rank, options->label, &outputs->label);
    if (options->out_folder) {
        folder_make(rank, options->out_folder, outputs->files);
    } else {
        name_make(rank, options->out_pattern, &outputs->files[0]);
        name_make(rank, options->err_pattern, &outputs->files[1]);
    }
    outputs->name =
        (struct stream_name){.rank = rank->index,
                             .label = outputs->label,
                             .live = sink_is_terminal(rank->job->setup.out),
                             .files = {outputs->files[0], outputs->files[1]}};
    if (options->merge) outputs->name.files[1] = outputs->files[0];
}

static void outputs_free(struct outputs *outputs)
{
    free(outputs->label);
    free(outputs->files[0]);
    free(outputs->files[1]);
}

static char **env_make(const struct rank *rank)
{
    const struct job *job = rank->job;
    const struct options *options = job->setup.options;
    const struct host_entry *entry =
        hosts_entry_of(job->setup.hosts, rank->host->name, rank->local);
    struct rank_env facts = {
        .inherited = environ,
        .options = job->setup.options,
        .app = rank->app,
        .master = rank->host->master,
        .ports = entry && entry->ports ? entry->ports : options->peer_ports,
        .announce =
            entry && entry->announce ? entry->announce : options->announce,
        .library_path = rank->host->remote ? NULL : job->setup.library_path,
        .index = rank->index,
        .local = rank->local,
        .local_count = job->placement.locals[rank->host - job->hosts],
        .restart = job->setup.restart,
        .newcomer = rank->newcomer,
        .spare = rank->spare};
    return rank_env_build(&facts);
}

/* The texts of LINK_START, see agent.c. */
static void remote_start(struct rank *rank, char *const *env, bool reads)
{
    const struct options *options = rank->job->setup.options;
    const struct app *app = rank->app;
    struct link_texts texts = {0};
    int64_t count = 0;
    while (env[count]) count++;
    link_put(&texts, app->path ? app->path : "");
    link_put(&texts, app->directory ? app->directory : "");
    link_put_number(&texts, options->bind.kind);
    link_put_number(&texts, options->bind.width);
    link_put_number(&texts, options->bind.map);
    link_put_number(&texts, options->bind.fill);
    link_put_number(&texts, sink_is_terminal(rank->job->setup.out));
    link_put_number(&texts, rank->local);
    link_put_number(&texts, reads);
    link_put_number(&texts, app->argc);
    for (int i = 0; i < app->argc; i++) link_put(&texts, app->argv[i]);
    link_put_number(&texts, count);
    for (int64_t i = 0; i < count; i++) link_put(&texts, env[i]);
    remote_send(rank->host->remote, LINK_START, rank->index, texts.bytes,
                texts.size);
    free(texts.bytes);
}

void rank_report_binding(const struct rank *rank, const char *processors)
{
    const struct job *job = rank->job;
    if (!job->setup.options->report_bindings) return;
    job_message(job->setup.err, "rank %u on %s is %s%s", rank->index,
                rank->host->shown,
                *processors ? "bound to processors " : "not bound", processors);
}

static struct sink *err_sink(const struct job *job)
{
    return job->setup.options->merge ? job->setup.out : job->setup.err;
}

static int local_start(struct rank *rank, char *const *env, int in,
                       const struct stream_name *name)
{
    struct job *job = rank->job;
    const struct app *app = rank->app;
    char error[MESSAGE_SIZE / 2];
    cpu_set_t cpus;
    bool bound = bind_choose(&job->machine, job->setup.options->bind,
                             rank->local, &cpus);
    char **argv = memory_get((size_t)app->argc + 1, sizeof *argv);
    memcpy(argv, app->argv, (size_t)app->argc * sizeof *argv);
    struct proc_request request = {
        .spawn = {.argv = argv,
                  .argc = app->argc,
                  .env = env,
                  .directory = app->directory,
                  .in = in,
                  .out = -1,
                  .cpus = bound ? &cpus : NULL,
                  .ignore_hangup = job->setup.ignore_hangup,
                  .files = job->setup.files},
        .path = app->path,
        .out_sink = job->setup.out,
        .err_sink = err_sink(job),
        .name = name,
    };
    rank->host_id = host_id();
    int status = proc_start(&rank->proc, &request, error, sizeof error);
    free(argv);
    char *processors = bind_text(bound ? &cpus : NULL);
    if (status == 0) rank_report_binding(rank, processors);
    free(processors);
    if (status != 0) job_message(job->setup.err, "%s", error);
    return status;
}

static int start_here(struct rank *rank, char *const *env, enum reads reads,
                      const struct stream_name *name)
{
    struct job *job = rank->job;
    int ends[2] = {-1, -1};
    bool piped = reads == READS_COPY || rank->spare;
    if (piped && descriptor_pipe(ends) != 0) {
        job_message(job->setup.err, "cannot open pipes for %s: %s",
                    rank->app->argv[0], strerror(errno));
        return EXIT_FAILURE;
    }
    int in = piped                   ? ends[0]
             : reads == READS_ITSELF ? STDIN_FILENO
                                     : job->null_fd;
    int status = local_start(rank, env, in, name);
    if (piped) close(ends[0]);
    if (status != 0 && piped) close(ends[1]);
    if (status == 0 && rank->spare)
        rank->input.fd = ends[1];
    else if (status == 0 && piped)
        input_add(&job->input, job->setup.loop, &rank->input, ends[1]);
    return status;
}

static void start_there(struct rank *rank, char *const *env, enum reads reads,
                        const struct stream_name *name)
{
    struct job *job = rank->job;
    remote_start(rank, env, reads != READS_NOTHING || rank->spare);
    rank->proc.pid = 0;
    rank->proc.alive = true;
    rank->proc.news = rank->proc.lingering = rank->proc.left = false;
    rank->closing[0] = rank->closing[1] = false;
    stream_open(&rank->proc.out, job->setup.out, -1, name, false);
    stream_open(&rank->proc.err, err_sink(job), -1, name, true);
    if (reads == READS_NOTHING) return;
    rank->input.send = input_send;
    rank->input.user = rank;
    input_add(&job->input, job->setup.loop, &rank->input, -1);
}

int rank_start(struct rank *rank)
{
    struct outputs outputs;
    enum reads reads = rank_reads(rank);
    char **env = env_make(rank);
    int status = 0;
    rank->good = rank->host_lost = rank->drained = rank->evicted = false;
    rank->cut = false;
    rank->peer = 0;
    rank->started = ev_time();
    outputs_make(rank, &outputs);
    if (rank->host->remote)
        start_there(rank, env, reads, &outputs.name);
    else
        status = start_here(rank, env, reads, &outputs.name);
    outputs_free(&outputs);
    rank_env_free(env);
    return status;
}

/* Its own host, or, if that is lost, the one with the fewest ranks. */
static struct host *host_for(struct rank *rank)
{
    struct job *job = rank->job;
    struct host *best = NULL;
    uint32_t best_load = 0;
    if (!rank->host->lost) return rank->host;
    for (uint32_t i = 0; i < job->host_count; i++) {
        struct host *host = &job->hosts[i];
        uint32_t load = 0;
        if (host->lost) continue;
        for (uint32_t k = 0; k < job->count; k++)
            load += job->ranks[k].host == host && job->ranks[k].proc.alive;
        if (best && load >= best_load) continue;
        best = host;
        best_load = load;
    }
    return best;
}

bool rank_restart(struct rank *rank)
{
    struct host *host = host_for(rank);
    if (!host) return false;
    rank->host = host;
    rank->newcomer = true;
    if (rank_start(rank) != 0) rank_not_started(rank);
    return true;
}

static void respawn_due(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)events;
    struct rank *rank = timer->data;
    /* remaining output of the old process comes first */
    if (!proc_is_gone(&rank->proc)) {
        ev_timer_set(timer, LAUNCH_SWEEP, 0.);
        ev_timer_start(loop, timer);
        return;
    }
    if (!rank_restart(rank))
        job_message(rank->job->setup.err,
                    "no host is left on which rank %u could start again",
                    rank->index);
}

static void rank_init(struct rank *rank, struct job *job, uint32_t index,
                      const struct app *app)
{
    struct place place = job->placement.ranks[index];
    rank->job = job;
    rank->index = index;
    rank->app = app;
    rank->host = &job->hosts[place.host];
    rank->local = place.local;
    rank->spare = index >= job->setup.options->rank_count;
    rank->newcomer = rank->spare || job->setup.options->join;
    rank->input.fd = -1;
    proc_init(&rank->proc, job->setup.loop, job->setup.guard->fd);
    ev_timer_init(&rank->respawn, respawn_due, 0., 0.);
    rank->respawn.data = rank;
}

static void folders_create(char *path)
{
    for (char *at = path + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        (void)mkdir(path, 0777); /* opening the file reports any error */
        *at = '/';
    }
}

/* Truncates files of an older job; ranks of this job append. */
static void files_empty(const struct rank *rank)
{
    struct outputs outputs;
    outputs_make(rank, &outputs);
    for (int i = 0; i < 2; i++) {
        if (!outputs.files[i]) continue;
        folders_create(outputs.files[i]);
        if (truncate(outputs.files[i], 0) != 0 && errno != ENOENT)
            job_message(rank->job->setup.err, "%s: %s", outputs.files[i],
                        strerror(errno));
    }
    outputs_free(&outputs);
}

static void ranks_init(struct job *job)
{
    const struct options *options = job->setup.options;
    const struct app *last = &options->apps[options->app_count - 1];
    uint32_t index = 0;
    for (size_t i = 0; i < options->app_count; i++)
        for (uint32_t k = 0; k < options->apps[i].ranks; k++, index++)
            rank_init(&job->ranks[index], job, index, &options->apps[i]);
    for (; index < job->count; index++)
        rank_init(&job->ranks[index], job, index, last);
}

static void ranks_prepare(struct job *job)
{
    for (uint32_t index = 0; index < job->count && job->setup.restart == 0;
         index++)
        files_empty(&job->ranks[index]);
    if (job->setup.options->bind.kind != BIND_NONE) bind_read(&job->machine);
}

int ranks_start(struct job *job)
{
    const struct options *options = job->setup.options;
    int status = 0;
    job->started = true;
    ranks_init(job);
    ranks_prepare(job);
    for (uint32_t index = 0; index < job->count && status == 0; index++)
        status = rank_start(&job->ranks[index]);
    /* if rank 0 closes our input, its writer gets an error */
    bool again = options->respawn || options->restarts > 0;
    if (!again && !job->input.running && !isatty(STDIN_FILENO))
        dup2(job->null_fd, STDIN_FILENO);
    return status;
}

void ranks_stop(struct job *job)
{
    for (uint32_t i = 0; i < job->count; i++) {
        struct rank *rank = &job->ranks[i];
        if (!rank->host) continue;
        input_remove(&rank->input);
        if (rank->input.fd >= 0) close(rank->input.fd);
        ev_timer_stop(job->setup.loop, &rank->respawn);
        proc_free(&rank->proc);
    }
    input_stop(&job->input);
}
