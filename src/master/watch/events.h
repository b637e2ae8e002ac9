/* events.h - the last things that happened to a run, with the time. */
#ifndef PCCL_MASTER_EVENTS_H
#define PCCL_MASTER_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum { EVENTS_MAX = 1000, EVENT_TEXT_MAX = 240 };

struct run_event {
    time_t at;        /* wall clock */
    uint32_t epoch;   /* the last one of the run at that time */
    const char *kind; /* "joined", "lost", ... static */
    char text[EVENT_TEXT_MAX];
};

/* What the members have done, at some times. */
enum { HISTORY_MAX = 720, HISTORY_STEP_S = 5 }; /* an hour */

struct run_history {
    uint64_t count; /* so far */
    struct run_sample {
        int64_t at; /* ns, of the coordinator's clock */
        uint64_t operations, received;
    } list[HISTORY_MAX];
};

/* A ring: the oldest is overwritten. Zeroed before. */
struct run_events {
    uint64_t count; /* so far */
    struct run_event list[EVENTS_MAX];
};

static inline struct run_event *events_next(struct run_events *e)
{
    return &e->list[e->count++ % EVENTS_MAX];
}

/* The number of those that are kept, and the i-th of them, the oldest first. */
static inline uint32_t events_kept(const struct run_events *e)
{
    return e->count < EVENTS_MAX ? (uint32_t)e->count : EVENTS_MAX;
}

static inline const struct run_event *events_get(const struct run_events *e,
                                                 uint32_t i)
{
    uint64_t first = e->count - events_kept(e);
    return &e->list[(first + i) % EVENTS_MAX];
}

#endif
