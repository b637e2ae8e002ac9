/* job_host.c - hosts of a job, and reports of their agents. */
#include "../master/server/master_server.h"
#include "../base/host.h"
#include "host_room.h"
#include "job_rank.h"
#include "reach.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_ready(void *user, const char *master)
{
    struct host *host = user;
    host->ready = true;
    host->master = memory_text(master);
}

/* No frame about it follows. */
static void rank_is_over(struct rank *rank)
{
    rank->proc.lingering = false;
    stream_close(&rank->proc.out);
    stream_close(&rank->proc.err);
}

/* Its ranks are dead, or die when the agent notices the loss. */
static void on_lost(void *user, const char *why)
{
    struct host *host = user;
    struct job *job = host->job;
    host->lost = true;
    if (job->started) job->host_lost_at = ev_now(job->setup.loop);
    if (!job->ending)
        job_message(
            job->setup.err, "host %s is %s: %s", host->name,
            job->started || job->setup.restart == 0 ? "lost" : "left out", why);
    for (uint32_t i = 0; i < job->count; i++) {
        struct rank *rank = &job->ranks[i];
        if (rank->host != host) continue;
        rank_is_over(rank);
        if (!rank->proc.alive) continue;
        rank->proc.alive = false;
        rank->proc.news = true;
        rank->host_lost = true;
        rank_ended(rank);
    }
    if (job->started) return;
    if (job->setup.restart == 0) job_end(job, EXIT_FAILURE);
    if (job->ending) return;
    job->unreached = true;
    hosts_add(job->setup.left_out, host->name);
}

/* Tells the host that an output of ours has no reader; a local rank would
 * notice by itself. */
static void close_output(struct rank *rank, bool is_error)
{
    if (rank->closing[is_error]) return;
    rank->closing[is_error] = true;
    remote_send(rank->host->remote, LINK_CLOSE, rank->index,
                is_error ? "2" : "1", 1);
}

static bool on_output(struct rank *rank, const struct link_frame *frame)
{
    bool is_error = frame->type == LINK_ERR;
    struct stream *stream = is_error ? &rank->proc.err : &rank->proc.out;
    if (!stream->sink) return true;
    if (sink_has_no_reader(stream->sink)) close_output(rank, is_error);
    if (stream_offer(stream, frame->bytes, frame->size)) return true;
    remote_wait(rank->host->remote, stream->sink);
    return false;
}

/* That of an exit or of a signal, and of a failure in the place of any other.
 */
static int wait_status_of(int64_t number)
{
    int status = number >= 0 && number <= UINT16_MAX ? (int)number : -1;
    if (status >= 0 && WIFEXITED(status)) return WEXITSTATUS(status) << 8;
    return status >= 0 && WIFSIGNALED(status) ? status : EXIT_FAILURE << 8;
}

static void on_ended(struct rank *rank, struct link_texts *texts)
{
    int64_t status, left;
    if (!rank->proc.alive || !link_get_number(texts, &status)) return;
    rank->proc.left = link_get_number(texts, &left) && left;
    rank->proc.wait_status = wait_status_of(status);
    rank->proc.alive = false;
    rank->proc.news = true;
    rank->proc.lingering = true;
    rank_ended(rank);
}

static void on_started(struct rank *rank, struct link_texts *texts)
{
    int64_t pid, host;
    if (!link_get_number(texts, &pid)) return;
    rank->proc.pid = rank->peer = (pid_t)pid;
    if (!link_get_number(texts, &host)) return;
    rank->host_id = (uint64_t)host;
    const char *processors = link_get(texts);
    if (processors) rank_report_binding(rank, processors);
}

static void on_failed(struct rank *rank, struct link_texts *texts)
{
    struct job *job = rank->job;
    int64_t status = EXIT_FAILURE;
    if (!rank->proc.alive) return;
    if (link_get_number(texts, &status) && (status < 1 || status > UINT8_MAX))
        status = EXIT_FAILURE;
    const char *text = link_get(texts);
    if (!job->ending)
        job_message(job->setup.err, "%s (on %s)", text ? text : "?",
                    rank->host->name);
    rank->proc.alive = false;
    rank_is_over(rank);
    rank_ended(rank);
    if (!rank->newcomer || job->setup.options->join)
        job_end(job, (int)status);
    else if (!rank->spare)
        rank_not_started(rank);
}

static void on_seen(const struct job *job, struct link_texts *texts)
{
    int64_t id, evidence;
    if (!job->setup.server || !link_get_number(texts, &id) ||
        !link_get_number(texts, &evidence))
        return;
    if (evidence >= EVIDENCE_NONE && evidence < EVIDENCE_COUNT)
        master_server_evidence(job->setup.server, (uint64_t)id,
                               (enum evidence)evidence);
}

static void agents_tell(struct job *job, enum link_type type,
                        const int64_t numbers[3])
{
    struct link_texts texts = {0};
    for (size_t i = 0; i < 3; i++) link_put_number(&texts, numbers[i]);
    for (uint32_t i = 0; i < job->host_count; i++) {
        const struct host *h = &job->hosts[i];
        if (h->remote && h->ready && !h->lost)
            remote_send(h->remote, type, 0, texts.bytes, texts.size);
    }
    free(texts.bytes);
}

void job_look(struct job *job, uint64_t id, uint64_t host, uint32_t pid)
{
    agents_tell(job, LINK_LOOK, (int64_t[]){(int64_t)id, (int64_t)host, pid});
}

/* The rank whose process, or one of whose group, it is or was; NULL: unknown.
 */
static struct rank *rank_of(struct job *job, uint64_t host, uint32_t pid)
{
    pid_t group = host == host_id() ? getpgid((pid_t)pid) : -1;
    for (uint32_t i = 0; i < job->count; i++) {
        struct rank *rank = &job->ranks[i];
        if (rank->host_id != host) continue;
        if (!rank->proc.alive && !rank->proc.news) continue;
        if (rank->peer == (pid_t)pid) return rank;
        if (!rank->host->remote &&
            (rank->proc.pid == (pid_t)pid || rank->proc.pid == group))
            return rank;
    }
    return NULL;
}

static void retire(struct job *job, struct rank *rank, uint64_t host,
                   uint32_t pid, bool back)
{
    int64_t ms = job->setup.options->deadline_ns / PCCL_MS;
    if (ms == 0) ms = DEADLINE_DEFAULT_MS;
    if (back && !job->evicts) return;
    job->evicts = true;
    if (rank && !rank->host->remote) {
        if (!rank->proc.alive) return;
        rank->evicted = !back;
        if (back)
            proc_keep(&rank->proc);
        else
            proc_retire(&rank->proc, (double)ms / 1000);
        return;
    }
    agents_tell(job, LINK_EVICT,
                (int64_t[]){(int64_t)host, pid, back ? -1 : ms});
}

void job_process(struct job *job, uint64_t host, uint32_t pid,
                 enum process_news news)
{
    struct rank *rank = rank_of(job, host, pid);
    if (news != PROCESS_CUT) retire(job, rank, host, pid, news == PROCESS_CAME);
    if (rank && news == PROCESS_CAME) rank->peer = (pid_t)pid;
    if (rank && news == PROCESS_CUT) rank->cut = true;
}

static bool on_frame(void *user, const struct link_frame *frame)
{
    struct host *host = user;
    struct job *job = host->job;
    struct link_texts texts = link_texts_of(frame);
    int64_t number = 0;
    if (frame->type == LINK_SEEN) {
        on_seen(job, &texts);
        return true;
    }
    if (frame->rank >= job->count) return true;
    struct rank *rank = &job->ranks[frame->rank];
    if (rank->host != host) return true;
    switch (frame->type) {
    case LINK_STARTED:
        on_started(rank, &texts);
        break;
    case LINK_FAILED:
        on_failed(rank, &texts);
        break;
    case LINK_OUT:
    case LINK_ERR:
        return on_output(rank, frame);
    case LINK_TAKEN:
        input_taken(&rank->input, link_get_number(&texts, &number) && number);
        break;
    case LINK_ENDED:
        on_ended(rank, &texts);
        break;
    case LINK_EVICTS:
        rank->evicted = link_get_number(&texts, &number) && number;
        break;
    case LINK_GONE:
        rank_is_over(rank);
        break;
    default:
        break;
    }
    return true;
}

static bool host_call(struct host *host, const struct link_texts *addresses,
                      bool fixed, const struct host_load *load)
{
    struct job *job = host->job;
    char error[MESSAGE_SIZE / 2];
    struct remote_setup setup = {
        .loop = job->setup.loop,
        .guard_fd = job->setup.guard->fd,
        .host = host->name,
        .options = job->setup.options,
        .err = job->setup.err,
        .files = job->setup.files,
        .fixed = fixed,
        .addresses = addresses,
        .load = *load,
        .events = {on_ready, on_lost, on_frame, host},
    };
    host->remote = remote_open(&setup, error, sizeof error);
    if (!host->remote)
        job_message(job->setup.err, "host %s: %s", host->name, error);
    return host->remote != NULL;
}

/* Addresses at which agents may reach the coordinator: the user's choice, or
 * all addresses of this host. */
static bool addresses_make(const struct job *job, struct link_texts *addresses)
{
    struct address master;
    const struct options *options = job->setup.options;
    bool fixed = options->join ||
                 (options->has_listen && !address_is_any(&options->listen));
    if (fixed)
        link_put(addresses, job->setup.master);
    else if (address_parse(job->setup.master, 0, &master))
        reach_list(master.port, addresses);
    return fixed;
}

/* Spares wait for a line of their input, and one rank may read ours. */
static struct host_load load_of(const struct job *job, uint32_t host)
{
    struct host_load load = {job->placement.locals[host], 1};
    for (uint32_t i = job->setup.options->rank_count; i < job->count; i++)
        load.inputs += job->placement.ranks[i].host == host;
    return load;
}

static bool local_has_room(const struct job *job, const struct host_load *load)
{
    char error[MESSAGE_SIZE / 2];
    struct host_room room = host_room_here();
    if (host_has_room(&room, load, error, sizeof error)) return true;
    job_message(job->setup.err, "%s", error);
    return false;
}

bool hosts_open(struct job *job)
{
    struct link_texts addresses = {0};
    const struct options *options = job->setup.options;
    bool good = true;
    placement_make(&job->placement, job->setup.hosts, options->per_host,
                   job->count);
    job->host_count = job->placement.host_count;
    job->hosts = memory_get(job->host_count, sizeof *job->hosts);
    bool fixed = addresses_make(job, &addresses);
    for (uint32_t i = 0; i < job->host_count && good; i++) {
        struct host *host = &job->hosts[i];
        host->job = job;
        host->name = job->placement.hosts[i];
        struct host_load load = load_of(job, i);
        host->ready = host_is_local(host->name);
        host->shown = host->ready ? job->host : host->name;
        good = host->ready ? local_has_room(job, &load)
                           : host_call(host, &addresses, fixed, &load);
    }
    free(addresses.bytes);
    return good;
}

/* Local ranks connect to the coordinator by the same address as remote ranks,
 * because the coordinator announces a rank under its source address. */
static void master_choose(struct job *job)
{
    struct address address;
    const char *common = job->setup.master;
    for (uint32_t i = 0; i < job->host_count; i++) {
        const char *seen = job->hosts[i].master;
        if (!seen || !address_parse(seen, 0, &address)) continue;
        if (!reach_is_ours(&address)) continue;
        common = seen;
        break;
    }
    for (uint32_t i = 0; i < job->host_count; i++)
        if (!job->hosts[i].master) job->hosts[i].master = memory_text(common);
}

bool hosts_are_ready(struct job *job)
{
    for (uint32_t i = 0; i < job->host_count; i++)
        if (!job->hosts[i].ready) return false;
    master_choose(job);
    return true;
}

bool hosts_are_known(const struct job *job)
{
    for (uint32_t i = 0; i < job->host_count; i++)
        if (!job->hosts[i].ready && !job->hosts[i].lost) return false;
    return true;
}

void hosts_give_up_late(struct job *job)
{
    for (uint32_t i = 0; i < job->host_count; i++)
        if (!job->hosts[i].ready && job->hosts[i].remote)
            remote_give_up(job->hosts[i].remote);
}

void hosts_settle(struct job *job)
{
    for (uint32_t i = 0; i < job->host_count; i++)
        if (job->hosts[i].remote) remote_settle(job->hosts[i].remote);
}

bool hosts_are_gone(struct job *job)
{
    bool gone = true;
    for (uint32_t i = 0; i < job->host_count; i++) {
        struct host *host = &job->hosts[i];
        if (!host->remote) continue;
        remote_finish(host->remote);
        gone = gone && remote_is_gone(host->remote);
    }
    return gone;
}

void hosts_give_up(struct job *job)
{
    for (uint32_t i = 0; i < job->count; i++) {
        struct rank *rank = &job->ranks[i];
        if (rank->host && rank->host->remote && !proc_is_gone(&rank->proc))
            remote_give_up(rank->host->remote);
    }
}

void hosts_close(struct job *job)
{
    for (uint32_t i = 0; i < job->host_count; i++) {
        if (job->hosts[i].remote) remote_close(job->hosts[i].remote);
        free(job->hosts[i].master);
    }
    free(job->hosts);
    placement_free(&job->placement);
}
