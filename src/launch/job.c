/* job.c - decisions about the ranks of a job; job_rank.c starts the
 * processes. */
#include "job_rank.h"

#include "../base/append.h"
#include "../master/server/master_server.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void job_message(struct sink *err, const char *format, ...)
{
    char line[MESSAGE_SIZE] = "pccl-master: ";
    size_t used = strlen(line);
    va_list args;
    va_start(args, format);
    vsnprintf(line + used, sizeof line - used, format, args);
    va_end(args);
    sink_message(err, line);
}

static void signal_all(struct job *job, int number)
{
    for (uint32_t i = 0; i < job->count; i++)
        rank_signal(&job->ranks[i], number);
}

/* Spares count only after their release. */
static uint32_t count_alive(const struct job *job)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < job->count; i++)
        count += job->ranks[i].proc.alive && !job->ranks[i].spare;
    return count;
}

static bool ended_well(const struct rank *rank)
{
    return !rank->proc.alive && !rank->spare && !rank->host_lost &&
           !rank->evicted && !rank->cut && rank->proc.wait_status == 0;
}

/* Whether it has left the run is known when the coordinator has read what its
 * process has sent, or evicts it (M10h). */
static bool is_unread(const struct rank *rank)
{
    const struct master_server *server = rank->job->setup.server;
    return server && !rank->job->ending && rank->peer != 0 &&
           ended_well(rank) &&
           master_server_awaits_leave(server, rank->host_id,
                                      (uint32_t)rank->peer);
}

/* Includes ranks whose end is not handled yet. */
static uint32_t count_good(const struct job *job)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < job->count; i++) {
        const struct rank *rank = &job->ranks[i];
        count += rank->good ||
                 (rank->proc.news && ended_well(rank) && !rank->drained);
    }
    return count;
}

static void respawns_cancel(struct job *job)
{
    for (uint32_t i = 0; i < job->count; i++)
        ev_timer_stop(job->setup.loop, &job->ranks[i].respawn);
}

/* The run is ending: cancels all respawns and spares. */
static void replacements_cancel(struct job *job)
{
    respawns_cancel(job);
    for (uint32_t i = 0; i < job->count; i++) {
        struct rank *rank = &job->ranks[i];
        if (!rank->spare || rank->dismissed) continue;
        rank->dismissed = true;
        rank_signal(rank, SIGKILL);
    }
}

void job_end(struct job *job, int status)
{
    if (job->ending) return;
    job->ending = true;
    job->started = true; /* set even if starting fails */
    job->status = status;
    replacements_cancel(job);
    ev_timer_stop(job->setup.loop, &job->timers[JOB_BLAME]);
    signal_all(job, SIGTERM);
    signal_all(job, SIGCONT); /* a stopped process would not handle SIGTERM */
    job_wait(job, JOB_KILLER, LAUNCH_GRACE);
}

/* A survivor gave up because of a loss. The lost rank's end may be noticed
 * later: wait a while for it, since it explains the failure. */
static void blame_later(struct job *job)
{
    if (!job->ending) job_wait(job, JOB_BLAME, LAUNCH_GRACE);
}

static void blame_expired(struct job *job)
{
    if (job->setup.options->restarts > 0)
        job_fail(job, EXIT_AFTER_LOSS, "a rank was lost;");
    else
        job_end(job, EXIT_AFTER_LOSS);
}

void job_abort(struct job *job, int code, int rank)
{
    if (code == EXIT_AFTER_LOSS && !job->setup.options->elastic) {
        struct master_server *server = job->setup.server;
        const char *loss = server ? master_server_loss(server) : "";
        if (!job->ending)
            job_message(job->setup.err, "rank %d gave up because %s", rank,
                        *loss ? loss : "another one was lost");
        blame_later(job);
        return;
    }
    /* with that code the MPI library has ended it, and has said why */
    if (!job->aborted && code != EXIT_AFTER_LOSS) {
        job->aborted = true;
        job->abort_code = code;
        job->abort_rank = rank;
    }
    char line[64];
    int status = code & 0xff;
    if (status == 0 && code != 0) status = EXIT_FAILURE;
    if (!job->ending && status != 0 && job->setup.options->restarts > 0) {
        snprintf(line, sizeof line, "rank %d aborted the job;", rank);
        job_fail(job, status, line);
    }
    job_end(job, status);
    job->status = status; /* the status of MPI_Abort replaces a rank's */
}

static bool was_killed(const struct rank *rank)
{
    return !rank->host_lost && WIFSIGNALED(rank->proc.wait_status);
}

static int status_of(const struct rank *rank)
{
    if (rank->host_lost) return EXIT_FAILURE;
    if (rank->evicted) return EXIT_AFTER_LOSS;
    if (rank->cut && rank->proc.wait_status == 0) return EXIT_FAILURE;
    return was_killed(rank) ? EXIT_SIGNAL + WTERMSIG(rank->proc.wait_status)
                            : WEXITSTATUS(rank->proc.wait_status);
}

static void describe(const struct rank *rank, char *text, size_t size)
{
    const struct job *job = rank->job;
    int status = rank->proc.wait_status;
    snprintf(text, size, "%srank %u (pid %d on %s) ",
             job->setup.options->join ? "local " : "", rank->index,
             (int)rank->proc.pid, rank->host->shown);
    if (rank->evicted) append(text, size, "was evicted, and ");
    if (rank->host_lost)
        append(text, size, "was lost with its host");
    else if (rank->proc.left)
        append(text, size,
               "does not end (it waits in the kernel), so it is left");
    else if (was_killed(rank))
        append(text, size, "was killed by signal %d (%s%s)", WTERMSIG(status),
               strsignal(WTERMSIG(status)),
               WCOREDUMP(status) ? ", core dumped" : "");
    else
        append(text, size, "exited with status %d%s", WEXITSTATUS(status),
               rank->cut && status == 0 ? ", but without MPI_Finalize" : "");
}

/* The first view must not wait for dead processes. After it the coordinator
 * notices losses itself. */
static void quorum_lower(struct job *job, uint32_t alive)
{
    struct master_server *server = job->setup.server;
    if (server && alive > 0 && master_server_members(server) == 0)
        master_server_set_quorum(server, alive);
}

static bool respawn_plan(struct rank *rank)
{
    struct job *job = rank->job;
    if (!job->setup.options->respawn || job->interrupts > 0) return false;
    if (ev_now(job->setup.loop) - rank->started >= RESPAWN_HEALTHY) {
        rank->delay = 0;
        rank->respawns = 0;
    }
    if (rank->respawns == RESPAWNS_MAX) {
        job_message(job->setup.err,
                    "rank %u died %d times in a row; giving it "
                    "up",
                    rank->index, RESPAWNS_MAX + 1);
        return false;
    }
    rank->respawns++;
    rank->delay = rank->delay > 0 ? 2 * rank->delay : RESPAWN_DELAY_MIN;
    if (rank->delay > RESPAWN_DELAY_MAX) rank->delay = RESPAWN_DELAY_MAX;
    ev_timer_set(&rank->respawn, rank->delay, 0.);
    ev_timer_start(job->setup.loop, &rank->respawn);
    return true;
}

/* Retry: a shortage, for example of memory, may be temporary. */
void rank_not_started(struct rank *rank)
{
    struct job *job = rank->job;
    rank->started = ev_now(job->setup.loop);
    if (job->ending || count_good(job) > 0) return;
    if (respawn_plan(rank))
        job_message(job->setup.err,
                    "rank %u could not be started again; next try in %.1f s",
                    rank->index, rank->delay);
}

/* A live spare replaces the dead rank. */
static struct rank *spare_take(struct job *job)
{
    if (job->interrupts > 0) return NULL;
    for (uint32_t i = 0; i < job->count; i++) {
        struct rank *spare = &job->ranks[i];
        if (!spare->spare || spare->dismissed || !spare->proc.alive) continue;
        rank_release(spare);
        return spare;
    }
    return NULL;
}

static void failure_tolerate(struct rank *rank)
{
    struct job *job = rank->job;
    const struct options *options = job->setup.options;
    uint32_t alive = count_alive(job), good = count_good(job);
    char text[MESSAGE_SIZE / 2];
    describe(rank, text, sizeof text);
    job->lost++;
    if (job->first_failure == 0) job->first_failure = status_of(rank);
    const struct rank *spare = alive > 0 && good == 0 ? spare_take(job) : NULL;
    if (spare) {
        job_message(job->setup.err, "%s; %u left, spare %u takes part", text,
                    alive, spare->index);
        quorum_lower(job, alive);
        return;
    }
    if (alive + good < options->ranks_min) {
        char line[MESSAGE_SIZE];
        snprintf(line, sizeof line, "%s; %u left of at least %u,", text,
                 alive + good, options->ranks_min);
        job_fail(job, job->first_failure, line);
        return;
    }
    bool ended = job->setup.server && rank->newcomer &&
                 master_server_has_ended(job->setup.server);
    bool again = good == 0 && !ended && respawn_plan(rank);
    if (ended) {
        job_message(job->setup.err, "%s; it came when the job had ended", text);
    } else if (again) {
        job_message(job->setup.err, "%s; %u left, a new one starts in %.1f s",
                    text, alive, rank->delay);
    } else {
        job_message(job->setup.err, "%s; %u left, going on", text,
                    alive + good);
    }
    quorum_lower(job, alive);
}

/* Of several ranks that ended in one turn a killed one comes first: it may be
 * the cause of the others' exits. */
static struct rank *news_first(struct job *job)
{
    struct rank *first = NULL;
    for (uint32_t i = 0; i < job->count; i++) {
        struct rank *rank = &job->ranks[i];
        if (!rank->proc.news || is_unread(rank)) continue;
        if (!first || (was_killed(rank) && !was_killed(first))) first = rank;
    }
    return first;
}

/* Ends that are not handled yet. */
static bool has_news(const struct job *job)
{
    for (uint32_t i = 0; i < job->count; i++)
        if (job->ranks[i].proc.news) return true;
    return false;
}

static void news_handle(struct job *job, struct rank *rank)
{
    rank->proc.news = false;
    rank->good = ended_well(rank) && !rank->drained;
    rank_ended(rank);
    job->unfinished |= rank->cut && rank->proc.wait_status == 0;
    if (job->ending || rank->dismissed) return;
    if (rank->drained && ended_well(rank)) {
        job_message(job->setup.err, "rank %u has left; %u left", rank->index,
                    count_alive(job));
        quorum_lower(job, count_alive(job));
    } else if (rank->spare) {
        char text[MESSAGE_SIZE / 2];
        describe(rank, text, sizeof text);
        job_message(job->setup.err, "spare %s", text);
    } else if (rank->good) {
        replacements_cancel(job);
        if (job->setup.options->elastic) quorum_lower(job, count_alive(job));
    } else if (job->setup.options->elastic) {
        failure_tolerate(rank);
    } else if (status_of(rank) == EXIT_AFTER_LOSS && !rank->evicted &&
               (count_alive(job) > 0 || has_news(job))) {
        blame_later(job);
    } else {
        char text[MESSAGE_SIZE / 2];
        char line[MESSAGE_SIZE];
        describe(rank, text, sizeof text);
        snprintf(line, sizeof line, "%s;", text);
        job_fail(job, status_of(rank), line);
    }
}

/* Only spares are left; they do not form a job. */
static bool only_spares(const struct job *job)
{
    for (uint32_t i = 0; i < job->count; i++)
        if (!job->ranks[i].spare && !rank_is_gone(&job->ranks[i])) return false;
    return true;
}

static bool job_is_over(struct job *job)
{
    if (!job->started || has_news(job)) return false;
    if (only_spares(job)) replacements_cancel(job);
    for (uint32_t i = 0; i < job->count; i++)
        if (!rank_is_gone(&job->ranks[i])) return false;
    if (!hosts_are_gone(job)) {
        job_wait(job, JOB_LEAVE, LAUNCH_GRACE);
        return false;
    }
    return sink_is_empty(job->setup.out) && sink_is_empty(job->setup.err);
}

static void leave_expired(struct job *job)
{
    ev_break(job->setup.loop, EVBREAK_ALL);
}

/* Starts the ranks only when all hosts are ready. */
static void job_begin(struct job *job)
{
    if (job->started || job->ending || ev_is_active(&job->timers[JOB_PAUSE]))
        return;
    if (job->unreached && hosts_are_known(job)) job_end(job, EXIT_FAILURE);
    if (job->ending || !hosts_are_ready(job)) return;
    ev_timer_stop(job->setup.loop, &job->timers[JOB_REACH]);
    int status = ranks_start(job);
    if (status != 0) job_end(job, status);
}

static void settle(struct ev_loop *loop, ev_prepare *prepare, int events)
{
    (void)events;
    struct job *job = prepare->data;
    hosts_settle(job);
    job_begin(job);
    for (struct rank *rank; (rank = news_first(job));) news_handle(job, rank);
    /* Nobody is left whose end could explain it. */
    struct ev_timer *blame = &job->timers[JOB_BLAME];
    if (ev_is_active(blame) && count_alive(job) == 0 && !has_news(job)) {
        ev_timer_stop(loop, blame);
        blame_expired(job);
    }
    job_watch(job);
    if (job_is_over(job)) ev_break(loop, EVBREAK_ALL);
}

static void killer_expired(struct job *job)
{
    for (uint32_t i = 0; i < job->count; i++) rank_kill(&job->ranks[i]);
    job_wait(job, JOB_ANSWER, LAUNCH_ANSWER);
}

static void answer_expired(struct job *job)
{
    for (uint32_t i = 0; i < job->count; i++) {
        struct rank *rank = &job->ranks[i];
        if (!rank->proc.alive || rank->host->remote) continue;
        char text[MESSAGE_SIZE / 2];
        proc_leave(&rank->proc);
        describe(rank, text, sizeof text);
        job_message(job->setup.err, "%s", text);
    }
    hosts_give_up(job);
}

static void timeout_expired(struct job *job)
{
    if (job->ending) return;
    job_message(job->setup.err, "the job ran for %g s (--timeout); ending it",
                job->setup.options->timeout);
    job->final = true;
    job_end(job, EXIT_TIMEOUT);
}

static void timer_expired(struct ev_loop *loop, ev_timer *timer, int events)
{
    static void (*const due[JOB_TIMERS])(struct job * job) = {
        [JOB_KILLER] = killer_expired,   [JOB_TIMEOUT] = timeout_expired,
        [JOB_BLAME] = blame_expired,     [JOB_ANSWER] = answer_expired,
        [JOB_LEAVE] = leave_expired,     [JOB_PAUSE] = job_resume,
        [JOB_REACH] = hosts_give_up_late};
    (void)loop;
    (void)events;
    struct job *job = timer->data;
    due[timer - job->timers](job);
}

void job_wait(struct job *job, enum job_timer which, double seconds)
{
    ev_timer *timer = &job->timers[which];
    if (ev_is_active(timer)) return;
    ev_now_update(job->setup.loop); /* starting many ranks takes a while */
    ev_timer_set(timer, seconds, 0.);
    ev_timer_start(job->setup.loop, timer);
}

/* The first signal goes to the ranks, the second ends the job, the third ends
 * it at once and may lose output. */
static void interrupt(struct job *job, int number)
{
    job_drained(job, number);
    job->interrupts++;
    job_no_restart(job);
    if (count_alive(job) == 0) {
        respawns_cancel(job);
        if (job->status == 0) job->status = EXIT_SIGNAL + number;
        ev_break(job->setup.loop, EVBREAK_ALL);
    } else if (job->interrupts == 1) {
        respawns_cancel(job);
        signal_all(job, number);
    } else if (job->interrupts == 2) {
        job_message(job->setup.err, "interrupted again; ending the job");
        job_end(job, EXIT_SIGNAL + number);
    } else {
        signal_all(job, SIGKILL);
    }
}

/* One message, so that the ranks' output does not tear it. */
static void print_status(struct job *job)
{
    struct master_server *server = job->setup.server;
    char *text = server ? master_server_status(server) : NULL;
    if (text)
        sink_message(job->setup.err, text);
    else
        job_message(job->setup.err, "the coordinator has no status");
    free(text);
}

/* SIGCONT has come since the last SIGTSTP. The handlers tell: the loop hears of
 * both later, in any order, and who stops after the SIGCONT stops for good. */
static volatile sig_atomic_t continued;

static void stop_or_continue(int number)
{
    continued = number == SIGCONT;
    ev_feed_signal(number);
}

static void signal_came(struct ev_loop *loop, ev_signal *watcher, int events)
{
    (void)loop;
    (void)events;
    struct job *job = watcher->data;
    switch (watcher->signum) {
    case SIGINT:
    case SIGTERM:
    case SIGQUIT:
        interrupt(job, watcher->signum);
        break;
    case SIGUSR1:
        print_status(job);
        break;
    case SIGTSTP:
        if (continued) break;
        signal_all(job, SIGTSTP);
        if (!continued) raise(SIGSTOP);
        break;
    default:
        if (watcher->signum == SIGHUP) job_no_restart(job);
        job_drained(job, watcher->signum);
        signal_all(job, watcher->signum);
    }
}

static void signals_start(struct job *job)
{
    static const int numbers[] = {SIGINT,  SIGTERM, SIGQUIT, SIGHUP,
                                  SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};
    static_assert(ARRAY_COUNT(numbers) == JOB_SIGNALS, "one watcher each");
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        ev_signal_init(&job->signals[i], signal_came, numbers[i]);
        job->signals[i].data = job;
        if (numbers[i] == SIGHUP && job->setup.ignore_hangup) continue;
        ev_signal_start(job->setup.loop, &job->signals[i]);
    }
    /* In place of the loop's own handlers, which do no more than feed. */
    struct sigaction action = {.sa_handler = stop_or_continue,
                               .sa_flags = SA_RESTART};
    sigfillset(&action.sa_mask);
    continued = 0;
    sigaction(SIGTSTP, &action, NULL);
    sigaction(SIGCONT, &action, NULL);
}

static struct job *job_make(const struct job_setup *setup)
{
    struct job *job = memory_get(1, sizeof *job);
    job->setup = *setup;
    job->count = setup->options->rank_count + setup->options->spares;
    job->null_fd = descriptor_null();
    job->ranks = memory_get(job->count, sizeof *job->ranks);
    if (gethostname(job->host, sizeof job->host - 1) != 0)
        snprintf(job->host, sizeof job->host, "this host");
    return job;
}

static void job_free(struct job *job)
{
    ranks_stop(job);
    hosts_close(job);
    close(job->null_fd);
    free(job->ranks);
    free(job);
}

struct job *job_start(const struct job_setup *setup)
{
    struct job *job = job_make(setup);
    ev_prepare_init(&job->settle, settle);
    job->settle.data = job;
    for (size_t i = 0; i < JOB_TIMERS; i++) {
        ev_timer_init(&job->timers[i], timer_expired, 0., 0.);
        job->timers[i].data = job;
    }
    ev_prepare_start(setup->loop, &job->settle);
    double left = setup->options->timeout - (ev_time() - setup->begun);
    if (setup->options->timeout > 0)
        job_wait(job, JOB_TIMEOUT, left > 0 ? left : 0);
    signals_start(job);
    job->input.again = setup->options->restarts > 0;
    job_open(job);
    job_begin(job);
    return job;
}

int job_finish(struct job *job)
{
    for (uint32_t i = 0; i < job->count; i++) rank_kill(&job->ranks[i]);
    int status = job->status;
    const struct sink *sinks[] = {job->setup.out, job->setup.err};
    for (size_t i = 0; i < ARRAY_COUNT(sinks); i++) {
        if (!sinks[i]->broken) continue;
        if (sinks[i]->error != EPIPE && i == 0) {
            complain("cannot write output: %s", strerror(sinks[i]->error));
        }
        if (status == 0) status = EXIT_FAILURE; /* some output was lost */
    }
    if (status == 0 && job->unfinished) status = EXIT_FAILURE;
    if (status == 0 && job_is_in_doubt(job)) status = EXIT_IN_DOUBT;
    ev_prepare_stop(job->setup.loop, &job->settle);
    for (size_t i = 0; i < JOB_TIMERS; i++)
        ev_timer_stop(job->setup.loop, &job->timers[i]);
    for (size_t i = 0; i < JOB_SIGNALS; i++)
        ev_signal_stop(job->setup.loop, &job->signals[i]);
    job_free(job);
    return status;
}
