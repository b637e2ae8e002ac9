/* comm_samples.c - the samples of a step (pccl.h, rules G) between the threads
 * of the program and those of the communicator.
 *
 * A training thread reports and looks while others hold the communicator's lock
 * to move data. So it uses a copy of the session's count with a lock of its
 * own, which is held for a few words and never while a thread waits. */
#include "comm.h"

#include <sched.h>

void comm_samples_init(pcclComm_t *c)
{
    pthread_mutex_init(&c->samples.lock, NULL);
}

void comm_samples_free(pcclComm_t *c)
{
    while (atomic_load(&c->samples.inside) > 0) sched_yield();
    pthread_mutex_destroy(&c->samples.lock);
}

static void set_state(struct comm_samples *b, enum samples_state state)
{
    pthread_mutex_lock(&b->lock);
    b->state = state;
    b->fresh = false;
    b->count = (struct sample_count){.interval = 0};
    pthread_mutex_unlock(&b->lock);
}

void comm_samples_open(pcclComm_t *c)
{
    set_state(&c->samples, SAMPLES_OPEN);
}

void comm_samples_close(pcclComm_t *c)
{
    set_state(&c->samples, SAMPLES_CLOSED);
}

bool comm_samples_exchange(pcclComm_t *c)
{
    struct comm_samples *b = &c->samples;
    struct session *s = c->session;
    pthread_mutex_lock(&b->lock);
    struct sample_report report = b->report;
    bool fresh = b->fresh;
    b->fresh = false;
    pthread_mutex_unlock(&b->lock);
    if (fresh) {
        s->now = comm_now();
        session_report_samples(s, &report);
    }
    bool lost = s->state == SESSION_GONE ||
                (s->master_lost && !session_waits_for_master(s));
    if (!fresh && !lost && !s->samples.told.known && !s->samples.own.used)
        return false;
    pthread_mutex_lock(&b->lock);
    b->count = s->samples;
    if (b->fresh) sample_report(&b->count, &b->report);
    if (lost && b->state == SAMPLES_OPEN) b->state = SAMPLES_LOST;
    pthread_mutex_unlock(&b->lock);
    return fresh;
}
