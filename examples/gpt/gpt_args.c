/* gpt_args.c - the command line of the example. */
#include "gpt_args.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INTEGER, FLOAT, FLAG, PAIR };

/* One option: what it is, where its value goes. */
struct row {
    const char *name;
    int kind;
    double low, high;
    size_t at, second; /* offsets in struct gpt_args */
};

#define AT(member) offsetof(struct gpt_args, member)

static const struct row rows[] = {
    {"layers", INTEGER, 1, GPT_LAYERS_MOST, AT(layers), 0},
    {"heads", INTEGER, 1, 64, AT(heads), 0},
    {"width", INTEGER, 1, 4096, AT(width), 0},
    {"context", INTEGER, 2, 4096, AT(context), 0},
    {"steps", INTEGER, 1, 1e6, AT(steps), 0},
    {"batch", INTEGER, 1, 1e6, AT(batch), 0},
    {"inner", INTEGER, 1, 1e6, AT(inner), 0},
    {"every", INTEGER, 1, 1e6, AT(every), 0},
    {"held", INTEGER, 1, 1e6, AT(held), 0},
    {"seed", INTEGER, 0, 1e9, AT(seed), 0},
    {"patience", INTEGER, 0, 3600, AT(patience), 0},
    {"rate", FLOAT, 0, 10, AT(rate), 0},
    {"outer-rate", FLOAT, 0, 10, AT(outer_rate), 0},
    {"outer-momentum", FLOAT, 0, 0.999, AT(outer_momentum), 0},
    {"power-rank", INTEGER, 1, 4096, AT(power_rank), 0},
    {"sgd", FLAG, 0, 0, AT(sgd), 0},
    {"codes", FLAG, 0, 0, AT(codes), 0},
    {"min", PAIR, 1, 1e6, AT(min), AT(min_step)},
    {"die", PAIR, 0, 1e6, AT(die_rank), AT(die_step)},
};
enum { ROWS = sizeof rows / sizeof *rows };

static const char usage[] =
    "usage: %s WAY [OPTIONS] FILE\n"
    "WAY      alone, ddp, powersgd, stack, diloco, async; or speed\n"
    "model    --layers N --heads N --width N --context BYTES --seed N\n"
    "training --steps N --batch SAMPLES --rate X --sgd\n"
    "DiLoCo   --inner STEPS --outer-rate X --outer-momentum X --codes\n"
    "PowerSGD --power-rank N\n"
    "output   --every STEPS --held SAMPLES\n"
    "members  --min MEMBERS:STEP --die RANK:STEP --patience SECONDS\n";

static bool set(struct gpt_args *args, const struct row *row, const char *text)
{
    char *place = (char *)args + row->at;
    char *end = NULL, *rest = NULL;
    if (row->kind == FLAG) {
        *(bool *)place = true;
        return true;
    }
    if (row->kind == FLOAT) {
        double value = strtod(text, &end);
        *(float *)place = (float)value;
        return end != text && !*end && value >= row->low && value <= row->high;
    }
    long value = strtol(text, &end, 10);
    *(int *)place = (int)value;
    if (end == text || (double)value < row->low || (double)value > row->high)
        return false;
    if (row->kind == INTEGER) return !*end;
    long second = *end == ':' ? strtol(end + 1, &rest, 10) : -1;
    *(int *)((char *)args + row->second) = (int)second;
    return second >= 0 && second <= 1000000 && !*rest;
}

bool gpt_args_parse(struct gpt_args *args, int argc, char **argv)
{
    *args = (struct gpt_args){.layers = 6,
                              .heads = 4,
                              .width = 128,
                              .context = 128,
                              .steps = 300,
                              .batch = 16,
                              .inner = 20,
                              .every = 20,
                              .held = 32,
                              .seed = 1,
                              .rate = 3e-3f,
                              .outer_rate = 0.7f,
                              .outer_momentum = 0.7f,
                              .power_rank = 8,
                              .die_rank = -1};
    struct option options[ROWS + 1] = {{0}};
    for (size_t i = 0; i < ROWS; i++) {
        options[i].name = rows[i].name;
        options[i].has_arg =
            rows[i].kind == FLAG ? no_argument : required_argument;
        options[i].val = (int)i;
    }
    bool ok = true;
    int option;
    while (ok && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        ok = option >= 0 && option < ROWS;
        if (ok && !set(args, &rows[option], optarg)) {
            fprintf(stderr, "%s: --%s %s is out of its range\n", argv[0],
                    rows[option].name, optarg);
            ok = false;
        }
    }
    if (ok && args->width % args->heads != 0) {
        fprintf(stderr, "%s: the width is no multiple of the heads\n", argv[0]);
        ok = false;
    }
    if (!ok || optind != argc - 2) {
        fprintf(stderr, usage, argv[0]);
        return false;
    }
    args->way = argv[optind];
    args->path = argv[optind + 1];
    return true;
}
