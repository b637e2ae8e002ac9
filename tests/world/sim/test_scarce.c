/* test_scarce.c - members that get no memory.
 *
 * Goal: each allocation of a member's cores may fail. The member gets an error,
 * or is out; the others see neither a wrong result nor a call that does not
 * end, and once there is memory again all go on.
 * Method: small universes, run again and again; in each run the k-th allocation
 * of one member fails, or the k-th and those behind it. Allocations of the
 * simulator itself never fail.
 * Replay: ./test_scarce NAME SEED K LENGTH, with SIM_TRACE=1 for the events;
 * ./test_scarce NAME UNIVERSES looks into more of them. */
#include "sim.h"

#include "scarce.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VICTIM = 2, LENGTH = 20, UNIVERSES = 8 };

/* Of the victim's cores: allocations so far; the first to fail; how many. */
static uint64_t used_seed, asked, first, length, refused;
static const char *script_name;

static bool refuse(void)
{
    if (sim_turn != VICTIM) return false;
    bool now = asked >= first && asked - first < length;
    asked++;
    refused += now;
    return now;
}

static const struct script {
    const char *name;
    uint64_t seed;
    struct sim_options o;
    uint32_t stride; /* every how many allocations several fail in a row */
} scripts[] = {
    {"two", 7, {.procs = 2, .steps = 1500, .letters = true, .sync = 2}, 1},
    {"mismatch",
     11,
     {.procs = 3, .steps = 1500, .mismatch = true, .variant_resync = true},
     1},
    {"crash",
     18,
     {.procs = 3, .steps = 6000, .crash = 200, .join = 400, .scoped = true},
     1},
    {"large",
     17,
     {.procs = 3,
      .steps = 2500,
      .large = true,
      .crash = 300,
      .join = 600,
      .share = 65536,
      .one_host = true,
      .pairwise = true,
      .lends = true,
      .piece = 8192},
     8},
};

static void run(const struct script *c, uint64_t seed, uint64_t k,
                uint64_t count)
{
    static struct sim s;
    struct sim_options o = c->o;
    o.scarce = true;
    o.quorum = o.procs;
    o.groups = o.pool = 1;
    o.burst = true;
    o.pipe_min = 32768;
    o.pipe_max = 65536;
    o.delay_max = 1 << 12;
    script_name = c->name;
    asked = refused = 0;
    used_seed = seed;
    first = k;
    length = count;
    sim_init(&s, seed, &o);
    sim_run(&s);
    sim_free(&s);
}

static void on_crash(int number)
{
    char text[128];
    int size =
        snprintf(text, sizeof text, "replay: test_scarce %s %llu %llu %llu\n",
                 script_name, (unsigned long long)used_seed,
                 (unsigned long long)first, (unsigned long long)length);
    if (size > 0 && write(STDERR_FILENO, text, (size_t)size) < 0) _exit(3);
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static int all(const struct script *c)
{
    run(c, c->seed, 0, 0);
    uint64_t count = asked;
    uint64_t total = 0;
    for (uint64_t k = 0; k < count; k++) {
        run(c, c->seed, k, 1);
        total += refused;
        if (k % c->stride == 0) run(c, c->seed, k, LENGTH);
        total += k % c->stride == 0 ? refused : 0;
    }
    printf("%s: %llu allocations, %llu refused\n", c->name,
           (unsigned long long)count, (unsigned long long)total);
    return count < 20 || total < count; /* else nothing was tested */
}

/* Other universes of the same kind, a few failures in each. */
static int some(const struct script *c, uint64_t seeds)
{
    uint64_t total = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        run(c, seed, 0, 0);
        uint64_t count = asked + 1;
        for (uint64_t i = 0; i < 6; i++) {
            uint64_t draw = sim_mix(seed, i, 0, 1);
            run(c, seed, draw % count, 1 + (draw >> 32) % (4 * LENGTH));
            total += refused;
        }
    }
    printf("%s: %llu refused in %llu universes\n", c->name,
           (unsigned long long)total, (unsigned long long)seeds);
    return total < seeds;
}

/* Runs that have failed once. */
static const struct {
    const char *name;
    uint64_t seed, first, length;
} failed_once[] = {
    {"large", 6, 12, 46}, /* a sum is in the region for some, not for all */
};

int main(int argc, char **argv)
{
    scarce_refuses = refuse;
    setvbuf(stdout, NULL, _IOLBF, 0);
    (void)signal(SIGABRT, on_crash);
    (void)signal(SIGSEGV, on_crash);
    sim_trace = getenv("SIM_TRACE") != NULL;
    int failed = 0;
    for (size_t i = 0; i < ARRAY_COUNT(failed_once) && argc == 1; i++)
        for (size_t k = 0; k < ARRAY_COUNT(scripts); k++)
            if (strcmp(scripts[k].name, failed_once[i].name) == 0)
                run(&scripts[k], failed_once[i].seed, failed_once[i].first,
                    failed_once[i].length);
    for (size_t i = 0; i < ARRAY_COUNT(scripts); i++) {
        if (argc > 1 && strcmp(argv[1], scripts[i].name) != 0) continue;
        const struct script *c = &scripts[i];
        if (argc > 4)
            run(c, strtoull(argv[2], NULL, 0), strtoull(argv[3], NULL, 0),
                strtoull(argv[4], NULL, 0));
        else if (argc > 2)
            failed += some(c, strtoull(argv[2], NULL, 0));
        else
            failed += all(c) + some(c, UNIVERSES);
    }
    return failed > 0;
}
