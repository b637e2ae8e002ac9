/* gpt.c - a small transformer, trained in several ways from the same start.
 *
 *     gpt alone FILE                            one process
 *     pccl-master -n 4 --elastic gpt ddp FILE   the sum of gradients each step
 *     pccl-master --join HOST:PORT -n 2 gpt ddp FILE    two more, any time
 * later
 *
 * README.md has the ways and their options. */
#include "gpt_run.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    void (*train)(struct gpt_run *run);
} ways[] = {
    {"alone", gpt_ddp},   {"ddp", gpt_ddp},       {"powersgd", gpt_powersgd},
    {"stack", gpt_stack}, {"diloco", gpt_diloco}, {"async", gpt_async},
    {"speed", gpt_speed},
};

int main(int argc, char **argv)
{
    struct gpt_run run;
    gpt_run_begin(&run, argc, argv);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(ways[i].name, run.args.way) != 0) continue;
        ways[i].train(&run);
        gpt_run_end(&run);
        return 0;
    }
    fprintf(stderr, "%s: no way of training is called %s\n", argv[0],
            run.args.way);
    return 2;
}
