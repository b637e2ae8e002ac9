/* job_keep.c - a launcher whose ranks are with a keeper (keep.h): asks for what
 * job_rank.c does otherwise, sees how the ranks are, notes what is decided, and
 * goes on from what the launcher before it has noted. */
#include "job_rank.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct keep_rank *kept_of(const struct rank *rank)
{
    return &rank->job->setup.keep->table->ranks[rank->index];
}

/* Blocks while the keeper is stopped. Its death is noticed by keeper_came(). */
static void ask(const struct rank *rank, enum keep_wish_kind kind,
                uint32_t number)
{
    const struct keep_wish wish = {.kind = kind,
                                   .rank = rank->index,
                                   .number = number,
                                   .newcomer = rank->newcomer,
                                   .spare = rank->spare};
    int fd = rank->job->setup.keep->fd;
    while (send(fd, &wish, sizeof wish, MSG_NOSIGNAL) < 0 && errno == EINTR)
        continue;
}

/* ------------------------------------------------------------- the notes */

static void note_rank(const struct rank *rank)
{
    struct keep_rank *kept = kept_of(rank);
    kept->good = rank->good;
    kept->dismissed = rank->dismissed;
    kept->drained = rank->drained;
    kept->respawn_count = rank->respawns;
    kept->delay = rank->delay;
    kept->started = rank->started;
    kept->respawns = ev_is_active(&rank->respawn);
    if (!rank->proc.alive && !rank->proc.news) kept->handled = rank->start;
}

static void note_job(const struct job *job)
{
    struct keep_job *note = &job->setup.keep->table->job;
    note->again = job->again;
    note->final = job->final;
    note->aborted = job->aborted;
    note->told = job->told;
    note->abort_code = job->abort_code;
    note->abort_rank = job->abort_rank;
    note->status = job->status;
    note->first_failure = job->first_failure;
    note->interrupts = job->interrupts;
    note->ending = job->ending;
}

/* -------------------------------------------------------------- requests */

/* Noted when it has been asked for, or nobody would start it. */
void kept_start(struct rank *rank)
{
    struct keep_rank *kept = kept_of(rank);
    rank->start = keep_start_of(atomic_load(&kept->word)) + 1;
    rank->proc.pid = 0;
    rank->proc.alive = true;
    rank->proc.news = rank->proc.lingering = false;
    ask(rank, KEEP_START, rank->job->setup.restart);
}

void kept_signal(const struct rank *rank, int number)
{
    note_job(rank->job);
    note_rank(rank);
    ask(rank, KEEP_SIGNAL, (uint32_t)number);
}

void kept_kill(const struct rank *rank)
{
    if (!proc_is_gone(&rank->proc)) ask(rank, KEEP_KILL, 0);
}

void kept_release(const struct rank *rank)
{
    ask(rank, KEEP_RELEASE, 0);
}

/* ------------------------------------------------------- how the ranks are */

static void has_ended(struct rank *rank, int wait_status)
{
    if (!rank->proc.alive) return;
    rank->proc.wait_status = wait_status;
    rank->proc.alive = false;
    rank->proc.news = true;
    rank_ended(rank);
}

static void has_failed(struct rank *rank, int status)
{
    if (!rank->proc.alive) return;
    rank->proc.alive = false;
    rank_ended(rank);
    if (!rank->newcomer)
        job_end(rank->job, status);
    else if (!rank->spare)
        rank_not_started(rank);
}

static void look(struct rank *rank)
{
    struct keep_rank *kept = kept_of(rank);
    uint32_t word = atomic_load(&kept->word);
    if (keep_start_of(word) != rank->start) return;
    enum keep_state state = keep_state_of(word);
    if (state == KEEP_FAILED) has_failed(rank, kept->wait_status);
    if (state < KEEP_RUNS) return;
    rank->proc.pid = kept->pid;
    if (state == KEEP_RUNS) return;
    rank->proc.err.aborts = kept->aborts;
    has_ended(rank, kept->wait_status);
    rank->proc.lingering = state != KEEP_GONE;
}

static void look_all(struct job *job)
{
    for (uint32_t i = 0; i < job->count; i++)
        if (job->ranks[i].host) look(&job->ranks[i]);
}

static void keeper_is_lost(struct job *job)
{
    ev_io_stop(job->setup.loop, &job->keeper);
    job->setup.keep->lost = true;
    for (uint32_t i = 0; i < job->count; i++) {
        struct proc *proc = &job->ranks[i].proc;
        proc->alive = proc->news = proc->lingering = false;
    }
    if (!job->ending)
        job_message(job->setup.err, "the keeper of the ranks was killed; they "
                                    "ended with it");
    job->final = true;
    job_end(job, EXIT_FAILURE);
}

static void keeper_came(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    (void)events;
    struct job *job = io->data;
    char bell;
    ssize_t size;
    do {
        size = recv(job->setup.keep->fd, &bell, 1, MSG_DONTWAIT);
    } while (size > 0 || (size < 0 && errno == EINTR));
    if (size == 0 || errno != EAGAIN)
        keeper_is_lost(job);
    else
        look_all(job);
}

/* ----------------------------------------------------- taking them over */

/* False: this start of the job has not had it. */
static bool adopt(struct rank *rank)
{
    struct keep_rank *kept = kept_of(rank);
    uint32_t word = atomic_load(&kept->word);
    if (keep_state_of(word) == KEEP_NONE ||
        kept->restart != rank->job->setup.restart)
        return false;
    rank->start = keep_start_of(word);
    rank->newcomer = kept->newcomer;
    rank->spare = rank->spare && !kept->released;
    rank->dismissed = kept->dismissed;
    rank->drained = kept->drained;
    rank->good = kept->good;
    rank->respawns = kept->respawn_count;
    rank->delay = kept->delay;
    rank->started = kept->started;
    rank->proc.pid = kept->pid;
    rank->proc.wait_status = kept->wait_status;
    rank->proc.alive = kept->handled != rank->start;
    rank->proc.lingering = keep_state_of(word) == KEEP_ENDED;
    if (!rank->proc.alive && kept->respawns) {
        ev_timer_set(&rank->respawn, rank->delay, 0.);
        ev_timer_start(rank->job->setup.loop, &rank->respawn);
    }
    return true;
}

static void go_on(struct job *job, const struct keep_job *was)
{
    job->again = was->again;
    job->final |= was->final;
    job->aborted = was->aborted;
    job->told = was->told;
    job->abort_code = was->abort_code;
    job->abort_rank = was->abort_rank;
    job->first_failure = was->first_failure;
    job->interrupts = was->interrupts;
    job->status = was->status;
    if (was->ending) job_end(job, was->status);
}

void kept_begin(struct job *job)
{
    const struct keep_table *table = job->setup.keep->table;
    uint32_t alive = 0, missing = 0;
    for (uint32_t i = 0; i < job->count; i++) {
        struct rank *rank = &job->ranks[i];
        if (adopt(rank)) {
            alive += rank->proc.alive;
        } else {
            missing++;
            if (!job->was.ending && !table->late) (void)rank_start(rank);
        }
    }
    if (job->was.noted) {
        job_message(job->setup.err,
                    "process %d goes on with the job of a launcher that was "
                    "killed: %u of its ranks are there",
                    (int)getpid(), alive);
        go_on(job, &job->was);
    }
    if (table->late && missing > 0) job_end(job, EXIT_FAILURE);
    look_all(job);
}

/* After each turn. Nobody came for the grace: whatever has not ended does. */
void kept_settle(struct job *job)
{
    const struct keep_table *table = job->setup.keep->table;
    bool over = job->started;
    for (uint32_t i = 0; i < job->count; i++)
        over = over && rank_is_gone(&job->ranks[i]);
    if (table->late && job->started && !over && !job->ending) {
        job->final = true;
        job_message(job->setup.err,
                    "no launcher came for %u s (--master-grace); ending the "
                    "job",
                    table->grace);
        job_end(job, EXIT_FAILURE);
    }
    note_job(job);
    for (uint32_t i = 0; i < job->count; i++)
        if (job->ranks[i].host) note_rank(&job->ranks[i]);
}

bool kept_goes_on(const struct job *job)
{
    return job->setup.keep && job->was.noted;
}

bool kept_has_ranks(const struct keep *keep)
{
    for (uint32_t i = 0; i < keep->table->count; i++)
        if (keep_state_of(atomic_load(&keep->table->ranks[i].word)) ==
            KEEP_RUNS)
            return true;
    return false;
}

void kept_open(struct job *job)
{
    struct keep *keep = job->setup.keep;
    struct keep_job *note = &keep->table->job;
    if (note->noted && note->restart == job->setup.restart) job->was = *note;
    *note = job->was;
    note->restart = job->setup.restart;
    note->noted = true;
    job->final = keep->table->late;
    ev_io_init(&job->keeper, keeper_came, keep->fd, EV_READ);
    job->keeper.data = job;
    ev_io_start(job->setup.loop, &job->keeper);
}

bool kept_close(struct job *job)
{
    ev_io_stop(job->setup.loop, &job->keeper);
    return atomic_load(&job->setup.keep->table->lost) != 0;
}
