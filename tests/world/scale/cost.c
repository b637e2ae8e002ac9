/* cost.c - see cost.h. */
#include "cost.h"

#include "scale.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

uint64_t cost_most[COST_EVENTS_MAX];

void cost_note(uint32_t event, uint64_t before)
{
    uint64_t blocks = scale_steps - before;
    if (blocks > cost_most[event]) cost_most[event] = blocks;
}

static const struct cost_excuse *
excuse_of(const struct cost_table *t, const char *event, const char *column)
{
    for (size_t i = 0; i < t->excuse_count; i++) {
        const struct cost_excuse *e = &t->excuses[i];
        if (strcmp(e->event, event) == 0 && strcmp(e->column, column) == 0)
            return e;
    }
    return NULL;
}

/* Ten times as much costs ten times as much, and half of that more for
 * logarithms and what only larger worlds do. */
static bool grows(uint64_t less, uint64_t more, uint32_t from, uint32_t to,
                  const struct cost_excuse *excuse)
{
    uint64_t tenths = excuse && excuse->tenths > 0 ? excuse->tenths : 15;
    return more * from * 10 <= less * to * tenths;
}

static bool check(const struct cost_table *t, const struct cost_column *c,
                  const char *event, const uint64_t *blocks)
{
    const struct cost_excuse *excuse = excuse_of(t, event, c->name);
    bool slow = false;
    for (int i = 0; i + 1 < COST_SIZES && blocks[i] > 0; i++)
        slow |= !grows(blocks[i], blocks[i + 1], c->sizes[i], c->sizes[i + 1],
                       excuse);
    bool most = c->turns && blocks[COST_SIZES - 1] > COST_TURN_MAX &&
                !(excuse && excuse->takes_long);
    printf("%-18s %-11s", event, c->name);
    for (int i = 0; i < COST_SIZES; i++)
        printf(" %5" PRIu32 ":%-9" PRIu64, c->sizes[i], blocks[i]);
    printf("%s%s%s%s\n", slow ? "  GROWS FASTER" : "", most ? "  TOO LONG" : "",
           excuse ? "  excused: " : "", excuse ? excuse->reason : "");
    return !slow && !most;
}

bool cost_table(const struct cost_table *t)
{
    static uint64_t blocks[COST_EVENTS_MAX][COST_SIZES];
    bool fits = true;
    for (size_t k = 0; k < t->column_count; k++) {
        const struct cost_column *c = &t->columns[k];
        memset(blocks, 0, sizeof blocks);
        for (int i = 0; i < COST_SIZES; i++) {
            memset(cost_most, 0, sizeof cost_most);
            c->play(c->sizes[i]);
            for (uint32_t e = 0; e < COST_EVENTS_MAX; e++)
                blocks[e][i] = cost_most[e];
        }
        for (uint32_t e = 0; e < COST_EVENTS_MAX; e++) {
            if (!t->events[e]) continue;
            bool seen = blocks[e][0] + blocks[e][COST_SIZES - 1] > 0;
            if (!seen && k == 0) printf("%-18s is not played\n", t->events[e]);
            fits &= seen || k > 0;
            if (seen) fits &= check(t, c, t->events[e], blocks[e]);
        }
    }
    return fits;
}
