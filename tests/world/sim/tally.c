/* tally.c - see tally.h. A universe is of one kind, has any number of features,
 * and counts once for its number of founding members. */
#include "tally.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ROWS_MAX = 64 };

struct row {
    const char *of, *name;
    uint32_t number; /* of members, where there is no name */
    uint64_t universes, steps;
    double seconds; /* of the processor */
};

static struct row rows[ROWS_MAX];
static uint32_t row_count;
static double began;

static double processor_time(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void tally_begin(void)
{
    began = processor_time();
}

static void count(const struct row *one)
{
    uint32_t i = 0;
    while (i < row_count && (strcmp(rows[i].of, one->of) != 0 ||
                             strcmp(rows[i].name, one->name) != 0 ||
                             rows[i].number != one->number))
        i++;
    if (i == ROWS_MAX) return;
    if (i == row_count) {
        rows[row_count++] = *one;
        return;
    }
    rows[i].universes++;
    rows[i].steps += one->steps;
    rows[i].seconds += one->seconds;
}

static void feature(struct row *r, bool has, const char *name)
{
    r->name = name;
    if (has) count(r);
}

void tally_end(const struct sim_options *o, uint64_t steps, const char *kind,
               bool rare)
{
    struct row r = {.of = "all",
                    .name = "",
                    .universes = 1,
                    .steps = steps,
                    .seconds = processor_time() - began};
    count(&r);
    r.of = "kind";
    r.name = kind ? kind : "ordinary";
    count(&r);
    r.of = "feature";
    feature(&r, rare, "rare");
    feature(&r, o->fast, "fast");
    feature(&r, o->scarce, "scarce");
    feature(&r, o->lasting > 0, "lasting");
    feature(&r, o->narrow > 0, "narrow");
    feature(&r, o->calm, "calm");
    feature(&r, o->slow, "slow");
    feature(&r, o->storm, "storm");
    feature(&r, o->large, "large");
    feature(&r, o->mismatch, "mismatch");
    feature(&r, o->odd_vote, "odd_vote");
    feature(&r, o->stutter + o->garble + o->strangers > 0, "strange");
    feature(&r, o->letters, "letters");
    feature(&r, o->averages, "averages");
    feature(&r, o->sync > 0, "sync");
    feature(&r, o->optimize, "optimize");
    feature(&r, o->alive_max > SIM_FEW, "many");
    r.of = "members";
    r.name = "";
    r.number = o->procs;
    count(&r);
}

void tally_report(void)
{
    for (uint32_t i = 0; i < row_count; i++) {
        const struct row *r = &rows[i];
        printf("tally: %s %s", r->of, r->name);
        if (*r->name == '\0' && r->number > 0) printf("%" PRIu32, r->number);
        printf(" %" PRIu64 " universes, %" PRIu64 " steps, %.3f s\n",
               r->universes, r->steps, r->seconds);
    }
}
