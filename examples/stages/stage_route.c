/* stage_route.c - a trainer: leads micro-batches through the stages.
 *
 * It keeps what goes into each stage, and what comes back to it, until the step
 * is over: so what a lost worker has added can be computed again by another
 * one, and nothing else. */
#include "stage_run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A worker, in the queue of its stage: newcomers come last. */
struct worker {
    uint64_t id;
    int stage;
    bool lost;
    int load;       /* requests under way */
    double seconds; /* a request takes; 0: not known yet */
};

struct micro {
    int first, samples; /* of the step's batch; of what is held out */
    bool held;
    bool busy;                    /* with a request */
    int front;                    /* the next stage to go forward through */
    uint64_t holder[STAGES_MOST]; /* who has added its gradient; 0: nobody */
    float *in[STAGES_MOST];       /* of each stage but the first */
    float *gradient[STAGES_MOST]; /* of the output of each but the last */
    double loss;
};

struct request {
    struct request *next;
    struct stage_header header;
    struct micro *micro;
    int stage;
    struct worker *worker;
    float *answer;
    int open; /* transfers under way */
    bool answered, lost;
    double begin;
};

struct stage_route {
    struct worker workers[4 * SEATS_MOST];
    size_t worker_count;
    struct micro *micros;
    size_t micro_count;
    struct request *requests;
    uint64_t last_request;
    double moved, tokens;
    bool stuck; /* a stage has no worker */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* --------------------------------------------------------------- workers */

static struct worker *find(struct stage_route *r, uint64_t id)
{
    for (size_t i = 0; i < r->worker_count; i++)
        if (r->workers[i].id == id) return &r->workers[i];
    return NULL;
}

static void enqueue(struct stage_run *run)
{
    struct stage_route *r = run->route;
    size_t kept = 0;
    for (size_t i = 0; i < r->worker_count; i++)
        if (!r->workers[i].lost) r->workers[kept++] = r->workers[i];
    r->worker_count = kept;
    for (size_t i = 0; i < run->seat_count; i++) {
        const struct seat *s = &run->seats[i];
        if (s->stage == TRAINER || find(r, s->id)) continue;
        r->workers[r->worker_count++] =
            (struct worker){.id = s->id, .stage = s->stage};
    }
}

/* What it has added is gone with it. */
static void lose(struct stage_route *r, struct worker *worker)
{
    worker->lost = true;
    for (size_t i = 0; i < r->micro_count; i++)
        for (int s = 0; s < STAGES_MOST; s++)
            if (r->micros[i].holder[s] == worker->id)
                r->micros[i].holder[s] = 0;
    for (struct request *q = r->requests; q; q = q->next)
        if (q->worker == worker) q->lost = true;
}

/* Who is to answer first, by the measured times: of equal ones the first in the
 * queue. One that is not known yet counts like the slowest. */
static struct worker *choose(struct stage_route *r, int stage)
{
    struct worker *best = NULL;
    double slowest = 0, least = 0;
    for (size_t i = 0; i < r->worker_count; i++) {
        const struct worker *w = &r->workers[i];
        if (w->stage == stage && !w->lost && w->seconds > slowest)
            slowest = w->seconds;
    }
    for (size_t i = 0; i < r->worker_count; i++) {
        struct worker *w = &r->workers[i];
        if (w->stage != stage || w->lost) continue;
        double takes = w->seconds > 0 ? w->seconds : slowest;
        if (!(takes > 0)) takes = 1;
        takes *= w->load + 1;
        if (best && takes >= least) continue;
        best = w;
        least = takes;
    }
    return best;
}

/* -------------------------------------------------------------- requests */

static size_t payload(const struct stage_run *run, const struct micro *m)
{
    const struct stage_args *a = &run->args;
    return (size_t)m->samples * (size_t)a->context *
           (size_t)(a->subspace ? a->subspace : a->width);
}

/* The lines of text of a micro-batch, one after another. */
static size_t write_texts(const struct stage_run *run, const struct micro *m,
                          unsigned char *to)
{
    const size_t text = (size_t)run->args.context + 1;
    for (int i = 0; i < m->samples; i++) {
        const unsigned char *sample =
            m->held ? gpt_text_held(&run->text, m->first + i, run->args.held)
                    : gpt_text_sample(&run->text, (uint64_t)run->args.seed,
                                      run->step, m->first + i);
        memcpy(to + (size_t)i * text, sample, text);
    }
    return (size_t)m->samples * text;
}

static void send_part(struct stage_run *run, struct request *q, int key,
                      const float *from)
{
    struct stage_route *r = run->route;
    const size_t size = payload(run, q->micro) * sizeof *from;
    if (q->lost) return;
    pcclResult_t rc =
        pcclSendBulk(run->comm, q->worker->id,
                     q->header.request * KEYS + (unsigned)key, from, size);
    if (rc == pcclRankConnectionLost) {
        lose(r, q->worker);
        return;
    }
    stage_check(run, rc, "sending an activation");
    q->open++;
    r->moved += (double)size;
    r->tokens += (double)q->micro->samples * run->args.context;
}

static void expect_answer(struct stage_run *run, struct request *q)
{
    const size_t count = payload(run, q->micro);
    q->answer = stage_allocate(count, sizeof *q->answer);
    pcclResult_t rc = pcclExpectBulk(run->comm, q->worker->id,
                                     q->header.request * KEYS + KEY_ANSWER,
                                     q->answer, count * sizeof *q->answer);
    if (rc == pcclSuccess)
        q->open++;
    else if (rc == pcclRankConnectionLost)
        lose(run->route, q->worker);
    else
        stage_check(run, rc, "expecting an answer");
}

static void take_event(struct stage_run *run);

static void post(struct stage_run *run, struct request *q)
{
    static unsigned char texts[PCCL_MESSAGE_MAX];
    const size_t size = write_texts(run, q->micro, texts);
    pcclResult_t rc;
    while ((rc = pcclPostMessage(run->comm, q->worker->id, &q->header,
                                 sizeof q->header, texts, size)) ==
           pcclPendingAsyncOps)
        take_event(run);
    if (rc == pcclRankConnectionLost)
        lose(run->route, q->worker);
    else
        stage_check(run, rc, "asking a worker");
}

static void ask(struct stage_run *run, struct micro *m, int stage, int kind)
{
    struct stage_route *r = run->route;
    struct worker *worker = choose(r, stage);
    if (!worker) {
        r->stuck = true;
        return;
    }
    struct request *q = stage_allocate(1, sizeof *q);
    *q = (struct request){.next = r->requests,
                          .header = {.kind = kind,
                                     .samples = m->samples,
                                     .request = ++r->last_request},
                          .micro = m,
                          .stage = stage,
                          .worker = worker,
                          .begin = now()};
    r->requests = q;
    m->busy = true;
    worker->load++;
    post(run, q);
    if (!q->lost && (kind == KIND_FORWARD || (kind != KIND_LOSS && stage > 0)))
        expect_answer(run, q);
    if (stage > 0) send_part(run, q, KEY_IN, m->in[stage]);
    if (kind == KIND_BACKWARD)
        send_part(run, q, KEY_GRADIENT, m->gradient[stage]);
}

/* ---------------------------------------------------------- micro-batches */

/* Its next request, if there is one. */
static void advance(struct stage_run *run, struct micro *m)
{
    const int last = run->args.stages - 1;
    if (m->busy || run->route->stuck) return;
    if (m->front < last) {
        ask(run, m, m->front, KIND_FORWARD);
        return;
    }
    if (m->held) {
        if (m->front == last) ask(run, m, last, KIND_LOSS);
        return;
    }
    for (int s = last; s >= 0; s--) {
        if (m->holder[s]) continue;
        ask(run, m, s, s == last ? KIND_FINISH : KIND_BACKWARD);
        return;
    }
}

static bool is_done(const struct stage_run *run, const struct micro *m)
{
    if (m->held) return m->front == run->args.stages;
    for (int s = 0; s < run->args.stages; s++)
        if (!m->holder[s]) return false;
    return true;
}

static void keep(float **place, struct request *q)
{
    free(*place);
    *place = q->answer;
    q->answer = NULL;
}

/* The worker has answered, and all that was sent has arrived. */
static void complete(struct stage_run *run, struct request *q)
{
    struct micro *m = q->micro;
    const double took = now() - q->begin;
    struct worker *w = q->worker;
    w->seconds = w->seconds > 0 ? 0.8 * w->seconds + 0.2 * took : took;
    switch (q->header.kind) {
    case KIND_FORWARD:
        m->front = q->stage + 1;
        keep(&m->in[m->front], q);
        break;
    case KIND_LOSS:
        m->front = run->args.stages;
        m->loss = q->header.loss;
        break;
    default:
        m->holder[q->stage] = w->id;
        if (q->stage > 0) keep(&m->gradient[q->stage - 1], q);
        break;
    }
}

/* Requests that are over: what is lost is asked of another worker. */
static void sweep(struct stage_run *run)
{
    struct stage_route *r = run->route;
    for (struct request **at = &r->requests; *at;) {
        struct request *q = *at;
        if (q->open > 0 || !(q->answered || q->lost)) {
            at = &q->next;
            continue;
        }
        *at = q->next;
        q->worker->load--;
        q->micro->busy = false;
        if (!q->lost) complete(run, q);
        free(q->answer);
        free(q);
    }
}

static struct request *request_of(struct stage_route *r, uint64_t from,
                                  uint64_t number)
{
    for (struct request *q = r->requests; q; q = q->next)
        if (q->header.request == number && q->worker->id == from) return q;
    return NULL;
}

static void take_event(struct stage_run *run)
{
    struct stage_route *r = run->route;
    struct stage_header header;
    struct request *q;
    pcclEvent_t event;
    stage_check(run, pcclTakeEvent(run->comm, -1, &event), "an event");
    switch (event.kind) {
    case pcclEventMessage:
        if (event.header_size != sizeof header) stage_fail("a strange message");
        memcpy(&header, event.header, sizeof header);
        q = request_of(r, event.member, header.request);
        if (!q) break;
        q->answered = true;
        q->header.loss = header.loss;
        break;
    case pcclEventBulkReceived:
    case pcclEventBulkSent:
        q = request_of(r, event.member, event.key / KEYS);
        if (!q) break;
        q->open--;
        if (event.result != pcclSuccess) q->lost = true;
        break;
    case pcclEventMemberLost: {
        struct worker *worker = find(r, event.member);
        if (worker) lose(r, worker);
        break;
    }
    default:
        break;
    }
    (void)pcclReleaseEvent(run->comm, &event);
}

/* ------------------------------------------------------------------ steps */

static void free_micros(struct stage_route *r)
{
    for (size_t i = 0; i < r->micro_count; i++)
        for (int s = 0; s < STAGES_MOST; s++) {
            free(r->micros[i].in[s]);
            free(r->micros[i].gradient[s]);
        }
    free(r->micros);
    r->micros = NULL;
    r->micro_count = 0;
}

/* This trainer's share of the step; of the first one also what is held out. */
static void divide(struct stage_run *run)
{
    struct stage_route *r = run->route;
    const struct stage_args *a = &run->args;
    uint64_t trainers[SEATS_MOST];
    const size_t count = stage_run_list(run, TRAINER, trainers);
    size_t place = 0;
    while (place + 1 < count && trainers[place] != run->own) place++;
    free_micros(r);
    r->micros = stage_allocate((size_t)(a->batch + a->held), sizeof *r->micros);
    for (int i = 0, n = 0; i < a->batch; i += a->micro, n++) {
        if ((size_t)n % count != place) continue;
        r->micros[r->micro_count++] = (struct micro){
            .first = i,
            .samples = a->batch - i < a->micro ? a->batch - i : a->micro};
    }
    if (place > 0 || run->step % a->every != 0) return;
    for (int i = 0; i < a->held; i += a->micro)
        r->micros[r->micro_count++] = (struct micro){
            .first = i,
            .samples = a->held - i < a->micro ? a->held - i : a->micro,
            .held = true};
}

/* Some at a time, so that a worker has the next one while it computes. */
static void run_micros(struct stage_run *run)
{
    struct stage_route *r = run->route;
    uint64_t ids[SEATS_MOST];
    const size_t most =
        2 * (run->seat_count - stage_run_list(run, TRAINER, ids));
    for (;;) {
        size_t busy = 0, left = 0;
        for (size_t i = 0; i < r->micro_count; i++) {
            struct micro *m = &r->micros[i];
            if (is_done(run, m)) continue;
            left++;
            if (busy < most) advance(run, m);
            busy += m->busy;
        }
        if (!r->requests && (left == 0 || r->stuck)) return;
        take_event(run);
        sweep(run);
    }
}

static void tell_end(struct stage_run *run)
{
    struct stage_route *r = run->route;
    const struct stage_header end = {.kind = KIND_END};
    for (size_t i = 0; i < r->worker_count; i++) {
        struct worker *w = &r->workers[i];
        pcclResult_t rc = pcclPendingAsyncOps;
        while (!w->lost && rc == pcclPendingAsyncOps) {
            rc = pcclPostMessage(run->comm, w->id, &end, sizeof end, NULL, 0);
            if (rc == pcclPendingAsyncOps) take_event(run);
        }
        if (rc == pcclRankConnectionLost) lose(r, w);
    }
}

static void report_held(const struct stage_run *run)
{
    const struct stage_route *r = run->route;
    double loss = 0;
    int samples = 0;
    for (size_t i = 0; i < r->micro_count; i++) {
        if (!r->micros[i].held) continue;
        loss += r->micros[i].loss;
        samples += r->micros[i].samples;
    }
    if (samples > 0)
        printf("held %d loss %.6f\n", (int)run->step, loss / samples);
}

void stage_route_step(struct stage_run *run, bool anew,
                      struct stage_tally *tally)
{
    struct stage_route *r = run->route;
    if (anew) divide(run);
    /* Who is lost without an event yet: the view says so. */
    for (size_t i = 0; i < r->worker_count; i++) {
        bool there = false;
        for (size_t n = 0; n < run->seat_count; n++)
            there = there || run->seats[n].id == r->workers[i].id;
        if (!there && !r->workers[i].lost) lose(r, &r->workers[i]);
    }
    enqueue(run);
    r->stuck = false;
    run_micros(run);
    if (run->launched == run->args.die_rank && run->step == run->args.die_step)
        (void)raise(SIGKILL);
    tell_end(run);
    if (anew && !r->stuck) report_held(run);
    tally->moved += r->moved;
    tally->tokens += r->tokens;
    r->moved = r->tokens = 0;
}

void stage_route_begin(struct stage_run *run)
{
    run->route = stage_allocate(1, sizeof *run->route);
}

void stage_route_end(struct stage_run *run)
{
    free_micros(run->route);
    free(run->route);
}
