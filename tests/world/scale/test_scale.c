/* test_scale.c - what a coordinator does for four times as many members is
 * about four times as much. It compares counts and no clocks: messages, bytes,
 * and executed blocks of the coordinator's code (scale_steps.c). */
#include "scale.h"

#include <inttypes.h>
#include <stdio.h>

enum { FEW = 256, MANY = 4 * FEW, LARGE = 64 * 1024 };

static void run(uint32_t n, struct scale_work *work)
{
    scale_begin(n, LARGE);
    for (int event = 0; event < SCALE_EVENTS; event++) {
        uint64_t sums = scale.sums;
        scale.work = (struct scale_work){.heap = scale.work.heap};
        scale_happens((enum scale_event)event, n, LARGE);
        work[event] = scale.work;
        if (event == SCALE_SMALL || event == SCALE_LARGE)
            SCALE_CHECK(scale.sums - sums == n);
    }
    scale_end();
}

/* Four times as much, with a factor for logarithms and what is constant. */
static bool grows(const char *event, const char *what, uint64_t few,
                  uint64_t many, uint64_t tenths)
{
    bool fits = many * 10 <= few * tenths;
    printf("%-12s %-22s %9" PRIu64 " -> %9" PRIu64 "%s\n", event, what, few,
           many, fits ? "" : "  TOO MUCH");
    return fits;
}

static bool check(int event, const struct scale_work *few,
                  const struct scale_work *many)
{
    const char *name = scale_event_names[event];
    bool fits = true;
    bool collective =
        event == SCALE_BARRIER || event == SCALE_SMALL || event == SCALE_LARGE;
    if (collective) SCALE_CHECK(many->messages_in + many->messages_out == 0);
    fits &=
        grows(name, "messages to it", few->messages_in, many->messages_in, 41);
    fits &= grows(name, "messages from it", few->messages_out,
                  many->messages_out, 41);
    fits &= grows(name, "bytes to it", few->bytes_in, many->bytes_in, 41);
    fits &= grows(name, "blocks of code", few->steps, many->steps, 50);
    /* Each of the first members is told of all others. */
    fits &= grows(name, "bytes from it", few->bytes_out, many->bytes_out,
                  event == SCALE_JOIN ? 165 : 41);
    return fits;
}

int main(void)
{
    static struct scale_work few[SCALE_EVENTS], many[SCALE_EVENTS];
    bool fits = true;
    run(FEW, few);
    run(MANY, many);
    for (int event = 0; event < SCALE_EVENTS; event++)
        fits &= check(event, &few[event], &many[event]);
    /* Not the view of all for all at once. */
    SCALE_CHECK(many[SCALE_JOIN].bytes_out >
                4 * (uint64_t)SWITCHBOARD_TURN_MAX);
    SCALE_CHECK(many[SCALE_JOIN].longest_bytes <
                2 * (uint64_t)SWITCHBOARD_TURN_MAX);
    SCALE_CHECK(fits);
    return 0;
}
