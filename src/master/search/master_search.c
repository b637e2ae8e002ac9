/* master_search.c - queue and worker thread of ring searches. */
#include "master_search.h"

#include "../../base/io_wake.h"
#include "../../base/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLICE_STEPS = 64, /* steps between two looks at the queue */
    /* Climbs of a search that a member awaits, and of a background search. */
    ROUNDS_AWAITED = 1,
    ROUNDS_BACKGROUND = 16,
};

struct search_job {
    struct search_job *next;
    uint32_t group, ticket, n;
    bool background, dropped;
    struct topology_edge *edges;
    uint16_t *initial;
    void *memory;
    struct topology_search *search;
    struct topology_score
        reported; /* background: score of the last reported ring */
};

struct answer {
    struct answer *next;
    uint32_t group, ticket;
    bool found;
    uint16_t order[];
};

struct searcher {
    struct wake wake;
    void *user;
    void (*found)(void *user, const struct search_answer *a);
    pthread_t thread;
    bool started;

    pthread_mutex_t lock; /* protects all members below */
    pthread_cond_t work;
    bool stopping;
    struct search_job *jobs; /* first come, first served; awaited jobs first */
    struct answer *answers, **answers_end;
};

static void job_free(struct search_job *j)
{
    free(j->edges);
    free(j->initial);
    free(j->memory);
    free(j);
}

static struct search_job *job_new(const struct master_search *q)
{
    struct search_job *j = calloc(1, sizeof *j);
    if (!j) return NULL;
    size_t size = topology_search_size(q->n);
    j->group = q->group;
    j->ticket = q->ticket;
    j->n = q->n;
    j->background = q->background;
    j->edges = malloc((size_t)q->n * q->n * sizeof *j->edges);
    j->initial = malloc(q->n * sizeof *j->initial);
    j->memory = malloc(size);
    if (!j->edges || !j->initial || !j->memory) {
        job_free(j);
        return NULL;
    }
    bandwidth_fill(q->edges, q->slots, q->n, q->view, j->edges);
    memcpy(j->initial, q->initial, q->n * sizeof *j->initial);
    struct topology_instance in = {q->n, j->edges};
    struct topology_options options = {
        .seed = q->seed,
        .rounds = q->background ? ROUNDS_BACKGROUND : ROUNDS_AWAITED,
        .initial = j->initial};
    j->reported = topology_ring_score(&in, j->initial);
    j->search = topology_search_init(j->memory, size, &in, &options);
    return j;
}

/* ---------------------------------------------------------- in the thread */

/* The caller holds the lock. */
static void report_ring(struct searcher *s, const struct search_job *j,
                        bool found, const uint16_t *order)
{
    struct answer *a = malloc(sizeof *a + j->n * sizeof *order);
    if (!a) return;
    *a = (struct answer){NULL, j->group, j->ticket, found};
    memcpy(a->order, order, j->n * sizeof *order);
    *s->answers_end = a;
    s->answers_end = &a->next;
    wake_send(&s->wake);
}

/* The caller holds the lock; released while searching. True: the job is
 * over. */
static bool work_on(struct searcher *s, struct search_job *j)
{
    static _Thread_local uint16_t order[PEERS_MAX];
    struct topology_result r;
    pthread_mutex_unlock(&s->lock);
    bool more = topology_search_step(j->search, SLICE_STEPS);
    bool looks = !more || j->background;
    if (looks) topology_search_result(j->search, &r, order);
    pthread_mutex_lock(&s->lock);
    if (!looks || j->dropped) return !more || j->dropped;
    bool found = r.verdict == TOPOLOGY_FOUND;
    bool better = topology_score_compare(&r.score, &j->reported) < 0;
    j->reported = r.score;
    if (j->background ? found && better : !more)
        report_ring(s, j, found, order);
    return !more;
}

static void *run(void *searcher)
{
    struct searcher *s = searcher;
    pthread_mutex_lock(&s->lock);
    while (!s->stopping) {
        struct search_job *j = s->jobs;
        if (!j) {
            pthread_cond_wait(&s->work, &s->lock);
            continue;
        }
        if (!j->dropped && !work_on(s, j)) continue;
        struct search_job **at = &s->jobs;
        while (*at != j) at = &(*at)->next;
        *at = j->next;
        job_free(j);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ------------------------------------------------------------ in the loop */

static void on_wake(void *searcher)
{
    struct searcher *s = searcher;
    pthread_mutex_lock(&s->lock);
    struct answer *a = s->answers;
    s->answers = NULL;
    s->answers_end = &s->answers;
    pthread_mutex_unlock(&s->lock);
    while (a) {
        struct answer *next = a->next;
        struct search_answer answer = {a->group, a->ticket,
                                       a->found ? a->order : NULL};
        s->found(s->user, &answer);
        free(a);
        a = next;
    }
}

struct searcher *searcher_open(struct ev_loop *loop, void *user,
                               void (*found)(void *user,
                                             const struct search_answer *a))
{
    struct searcher *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    if (!wake_open(&s->wake)) {
        free(s);
        return NULL;
    }
    s->user = user;
    s->found = found;
    s->answers_end = &s->answers;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->work, NULL);
    wake_start(&s->wake, loop, on_wake, s);
    return s;
}

static bool start(struct searcher *s)
{
    if (s->started) return true;
    s->started = thread_start(&s->thread, "pccl-search", run, s);
    return s->started;
}

bool searcher_begin(struct searcher *s, const struct master_search *q)
{
    struct search_job *j = job_new(q);
    if (!j) return false;
    if (!start(s)) {
        job_free(j);
        return false;
    }
    pthread_mutex_lock(&s->lock);
    struct search_job **at = &s->jobs;
    for (struct search_job *k = s->jobs; k; k = k->next) {
        if (k->group == q->group && k->background) k->dropped = true;
    }
    while (*at && (j->background || !(*at)->background)) at = &(*at)->next;
    j->next = *at;
    *at = j;
    pthread_cond_signal(&s->work);
    pthread_mutex_unlock(&s->lock);
    return true;
}

void searcher_close(struct searcher *s)
{
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_signal(&s->work);
    pthread_mutex_unlock(&s->lock);
    if (s->started) pthread_join(s->thread, NULL);
    wake_close(&s->wake);
    while (s->jobs) {
        struct search_job *next = s->jobs->next;
        job_free(s->jobs);
        s->jobs = next;
    }
    while (s->answers) {
        struct answer *next = s->answers->next;
        free(s->answers);
        s->answers = next;
    }
    pthread_cond_destroy(&s->work);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
