/* ettr_check.c - the histories of two runs of pccl-bench ettr: is each of them
 * whole, and how many steps did each make?
 *
 * A step counts once, when the first member has it with a checked sum, and all
 * members that have it must tell the same contributors. The seconds that a
 * fault has lost are those between the last step before it and the last step
 * before the next fault, less the time that the run without faults took for as
 * many steps in the same interval. */
#include "ettr.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct story {
    const char *name; /* of its folder */
    struct churn_log log;
    uint64_t begin, end, planned;
    double *at; /* seconds from begin at which each step was made, sorted */
    size_t steps, inside; /* from the first one; in what is measured */
    double *fault;
    size_t faults;
};

struct told {
    uint64_t step, at;
    uint32_t set, slot; /* who was in the sum; who tells */
};

static int by_step(const void *a, const void *b)
{
    const struct told *x = a;
    const struct told *y = b;
    if (x->step != y->step) return (x->step > y->step) - (x->step < y->step);
    return (x->at > y->at) - (x->at < y->at);
}

/* Survivors agree. Who was evicted in a step may have had the sum of all before
 * it heard of that, and the others repeated the step without it. */
static bool contradict(const struct told *x, const struct told *y)
{
    return x->set != y->set && (y->set >> x->slot & 1) != 0 &&
           (x->set >> y->slot & 1) != 0;
}

static int by_time(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double since(const struct story *s, uint64_t at)
{
    return ((double)at - (double)s->begin) / 1e9;
}

/* ----------------------------------------------------------------- whole? */

static bool was_killed(const struct story *s, uint32_t n)
{
    for (size_t i = 0; i < s->log.row_count; i++) {
        const struct churn_row *r = &s->log.rows[i];
        if (r->tag == 'D' && r->v[1] == n)
            return r->v[2] == SIGKILL && r->v[3] != 0;
    }
    return false;
}

static bool has_history(const struct story *s, uint64_t n)
{
    for (size_t i = 0; i < s->log.life_count; i++)
        if (!s->log.lives[i].faults && s->log.lives[i].n == n) return true;
    return false;
}

static void check_rows(struct story *s, struct churn_totals *to)
{
    for (size_t i = 0; i < s->log.row_count; i++) {
        const struct churn_row *r = &s->log.rows[i];
        if (r->tag == 'W') {
            s->begin = r->v[0];
            s->end = r->v[1];
            s->planned = r->v[2];
        }
        if (r->tag == 'X')
            churn_violation(to, "%s/%s: %.180s", s->name,
                            s->log.lives[r->life].name, r->text);
        if (r->tag != 'D') continue;
        if (r->v[3] == 0)
            churn_violation(to, "%s: process %llu ended with status %llx",
                            s->name, (unsigned long long)r->v[1],
                            (unsigned long long)r->v[2]);
        if (r->v[2] != SIGKILL && !has_history(s, r->v[1]))
            churn_violation(to, "%s: %llu.hist is missing", s->name,
                            (unsigned long long)r->v[1]);
    }
    for (size_t i = 0; i < s->log.life_count; i++) {
        const struct churn_life *life = &s->log.lives[i];
        if (!life->faults && !life->ended && !was_killed(s, life->n))
            churn_violation(to, "%s/%s is truncated", s->name, life->name);
    }
    if (s->end <= s->begin)
        churn_violation(to, "%s/faults.hist is truncated", s->name);
}

/* ------------------------------------------------------------------ steps */

static void take_steps(struct story *s, struct churn_totals *to)
{
    size_t count = 0;
    struct told *all = calloc(s->log.row_count + 1, sizeof *all);
    s->at = calloc(s->log.row_count + 1, sizeof *s->at);
    if (!all || !s->at) {
        churn_violation(to, "%s: no memory", s->name);
        free(all);
        return;
    }
    for (size_t i = 0; i < s->log.row_count; i++) {
        const struct churn_row *r = &s->log.rows[i];
        if (r->tag != 'T') continue;
        all[count++] =
            (struct told){.at = r->v[0],
                          .step = r->v[1],
                          .set = (uint32_t)r->v[2],
                          .slot = s->log.lives[r->life].n % CHURN_SLOTS};
    }
    qsort(all, count, sizeof *all, by_step);
    for (size_t i = 0; i < count; i++) {
        bool first = i == 0 || all[i].step != all[i - 1].step;
        bool two = false;
        for (size_t k = i; k > 0 && all[k - 1].step == all[i].step; k--)
            two = two || contradict(&all[i], &all[k - 1]);
        if (two)
            churn_violation(to, "%s: two sums of step %llu", s->name,
                            (unsigned long long)all[i].step);
        if (!first) continue;
        s->at[s->steps++] = since(s, all[i].at);
        s->inside += all[i].at >= s->begin && all[i].at < s->end;
    }
    free(all);
    qsort(s->at, s->steps, sizeof *s->at, by_time);
    if (s->inside == 0) churn_violation(to, "%s: no step", s->name);
}

static void take_faults(struct story *s, struct churn_totals *to)
{
    s->fault = calloc(s->log.row_count + 1, sizeof *s->fault);
    if (!s->fault) churn_violation(to, "%s: no memory", s->name);
    for (size_t i = 0; s->fault && i < s->log.row_count; i++)
        if (s->log.rows[i].tag == 'F')
            s->fault[s->faults++] = since(s, s->log.rows[i].v[0]);
}

static void take(struct story *s, const char *root, struct churn_totals *to)
{
    char folder[CHURN_PATH];
    snprintf(folder, sizeof folder, "%.400s/%s", root, s->name);
    churn_load(&s->log, folder, to);
    check_rows(s, to);
    take_steps(s, to);
    take_faults(s, to);
}

/* -------------------------------------------------------------------- lost */

/* Steps that were made before. */
static size_t before(const struct story *s, double at)
{
    size_t low = 0;
    size_t high = s->steps;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->at[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Between the last steps before two times: how many, in how many seconds. */
static bool between(const struct story *s, double from, double to,
                    double *steps, double *seconds)
{
    size_t a = before(s, from);
    size_t b = before(s, to);
    if (a == 0 || b <= a) return false;
    *steps = (double)(b - a);
    *seconds = s->at[b - 1] - s->at[a - 1];
    return true;
}

static void take_lost(const struct story *faulty, const struct story *calm,
                      struct ettr_figures *f, struct churn_totals *to)
{
    for (size_t i = 0; i < faulty->faults; i++) {
        double from = faulty->fault[i];
        double until =
            i + 1 < faulty->faults ? faulty->fault[i + 1] : f->seconds;
        double steps, seconds, calm_steps, calm_seconds;
        if (!between(calm, from, until, &calm_steps, &calm_seconds))
            churn_violation(to, "faultless: no step beside a fault");
        else if (between(faulty, from, until, &steps, &seconds))
            churn_sample(&f->lost, seconds - steps * calm_seconds / calm_steps);
        else
            churn_sample(&f->lost, until - from); /* all of it */
    }
}

void ettr_check(const char *folder, struct ettr_figures *f,
                struct churn_totals *to)
{
    struct story faulty = {.name = "faulty"};
    struct story calm = {.name = "faultless"};
    take(&faulty, folder, to);
    take(&calm, folder, to);
    f->faults = faulty.faults;
    f->steps = faulty.inside;
    f->faultless = calm.inside;
    f->seconds = since(&faulty, faulty.end);
    if (f->faults == 0) churn_violation(to, "a run without faults");
    if (f->faults < faulty.planned)
        churn_violation(to, "%llu faults, and not %llu",
                        (unsigned long long)f->faults,
                        (unsigned long long)faulty.planned);
    if (calm.faults != 0) churn_violation(to, "faultless: has faults");
    if (f->seconds > 0 && f->faultless > 0) take_lost(&faulty, &calm, f, to);
    churn_unload(&faulty.log);
    churn_unload(&calm.log);
    free(faulty.at);
    free(faulty.fault);
    free(calm.at);
    free(calm.fault);
}
