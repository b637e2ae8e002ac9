/* scale.c - what a coordinator of many members costs: sim_scale LARGE N... See
 * scale.h.
 *
 * LARGE: bytes of the large all-reduce. A line for each event: the
 * coordinator's CPU time, and that of its longest turn (what it sends is copied
 * once, as the kernel would); turns; messages and KiB to it and from it; its
 * memory, and that of a member; CPU time of all. */
#include "scale.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint64_t resident(void)
{
    unsigned long long size = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    SCALE_CHECK(f && fscanf(f, "%llu %llu", &size, &pages) == 2);
    (void)fclose(f);
    return pages * 4096;
}

static void measure(uint32_t n, size_t large)
{
    uint64_t before = resident();
    scale_begin(n, large);
    for (int event = 0; event < SCALE_EVENTS; event++) {
        struct scale_work *w = &scale.work;
        uint64_t heap = w->heap;
        *w = (struct scale_work){.heap = heap, .heap_most = heap};
        double from = seconds();
        scale_happens((enum scale_event)event, n, large);
        double took = seconds() - from;
        uint64_t own = scale_master_touched() + w->heap_most;
        uint64_t others = resident() - before - scale_master_touched();
        printf("%5u %-9s %9.3f %8.3f %7" PRIu64 " %6" PRIu64 " %6" PRIu64
               " %8.1f %9.1f %7.1f %7.2f %7.1f\n",
               n, scale_event_names[event], (double)w->cpu / 1e6,
               (double)w->longest / 1e6, w->turns, w->messages_in,
               w->messages_out, (double)w->bytes_in / 1024,
               (double)w->bytes_out / 1024, (double)own / 1048576,
               (double)others / n / 1048576, took);
        (void)fflush(stdout);
    }
    scale_end();
}

int main(int argc, char **argv)
{
    size_t large = argc > 1 ? (size_t)strtoull(argv[1], NULL, 10) : 1 << 20;
    printf("#   n event        CPU ms  turn ms   turns messages in, out   KiB "
           "in,      out     MiB  member  all s\n");
    for (int i = 2; i < argc; i++)
        measure((uint32_t)strtoul(argv[i], NULL, 10), large);
    return 0;
}
