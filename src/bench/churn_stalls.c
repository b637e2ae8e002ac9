/* churn_stalls.c - how long the calls under way at a fault still took. */
#include "churn.h"

#include <string.h>

/* Calls are written as they end; those under way at a time follow each other,
 * as many as there are operations at once. */
static size_t first_after(const struct churn_log *log,
                          const struct churn_life *life, uint64_t at)
{
    size_t low = 0;
    size_t high = life->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct churn_row *r = &log->rows[life->first + middle];
        /* The end of a call, or the time of what is no call. */
        uint64_t end = r->v[strchr("JPUSO", r->tag) ? 1 : 0];
        if (end > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static uint64_t end_of_calls(const struct churn_log *log,
                             const struct churn_life *life, uint64_t at)
{
    uint64_t last = at;
    size_t begin = first_after(log, life, at);
    for (size_t i = begin; i < life->count && i < begin + 4 * CHURN_OPS; i++) {
        const struct churn_row *r = &log->rows[life->first + i];
        bool call = strchr("PUSO", r->tag) != NULL;
        if (call && r->v[0] < at && r->v[1] > last) last = r->v[1];
    }
    return last;
}

void churn_stalls(const struct churn_log *log, struct churn_totals *to)
{
    for (size_t i = 0; i < log->row_count; i++) {
        const struct churn_row *r = &log->rows[i];
        if (r->tag != 'F' || r->v[2] >= CHURN_FAULTS || r->v[2] == CHURN_JOIN)
            continue;
        uint64_t last = r->v[0];
        for (size_t k = 0; k < log->life_count; k++) {
            const struct churn_life *life = &log->lives[k];
            if (life->faults || life->count == 0 || life->n == r->v[3])
                continue;
            uint64_t end = end_of_calls(log, life, r->v[0]);
            if (end > last) last = end;
        }
        if (last > r->v[0] && log->deadline > 0)
            churn_sample(&to->stalls[r->v[2]],
                         (double)(last - r->v[0]) / (double)log->deadline);
    }
}
