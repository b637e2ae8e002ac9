/* test_litmus.c [NAME] - all orders of each lock-free protocol. Prints the
 * number of runs; README.md has the table. */
#include "litmus.h"

#include <stdio.h>
#include <string.h>

enum { RUNS_MAX = 20 * 1000 * 1000 };

static const struct litmus *const tests[] = {
    &litmus_bytes, &litmus_reuse,       &litmus_base,      &litmus_data,
    &litmus_room,  &litmus_twice,       &litmus_exchange,  &litmus_slot,
    &litmus_posts, &litmus_posts_first, &litmus_over,      &litmus_post_bell,
    &litmus_loop,  &litmus_wake,        &litmus_published, &litmus_list,
    &litmus_last};

int main(int argc, char **argv)
{
    int failed = 0;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    int done = 0;
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (argc > 1 && !strstr(tests[i]->name, argv[1])) continue;
        struct litmus_result r = litmus_explore(tests[i], RUNS_MAX);
        const char *text = r.complete ? "complete" : "not complete";
        if (r.failure) text = r.failure;
        (void)printf("%-28s %9llu runs, %s\n", tests[i]->name,
                     (unsigned long long)r.runs, text);
        failed += !r.complete;
        done++;
    }
    return failed > 0 || done == 0;
}
