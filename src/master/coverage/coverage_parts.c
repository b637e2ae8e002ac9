/* coverage_parts.c - cuts the vector of a partial all-reduce (rule A4). */
#include "coverage.h"

#include <stdlib.h>
#include <string.h>

/* Owner i sends and receives its share f_i of the vector with n - 1 others and
 * the rest of the vector once: V (1 + (n - 2) f_i) bytes in each direction. The
 * time of the slowest is least where all that have a share take the same time
 * t: f_i = (t b_i / V - 1) / (n - 2), and nobody has a negative one. The sum of
 * the shares grows with t. */
static double sum_of_shares(const double *rates, uint32_t n, double t,
                            double *shares)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        double f = (t * rates[i] - 1) / (n - 2);
        shares[i] = f > 0 ? f : 0;
        sum += shares[i];
    }
    return sum;
}

static void divide(const double *rates, uint32_t n, double *shares)
{
    bool known = n > 2;
    double least = rates[0];
    for (uint32_t i = 0; i < n; i++) {
        known &= rates[i] > 0;
        if (rates[i] < least) least = rates[i];
    }
    for (uint32_t i = 0; i < n; i++) shares[i] = 1.0 / n;
    if (!known) return;
    /* At `high` even the slowest could have all of it. */
    double low = 0;
    double high = (n - 1) / least;
    for (int i = 0; i < 100; i++) {
        double t = (low + high) / 2;
        if (sum_of_shares(rates, n, t, shares) < 1)
            low = t;
        else
            high = t;
    }
    (void)sum_of_shares(rates, n, high, shares);
}

void coverage_sizes(uint64_t count, const double *rates, uint32_t n,
                    uint64_t *counts)
{
    double shares[WIRE_PARTS_MAX];
    PCCL_ASSERT(n > 0 && n <= WIRE_PARTS_MAX);
    divide(rates, n, shares);
    uint64_t done = 0;
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += shares[i];
        double exact = sum * (double)count;
        uint64_t end = exact >= (double)count ? count : (uint64_t)exact;
        if (i + 1 == n || end > count) end = count;
        if (end < done) end = done;
        counts[i] = end - done;
        done = end;
    }
}

/* The rate at which the member sends to the others that own a part: of its
 * measured links the mean; 0 if none was measured. */
static double rate_of(const struct master *m, const struct coverage_round *r,
                      const uint32_t *owners, uint32_t n, uint32_t i)
{
    const struct master_peer *from = &m->peers[r->members[owners[i]].link];
    double sum = 0;
    uint32_t known = 0;
    if (!m->edges || from->slot == MASTER_NO_PLACE) return 0;
    for (uint32_t k = 0; k < n; k++) {
        const struct master_peer *to = &m->peers[r->members[owners[k]].link];
        if (k == i || to->slot == MASTER_NO_PLACE) continue;
        struct bandwidth_edge e =
            bandwidth_look(m->edges, from->slot, to->slot);
        if (e.state != EDGE_MEASURED) continue;
        sum += (double)e.rate;
        known++;
    }
    return known > 0 ? sum / known : 0;
}

bool coverage_cut(struct master *m, struct coverage_round *r)
{
    uint32_t owners[WIRE_PARTS_MAX];
    double rates[WIRE_PARTS_MAX];
    uint64_t counts[WIRE_PARTS_MAX];
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->member_count && n < WIRE_PARTS_MAX; i++) {
        if (coverage_waits(m, &r->members[i])) owners[n++] = i;
    }
    PCCL_ASSERT(n > 0);
    r->parts = calloc(n, sizeof *r->parts);
    if (!r->parts) return false;
    for (uint32_t i = 0; i < n; i++) rates[i] = rate_of(m, r, owners, n, i);
    coverage_sizes(r->args.count, rates, n, counts);
    uint64_t begin = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct coverage_part *p = &r->parts[r->part_count];
        p->begin = begin;
        p->count = counts[i];
        p->owner = owners[i];
        begin += counts[i];
        if (p->count > 0) r->part_count++;
    }
    return true;
}
