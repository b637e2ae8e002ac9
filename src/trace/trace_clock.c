/* trace_clock.c - see trace_clock.h. */
#include "trace_clock.h"

#include "../base/fnv.h"

#include <stdlib.h>
#include <string.h>

enum { CLOCKS_MAX = 4096 };

#define STRETCH INT64_C(10000000000) /* ns */
/* By which clocks may drift apart from one stretch to the next: 200 ppm. */
#define DRIFT (STRETCH / 5000)
#define FAR (INT64_MAX / 4)
enum { STRETCHES_MAX = 1 << 22 }; /* 485 days, 64 MiB */

/* What the members on one clock say of an operation. */
struct sighting {
    uint64_t name; /* hash; 0: the place is free */
    int clock;
    int64_t began, ended; /* the latest, the earliest */
};

struct interval {
    int64_t low, high;
};

struct one_clock {
    char name[64];
    int64_t wall;
    bool aligned;
    int64_t start; /* of the first stretch */
    size_t count;
    struct interval *stretches; /* NULL: it moves by `by` */
    int64_t by;
    uint64_t operations;
};

struct clocks {
    struct one_clock *all;
    int count;
    struct sighting *table; /* by hash of name and clock; a power of two */
    size_t room, used;
    int64_t first, last; /* of all sightings, each on its own clock */
};

struct clocks *clocks_new(void)
{
    return calloc(1, sizeof(struct clocks));
}

void clocks_free(struct clocks *c)
{
    if (!c) return;
    for (int i = 0; i < c->count; i++) free(c->all[i].stretches);
    free(c->all);
    free(c->table);
    free(c);
}

int clocks_add(struct clocks *c, const char *name, int64_t wall)
{
    for (int i = 0; i < c->count; i++)
        if (strcmp(c->all[i].name, name) == 0) return i;
    if (c->count == CLOCKS_MAX) return -1;
    struct one_clock *more =
        realloc(c->all, ((size_t)c->count + 1) * sizeof *more);
    if (!more) return -1;
    c->all = more;
    struct one_clock *one = &c->all[c->count];
    *one = (struct one_clock){.wall = wall};
    strncpy(one->name, name, sizeof one->name - 1);
    return c->count++;
}

/* --------------------------------------------------------------- sightings */

static uint64_t hash_of(const char *text, size_t size)
{
    uint64_t hash = fnv_bytes(FNV_BEGIN, text, size);
    return hash != 0 ? hash : 1;
}

static struct sighting *place_of(struct sighting *table, size_t room,
                                 uint64_t name, int clock)
{
    size_t at = (size_t)((name ^ (uint64_t)clock * 0x9e3779b97f4a7c15u) *
                             0xff51afd7ed558ccdu >>
                         20);
    for (;; at++) {
        struct sighting *s = &table[at & (room - 1)];
        if (s->name == 0 || (s->name == name && s->clock == clock)) return s;
    }
}

static bool grow(struct clocks *c)
{
    if (c->used * 2 < c->room) return true;
    size_t room = c->room > 0 ? c->room * 2 : 1024;
    struct sighting *table = calloc(room, sizeof *table);
    if (!table) return false;
    for (size_t i = 0; i < c->room; i++) {
        const struct sighting *s = &c->table[i];
        if (s->name != 0) *place_of(table, room, s->name, s->clock) = *s;
    }
    free(c->table);
    c->table = table;
    c->room = room;
    return true;
}

bool clocks_tell(struct clocks *c, int clock, const char *name, size_t size,
                 int64_t began, int64_t ended)
{
    if (!grow(c)) return false;
    uint64_t hash = hash_of(name, size);
    struct sighting *s = place_of(c->table, c->room, hash, clock);
    if (s->name == 0) {
        *s = (struct sighting){hash, clock, began, ended};
        c->used++;
        return true;
    }
    if (began > s->began) s->began = began;
    if (ended < s->ended) s->ended = ended;
    return true;
}

/* --------------------------------------------------------------- alignment */

/* A bound of one stretch holds for those next to it but for the drift. */
static void spread(struct interval *list, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (list[i - 1].low - DRIFT > list[i].low)
            list[i].low = list[i - 1].low - DRIFT;
        if (list[i - 1].high + DRIFT < list[i].high)
            list[i].high = list[i - 1].high + DRIFT;
    }
    for (size_t i = count; i-- > 1;) {
        if (list[i].low - DRIFT > list[i - 1].low)
            list[i - 1].low = list[i].low - DRIFT;
        if (list[i].high + DRIFT < list[i - 1].high)
            list[i - 1].high = list[i].high + DRIFT;
    }
}

/* The operations that are known on both: their number, and the time of the
 * first and the last on the clock to be moved. */
static uint64_t common(const struct clocks *c, int from, int to, int64_t *first,
                       int64_t *last)
{
    uint64_t count = 0;
    for (size_t i = 0; i < c->room; i++) {
        const struct sighting *b = &c->table[i];
        if (b->name == 0 || b->clock != from) continue;
        if (place_of(c->table, c->room, b->name, to)->name == 0) continue;
        if (count == 0 || b->began < *first) *first = b->began;
        if (count == 0 || b->began > *last) *last = b->began;
        count++;
    }
    return count;
}

static void narrow(const struct clocks *c, int from, int to)
{
    struct one_clock *one = &c->all[from];
    for (size_t i = 0; i < c->room; i++) {
        const struct sighting *b = &c->table[i];
        if (b->name == 0 || b->clock != from) continue;
        const struct sighting *a = place_of(c->table, c->room, b->name, to);
        if (a->name == 0) continue;
        struct interval *v = &one->stretches[(b->began - one->start) / STRETCH];
        int64_t low = clocks_move(c, to, a->began) - b->ended;
        int64_t high = clocks_move(c, to, a->ended) - b->began;
        if (low > v->low) v->low = low < FAR ? low : FAR;
        if (high < v->high) v->high = high > -FAR ? high : -FAR;
    }
}

/* False: no memory. */
static bool align_to(struct clocks *c, int from, int to)
{
    int64_t first = 0, last = 0;
    struct one_clock *one = &c->all[from];
    uint64_t count = common(c, from, to, &first, &last);
    if (count == 0 || (last - first) / STRETCH >= STRETCHES_MAX) return true;
    one->count = (size_t)((last - first) / STRETCH) + 1;
    one->stretches = malloc(one->count * sizeof *one->stretches);
    if (!one->stretches) return false;
    one->start = first;
    one->operations = count;
    for (size_t i = 0; i < one->count; i++)
        one->stretches[i] = (struct interval){-FAR, FAR};
    narrow(c, from, to);
    spread(one->stretches, one->count);
    one->aligned = true;
    return true;
}

bool clocks_align(struct clocks *c, int base)
{
    c->all[base].aligned = true;
    for (bool more = true; more;) { /* by those that are aligned already */
        more = false;
        for (int from = 0; from < c->count; from++) {
            for (int to = 0; to < c->count && !c->all[from].aligned; to++) {
                if (!c->all[to].aligned) continue;
                if (!align_to(c, from, to)) return false;
                more = more || c->all[from].aligned;
            }
        }
    }
    for (int i = 0; i < c->count; i++)
        if (!c->all[i].aligned)
            c->all[i].by = c->all[i].wall - c->all[base].wall;
    return true;
}

static int64_t middle(const struct interval *v)
{
    return v->low / 2 + v->high / 2;
}

/* By which the clock moves at this time: straight between the middles of two
 * stretches. */
static int64_t shift_at(const struct one_clock *one, int64_t at)
{
    if (!one->stretches) return one->by;
    int64_t from = at - one->start - STRETCH / 2;
    if (from <= 0) return middle(&one->stretches[0]);
    size_t i = (size_t)(from / STRETCH);
    if (i + 1 >= one->count) return middle(&one->stretches[one->count - 1]);
    int64_t low = middle(&one->stretches[i]);
    int64_t high = middle(&one->stretches[i + 1]);
    double part = (double)(from % STRETCH) / (double)STRETCH;
    return low + (int64_t)(part * (double)(high - low));
}

int64_t clocks_move(const struct clocks *c, int clock, int64_t at)
{
    return at + shift_at(&c->all[clock], at);
}

struct clock_report clocks_report(const struct clocks *c, int clock)
{
    const struct one_clock *one = &c->all[clock];
    struct clock_report r = {.moved = shift_at(one, one->start),
                             .operations = one->operations};
    for (size_t i = 0; i < one->count; i++) {
        int64_t half = (one->stretches[i].high - one->stretches[i].low) / 2;
        if (half < 0) half = -half;
        if (half > r.within) r.within = half;
    }
    return r;
}
