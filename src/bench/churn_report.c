/* churn_report.c - what pccl-bench churn says at its end. */
#include "churn.h"

#include <string.h>

static uint64_t injected(const struct churn_totals *t)
{
    uint64_t sum = 0;
    for (int k = 0; k < CHURN_FAULTS; k++)
        if (k != CHURN_JOIN) sum += t->faults[k];
    return sum;
}

static void report_json(const struct churn_totals *t, double seconds,
                        const char *skipped)
{
    printf("{\"mode\":\"churn\",\"seconds\":%.1f,\"faults\":{", seconds);
    for (int k = 0; k < CHURN_FAULTS; k++)
        printf("%s\"%s\":%llu", k ? "," : "", churn_fault_names[k],
               (unsigned long long)t->faults[k]);
    printf("},\"skipped\":\"%s\",\"faults_per_second\":%.3f", skipped,
           (double)injected(t) / seconds);
    printf(
        ",\"processes\":%llu,\"operations\":%llu,\"verdicts\":%llu,"
        "\"epochs\":%llu,\"votes\":%llu,\"sums\":%llu,\"bytes\":%llu,"
        "\"evictions\":%llu,\"refused\":%llu,\"lost\":%llu,\"violations\":%llu",
        (unsigned long long)t->histories, (unsigned long long)t->operations,
        (unsigned long long)t->agreed, (unsigned long long)t->epochs,
        (unsigned long long)t->votes, (unsigned long long)t->sums,
        (unsigned long long)t->bytes, (unsigned long long)t->evictions,
        (unsigned long long)t->refused, (unsigned long long)t->lost,
        (unsigned long long)t->violations);
    printf(",\"member_growth_kib\":%lld,\"master_growth_kib\":%lld,"
           "\"stalls_in_deadlines\":{",
           (long long)t->member_growth, (long long)t->master_growth);
    for (int k = 0, any = 0; k < CHURN_FAULTS; k++) {
        const struct churn_samples *s = &t->stalls[k];
        if (s->count == 0) continue;
        printf("%s\"%s\":{\"count\":%zu,\"p50\":%.4f,\"p99\":%.4f,"
               "\"max\":%.4f}",
               any++ ? "," : "", churn_fault_names[k], s->count,
               bench_quantile(s->v, (int)s->count, 0.5),
               bench_quantile(s->v, (int)s->count, 0.99),
               bench_quantile(s->v, (int)s->count, 1));
    }
    printf("}}\n");
}

static void report_stalls(const struct churn_totals *t)
{
    printf("# stall: from the fault to the end of the calls under way, in "
           "deadlines\n");
    printf("#%-10s %10s %8s %8s %8s\n", "fault", "count", "p50", "p99", "max");
    for (int k = 0; k < CHURN_FAULTS; k++) {
        const struct churn_samples *s = &t->stalls[k];
        if (s->count == 0) continue;
        printf(" %-10s %10zu %8.3f %8.3f %8.3f\n", churn_fault_names[k],
               s->count, bench_quantile(s->v, (int)s->count, 0.5),
               bench_quantile(s->v, (int)s->count, 0.99),
               bench_quantile(s->v, (int)s->count, 1));
    }
}

void churn_report(const struct churn_options *o, const struct churn_totals *t,
                  double seconds, const char *skipped)
{
    for (uint64_t i = 0; i < t->violations && i < CHURN_KEPT; i++)
        fprintf(stderr, "violation: %s\n", t->texts[i]);
    if (o->json) {
        report_json(t, seconds, skipped);
        return;
    }
    printf("# %.1f s, deadline %g s\n", seconds, o->deadline);
    printf("faults      %llu (%.2f per second):",
           (unsigned long long)injected(t), (double)injected(t) / seconds);
    for (int k = 0; k < CHURN_FAULTS; k++)
        if (k != CHURN_JOIN)
            printf(" %s %llu", churn_fault_names[k],
                   (unsigned long long)t->faults[k]);
    printf("\njoins       %llu\n", (unsigned long long)t->faults[CHURN_JOIN]);
    if (*skipped) printf("skipped     %s\n", skipped);
    printf("processes   %llu\n", (unsigned long long)t->histories);
    printf("agreements  %llu (%.2f per second): epochs %llu, verdicts %llu, "
           "votes %llu\n",
           (unsigned long long)(t->epochs + t->agreed + t->votes),
           (double)(t->epochs + t->agreed + t->votes) / seconds,
           (unsigned long long)t->epochs, (unsigned long long)t->agreed,
           (unsigned long long)t->votes);
    printf("operations  %llu\n", (unsigned long long)t->operations);
    printf("sums        %llu checked, %.1f MB\n", (unsigned long long)t->sums,
           (double)t->bytes / 1e6);
    printf(
        "evictions   %llu, refused newcomers %llu, without the state after a "
        "partition %llu\n",
        (unsigned long long)t->evictions, (unsigned long long)t->refused,
        (unsigned long long)t->lost);
    printf("memory      members grew by at most %lld KiB, coordinators by %lld "
           "KiB\n",
           (long long)t->member_growth, (long long)t->master_growth);
    report_stalls(t);
    printf("violations  %llu\n", (unsigned long long)t->violations);
}
