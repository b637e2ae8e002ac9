/* cost.h - what one event costs, in executed blocks (scale_steps.c), in worlds
 * in which one thing is multiplied by ten and by a hundred.
 *
 * A play goes through the life of a run and notes for each event what the
 * dearest one of its kind cost. cost_table() compares the plays. */
#ifndef PCCL_TESTS_COST_H
#define PCCL_TESTS_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { COST_EVENTS_MAX = 80, COST_SIZES = 3 };

/* 10 ms of one turn, in blocks of 2.5 ns each (docs/measuring.md). */
#define COST_TURN_MAX 4000000

struct cost_column {
    const char *name;           /* what is multiplied */
    uint32_t sizes[COST_SIZES]; /* once, ten times, a hundred times */
    bool turns;                 /* no event of it may take more than a turn */
    void (*play)(uint32_t size);
};

/* A cost that cannot be linear, or within a turn, and the reason. */
struct cost_excuse {
    const char *event, *column;
    uint32_t tenths; /* for ten times as much: ten times this, in tenths */
    bool takes_long;
    const char *reason;
};

/* The dearest event of each kind in this play so far. */
extern uint64_t cost_most[COST_EVENTS_MAX];
/* The blocks since `before` are of that event. */
void cost_note(uint32_t event, uint64_t before);

struct cost_table {
    const char *const *events; /* the rows, by number; NULL: there is none */
    const struct cost_column *columns;
    size_t column_count;
    const struct cost_excuse *excuses;
    size_t excuse_count;
};
/* False: a cost grows faster than what is multiplied, a turn is too long, or no
 * play of the first column has had an event. */
bool cost_table(const struct cost_table *t);

#endif
