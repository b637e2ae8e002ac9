/* stage_work.c - a worker: serves what trainers ask for, adds up its stage. */
#include "stage_run.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_COUNT = 3, TAG_SUM = 4, TAG_POWER = 16, TAG_SPARTA = 32 };

/* A request of a trainer. */
struct job {
    struct job *next;
    uint64_t from;
    struct stage_header header;
    unsigned char *texts;
    float *in, *gradient, *answer;
    int open; /* transfers under way */
    bool computed, lost;
};

struct stage_work {
    struct job *jobs; /* in the order of arrival */
    float *own, *sum; /* part.count + 1 numbers: the last one counts */
    int samples;      /* whose gradient this worker has, */
    double loss;      /* and, in the last stage, their losses */
    uint64_t ended[SEATS_MOST]; /* trainers that have ended the step */
    size_t ended_count;
    uint64_t gone[SEATS_MOST]; /* the last members that were lost */
    size_t gone_count;
    pcclPowerSgd_t *power;
    pcclSparta_t *sparta;
    pcclTensorInfo_t *state; /* what a newcomer of the stage gets */
    size_t state_count;
    size_t state_open;
    bool state_lost;
    double moved, tokens; /* since they were told */
};

/* ---------------------------------------------------------------- events */

static void free_job(struct job *job)
{
    free(job->texts);
    free(job->in);
    free(job->gradient);
    free(job->answer);
    free(job);
}

/* Those that are over, and whose memory is the program's again. */
static void sweep(struct stage_work *w)
{
    for (struct job **at = &w->jobs; *at;) {
        struct job *job = *at;
        if (job->open > 0 || !(job->computed || job->lost)) {
            at = &job->next;
            continue;
        }
        *at = job->next;
        free_job(job);
    }
}

static size_t payload(const struct stage_run *run, int samples)
{
    return (size_t)samples * (size_t)run->args.context *
           stage_part_columns(&run->part);
}

static void expect(struct stage_run *run, struct job *job, float **to, int key)
{
    const size_t count = payload(run, job->header.samples);
    *to = stage_allocate(count, sizeof **to);
    pcclResult_t rc = pcclExpectBulk(run->comm, job->from,
                                     job->header.request * KEYS + (unsigned)key,
                                     *to, count * sizeof **to);
    if (rc == pcclSuccess)
        job->open++;
    else if (rc == pcclRankConnectionLost)
        job->lost = true;
    else
        stage_check(run, rc, "expecting an activation");
}

static void take_request(struct stage_run *run, const pcclEvent_t *event,
                         const struct stage_header *header)
{
    struct stage_work *w = run->work;
    struct job **last = &w->jobs;
    const size_t text = (size_t)run->args.context + 1;
    if (header->samples < 1 || header->samples > run->args.micro ||
        event->body_size != (size_t)header->samples * text)
        stage_fail("a trainer has other options than this worker");
    struct job *job = stage_allocate(1, sizeof *job);
    job->from = event->member;
    job->header = *header;
    job->texts = stage_allocate(event->body_size, 1);
    memcpy(job->texts, event->body, event->body_size);
    if (run->role > 0) expect(run, job, &job->in, KEY_IN);
    if (header->kind == KIND_BACKWARD)
        expect(run, job, &job->gradient, KEY_GRADIENT);
    while (*last) last = &(*last)->next;
    *last = job;
}

static void take_transfer(struct stage_work *w, const pcclEvent_t *event)
{
    if (event->key >= STAGE_STATE_KEY) {
        w->state_open--;
        if (event->result != pcclSuccess) w->state_lost = true;
        return;
    }
    for (struct job *job = w->jobs; job; job = job->next) {
        if (job->from != event->member ||
            job->header.request != event->key / KEYS || job->open == 0)
            continue;
        job->open--;
        if (event->result != pcclSuccess) job->lost = true;
        return;
    }
}

/* The next event, if one comes in that time. */
static void take_event(struct stage_run *run, int milliseconds)
{
    struct stage_work *w = run->work;
    struct stage_header header;
    pcclEvent_t event;
    stage_check(run, pcclTakeEvent(run->comm, milliseconds, &event),
                "an event");
    switch (event.kind) {
    case pcclEventMessage:
        if (event.header_size != sizeof header) stage_fail("a strange message");
        memcpy(&header, event.header, sizeof header);
        if (header.kind != KIND_END)
            take_request(run, &event, &header);
        else if (w->ended_count < SEATS_MOST)
            w->ended[w->ended_count++] = event.member;
        break;
    case pcclEventBulkReceived:
    case pcclEventBulkSent:
        take_transfer(w, &event);
        break;
    case pcclEventMemberLost:
        w->gone[w->gone_count++ % SEATS_MOST] = event.member;
        for (struct job *job = w->jobs; job; job = job->next)
            if (job->from == event.member) job->lost = true;
        break;
    default:
        break;
    }
    (void)pcclReleaseEvent(run->comm, &event);
    sweep(w);
}

/* ------------------------------------------------------------ computation */

static void answer(struct stage_run *run, struct job *job)
{
    struct stage_header header = job->header;
    header.kind = KIND_ANSWER;
    pcclResult_t rc;
    while ((rc = pcclPostMessage(run->comm, job->from, &header, sizeof header,
                                 NULL, 0)) == pcclPendingAsyncOps)
        take_event(run, -1);
    if (rc == pcclRankConnectionLost) return;
    stage_check(run, rc, "answering");
    if (!job->answer) return;
    const size_t size = payload(run, header.samples) * sizeof *job->answer;
    rc = pcclSendBulk(run->comm, job->from, header.request * KEYS + KEY_ANSWER,
                      job->answer, size);
    if (rc == pcclRankConnectionLost) return;
    stage_check(run, rc, "answering");
    job->open++;
    run->work->moved += (double)size;
    run->work->tokens += (double)header.samples * run->args.context;
}

static bool dies(const struct stage_run *run, int rank, int step)
{
    return run->launched == rank && run->step == step;
}

static void compute(struct stage_run *run, struct job *job)
{
    struct stage_work *w = run->work;
    struct stage_part *part = &run->part;
    const unsigned char *texts[MICRO_MOST];
    const size_t n = (size_t)job->header.samples;
    const int kind = job->header.kind;
    const bool tail = stage_part_is_last(part);
    if (tail != (kind == KIND_LOSS || kind == KIND_FINISH))
        stage_fail("a trainer has other stages than this worker");
    for (size_t i = 0; i < n; i++)
        texts[i] = job->texts + i * ((size_t)run->args.context + 1);
    if (kind == KIND_FORWARD || (kind != KIND_LOSS && run->role > 0))
        job->answer = stage_allocate(payload(run, job->header.samples),
                                     sizeof *job->answer);
    if (kind == KIND_FORWARD)
        stage_part_forward(part, texts, n, job->in, job->answer);
    else if (kind == KIND_LOSS)
        job->header.loss = stage_part_loss(part, texts, n, job->in);
    else if (kind == KIND_FINISH)
        job->header.loss =
            stage_part_finish(part, texts, n, job->in, job->answer);
    else
        stage_part_backward(part, texts, n, job->in, job->gradient,
                            job->answer);
    if (kind == KIND_FINISH || kind == KIND_BACKWARD)
        w->samples += job->header.samples;
    if (kind == KIND_FINISH) w->loss += job->header.loss;
    job->computed = true;
    job->open++; /* stays, whatever comes meanwhile */
    answer(run, job);
    job->open--;
    if (w->samples > 0 && dies(run, run->args.die_rank, run->args.die_step))
        (void)raise(SIGKILL);
}

static bool is_among(const uint64_t *ids, size_t count, uint64_t id)
{
    for (size_t i = 0; i < count; i++)
        if (ids[i] == id) return true;
    return false;
}

static bool all_ended(const struct stage_run *run)
{
    const struct stage_work *w = run->work;
    uint64_t trainers[SEATS_MOST];
    const size_t count = stage_run_list(run, TRAINER, trainers);
    const size_t gone = w->gone_count < SEATS_MOST ? w->gone_count : SEATS_MOST;
    for (size_t i = 0; i < count; i++)
        if (!is_among(w->ended, w->ended_count, trainers[i]) &&
            !is_among(w->gone, gone, trainers[i]))
            return false;
    return true;
}

static struct job *next_job(struct stage_work *w)
{
    for (struct job *job = w->jobs; job; job = job->next)
        if (!job->computed && !job->lost && job->open == 0) return job;
    return NULL;
}

/* --------------------------------------------------------------- the sum */

static pcclResult_t scoped_sum(struct stage_run *run, uint64_t tag, float *from,
                               float *to, size_t count)
{
    uint64_t ids[SEATS_MOST];
    pcclCollective_t sum = {.size = sizeof sum,
                            .kind = pcclKindAllReduce,
                            .tag = tag,
                            .sendbuf = from,
                            .recvbuf = to,
                            .count = count,
                            .datatype = pcclFloat,
                            .op = pcclSum,
                            .members = ids};
    sum.member_count = stage_run_list(run, run->role, ids);
    return pcclCollective(&sum, run->comm, NULL);
}

/* The mean by PowerSGD: each worker's own mean, weighed by its samples. */
static pcclResult_t powersgd(struct stage_run *run)
{
    struct stage_work *w = run->work;
    float *at[GPT_TENSORS_MOST], *next = w->sum;
    uint64_t ids[SEATS_MOST];
    const size_t workers = stage_run_list(run, run->role, ids);
    for (size_t i = 0; i < run->part.tensor_count; i++) {
        at[i] = next;
        next += run->part.tensors[i].rows * run->part.tensors[i].columns;
    }
    for (size_t i = 0; i < run->part.count; i++)
        w->sum[i] = w->samples ? w->own[i] / (float)w->samples : 0;
    stage_check(run, pcclPowerSgdSetScope(w->power, ids, workers),
                "pcclPowerSgdSetScope");
    return pcclPowerSgdReduce(w->power, at, (float)w->samples, run->comm, NULL);
}

/* Out of place: what a worker has stays for another try. */
static bool add_up(struct stage_run *run)
{
    struct stage_work *w = run->work;
    const size_t count = run->part.count;
    pcclResult_t rc;
    stage_part_pack(&run->part, w->own);
    w->own[count] = (float)w->samples;
    if (w->power)
        rc = scoped_sum(run, TAG_COUNT, w->own + count, w->sum + count, 1);
    else
        rc = scoped_sum(run, TAG_SUM, w->own, w->sum, count + 1);
    bool whole = rc == pcclSuccess && w->sum[count] == (float)run->args.batch;
    if (whole && w->power) {
        rc = powersgd(run);
        whole = rc == pcclSuccess;
    }
    if (rc != pcclRankConnectionLost) stage_check(run, rc, "adding up");
    for (size_t i = 0; whole && !w->power && i < count; i++)
        w->sum[i] /= (float)run->args.batch;
    return whole;
}

bool stage_work_serve(struct stage_run *run)
{
    struct stage_work *w = run->work;
    for (;;) {
        struct job *job = next_job(w);
        if (job)
            compute(run, job);
        else if (all_ended(run))
            break;
        take_event(run, job ? 0 : -1);
    }
    w->ended_count = 0;
    /* Who was to die in mid-step, and was asked for nothing, dies here, too. */
    if (dies(run, run->args.end_rank, run->args.end_step) ||
        dies(run, run->args.die_rank, run->args.die_step))
        (void)raise(SIGKILL);
    return add_up(run);
}

void stage_work_forget(struct stage_run *run)
{
    stage_part_clear(&run->part);
    run->work->samples = 0;
    run->work->loss = 0;
}

void stage_work_update(struct stage_run *run)
{
    struct stage_work *w = run->work;
    uint64_t ids[SEATS_MOST];
    stage_check(run, stage_part_update(&run->part, w->sum), "the update");
    stage_work_forget(run);
    if (!w->sparta) return;
    const size_t workers = stage_run_list(run, run->role, ids);
    stage_check(run, pcclSpartaSetScope(w->sparta, ids, workers),
                "pcclSpartaSetScope");
    pcclResult_t rc =
        pcclSpartaStep(w->sparta, run->part.weights, NULL, run->comm, NULL);
    /* Who is lost is missed in the next step, which makes up for it. */
    if (rc != pcclRankConnectionLost) stage_check(run, rc, "pcclSpartaStep");
}

/* ------------------------------------------------------------- newcomers */

static void list_state(struct stage_run *run)
{
    struct stage_work *w = run->work;
    struct stage_part *part = &run->part;
    size_t moments = 0, factors = 0, rounds = 0, at = part->tensor_count;
    stage_check(run, pcclOptimizerListState(part->optimizer, NULL, 0, &moments),
                "listing");
    if (w->power)
        stage_check(run, pcclPowerSgdListState(w->power, NULL, 0, &factors),
                    "listing");
    if (w->sparta)
        stage_check(run, pcclSpartaListState(w->sparta, NULL, 0, &rounds),
                    "listing");
    w->state_count = at + moments + factors + rounds;
    w->state = stage_allocate(w->state_count, sizeof *w->state);
    for (size_t i = 0; i < at; i++)
        w->state[i] = (pcclTensorInfo_t){.name = part->tensors[i].name,
                                         .data = part->weights[i],
                                         .count = part->tensors[i].rows *
                                                  part->tensors[i].columns,
                                         .datatype = pcclFloat};
    stage_check(run,
                pcclOptimizerListState(part->optimizer, w->state + at, moments,
                                       &moments),
                "listing");
    at += moments;
    if (w->power)
        stage_check(
            run,
            pcclPowerSgdListState(w->power, w->state + at, factors, &factors),
            "listing");
    at += factors;
    if (w->sparta)
        stage_check(
            run, pcclSpartaListState(w->sparta, w->state + at, rounds, &rounds),
            "listing");
}

static size_t bytes_of(const pcclTensorInfo_t *info)
{
    /* What the training library's states have: float, double, uint64_t. */
    return info->count * (info->datatype == pcclFloat ? 4 : 8);
}

/* All transfers with a member; what trainers ask meanwhile waits. */
static bool transfer(struct stage_run *run, uint64_t with, bool gives)
{
    struct stage_work *w = run->work;
    w->state_lost = false;
    for (size_t i = 0; i < w->state_count && !w->state_lost; i++) {
        const uint64_t key = STAGE_STATE_KEY + i;
        const size_t size = bytes_of(&w->state[i]);
        void *data = w->state[i].data;
        pcclResult_t rc =
            gives ? pcclSendBulk(run->comm, with, key, data, size)
                  : pcclExpectBulk(run->comm, with, key, data, size);
        if (rc == pcclSuccess)
            w->state_open++;
        else if (rc == pcclRankConnectionLost)
            w->state_lost = true;
        else
            stage_check(run, rc, "the stage's state");
    }
    while (w->state_open > 0) take_event(run, -1);
    return !w->state_lost;
}

void stage_work_give(struct stage_run *run, uint64_t to)
{
    (void)transfer(run, to, true); /* a newcomer that is lost needs nothing */
}

void stage_work_get(struct stage_run *run, uint64_t from)
{
    if (!transfer(run, from, false))
        stage_fail("the worker that gave stage %d's state was lost: start this "
                   "one again",
                   run->role);
}

/* ---------------------------------------------------- beginning and end */

void stage_work_begin(struct stage_run *run)
{
    struct stage_work *w = stage_allocate(1, sizeof *w);
    const struct stage_args *args = &run->args;
    const struct stage_part *part = &run->part;
    run->work = w;
    w->own = stage_allocate(part->count + 1, sizeof *w->own);
    w->sum = stage_allocate(part->count + 1, sizeof *w->sum);
    if (args->power_rank > 0) {
        const pcclPowerSgdOptions_t options = {.size = sizeof options,
                                               .rank =
                                                   (uint32_t)args->power_rank,
                                               .seed = (uint64_t)args->seed,
                                               .tag = TAG_POWER};
        stage_check(run,
                    pcclPowerSgdCreate(part->tensors, part->tensor_count,
                                       &options, &w->power),
                    "pcclPowerSgdCreate");
    }
    if (args->sparta > 0) {
        const pcclSpartaOptions_t options = {.size = sizeof options,
                                             .parts = (uint32_t)args->sparta,
                                             .every = 5,
                                             .seed = (uint64_t)args->seed,
                                             .tag = TAG_SPARTA};
        stage_check(run,
                    pcclSpartaCreate(part->tensors, part->tensor_count,
                                     &options, &w->sparta),
                    "pcclSpartaCreate");
    }
    list_state(run);
}

void stage_work_end(struct stage_run *run)
{
    struct stage_work *w = run->work;
    /* Answers that nobody has fetched yet are the library's. */
    while (w->jobs) take_event(run, -1);
    (void)pcclPowerSgdDestroy(w->power);
    (void)pcclSpartaDestroy(w->sparta);
    free(w->state);
    free(w->own);
    free(w->sum);
    free(w);
}

void stage_work_tell(struct stage_run *run, struct stage_tally *tally)
{
    struct stage_work *w = run->work;
    tally->loss = w->loss;
    tally->moved = w->moved;
    tally->tokens = w->tokens;
    w->moved = w->tokens = 0;
}
