/* stage_args.c - the command line. */
#include "stage_run.h"

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Options with a number, and their ranges. */
struct row {
    const char *name;
    int low, high;
    size_t at;
};

#define AT(member) offsetof(struct stage_args, member)
static const struct row rows[] = {
    {"stages", 1, STAGES_MOST, AT(stages)},
    {"layers", 1, GPT_LAYERS_MOST, AT(layers)},
    {"heads", 1, 64, AT(heads)},
    {"width", 1, 4096, AT(width)},
    {"context", 2, 4096, AT(context)},
    {"subspace", 0, 4096, AT(subspace)},
    {"seed", 0, 1000000000, AT(seed)},
    {"steps", 1, 1000000, AT(steps)},
    {"batch", 1, 4096, AT(batch)},
    {"micro", 1, MICRO_MOST, AT(micro)},
    {"power-rank", 0, 4096, AT(power_rank)},
    {"sparta", 0, 1000, AT(sparta)},
    {"every", 1, 1000000, AT(every)},
    {"held", 0, 4096, AT(held)},
    {"trainers", 1, SEATS_MOST, AT(trainers)},
    {"stage", 0, STAGES_MOST - 1, AT(role)},
    {"patience", 0, 3600, AT(patience)},
};
enum {
    ROWS = sizeof rows / sizeof *rows,
    RATE = ROWS,
    DIE,
    END,
    MIN,
    OWN,
    ALONE
};

static const char usage[] =
    "usage: %s [OPTIONS] FILE\n"
    "model    --stages N --layers N --heads N --width N --context BYTES "
    "--seed N\n"
    "         --subspace K: activations travel as K numbers a token\n"
    "training --steps N --batch SAMPLES --micro SAMPLES --rate X\n"
    "         --power-rank N --sparta PARTS: inside of the stages\n"
    "role     --trainers N: the first ranks; --stage I or --trainer: a "
    "newcomer\n"
    "         --alone: one process, without the library\n"
    "output   --every STEPS --held SAMPLES\n"
    "members  --min WORKERS:STEP --die RANK:STEP --die-at-end RANK:STEP\n"
    "         --patience SECONDS\n";

static bool set_pair(const char *text, int *first, int *second)
{
    char *end;
    *first = (int)strtol(text, &end, 10);
    if (end == text || *end != ':') return false;
    text = end + 1;
    *second = (int)strtol(text, &end, 10);
    return end != text && !*end;
}

static bool set(struct stage_args *args, int option, const char *text)
{
    char *end = NULL;
    switch (option) {
    case RATE:
        args->rate = strtof(text, &end);
        return end != text && !*end && args->rate > 0 && args->rate <= 10;
    case DIE:
        return set_pair(text, &args->die_rank, &args->die_step);
    case END:
        return set_pair(text, &args->end_rank, &args->end_step);
    case MIN:
        return set_pair(text, &args->min, &args->min_step);
    case OWN:
        args->role = TRAINER;
        return true;
    case ALONE:
        args->alone = true;
        return true;
    default:
        break;
    }
    const long value = strtol(text, &end, 10);
    *(int *)((char *)args + rows[option].at) = (int)value;
    return end != text && !*end && value >= rows[option].low &&
           value <= rows[option].high;
}

/* What is wrong with options that are each in their range; NULL: nothing. */
static const char *find_fault(const struct stage_args *args)
{
    if (args->width % args->heads != 0)
        return "the width is no multiple of the heads";
    if (args->layers < args->stages)
        return "there are fewer layers than stages";
    if (args->role >= args->stages) return "there is no such stage";
    if (args->subspace > args->width)
        return "the subspace is wider than the activations";
    if (args->micro * (args->context + 1) >
        PCCL_MESSAGE_MAX - (int)sizeof(struct stage_header))
        return "a micro-batch of text does not fit into a message";
    if (args->power_rank > 0 && args->power_rank > args->width)
        return "the rank of PowerSGD is larger than the width";
    return NULL;
}

bool stage_args_parse(struct stage_args *args, int argc, char **argv)
{
    struct option options[ALONE + 2] = {{0}};
    *args = (struct stage_args){.stages = 2,
                                .layers = 6,
                                .heads = 4,
                                .width = 128,
                                .context = 128,
                                .seed = 1,
                                .steps = 100,
                                .batch = 16,
                                .micro = 4,
                                .rate = 1e-3f,
                                .every = 20,
                                .held = 16,
                                .trainers = 1,
                                .role = UNDECIDED,
                                .die_rank = -2,
                                .end_rank = -2};
    for (int i = 0; i < ROWS; i++)
        options[i] = (struct option){rows[i].name, required_argument, NULL, i};
    options[RATE] = (struct option){"rate", required_argument, NULL, RATE};
    options[DIE] = (struct option){"die", required_argument, NULL, DIE};
    options[END] = (struct option){"die-at-end", required_argument, NULL, END};
    options[MIN] = (struct option){"min", required_argument, NULL, MIN};
    options[OWN] = (struct option){"trainer", no_argument, NULL, OWN};
    options[ALONE] = (struct option){"alone", no_argument, NULL, ALONE};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == '?') {
            fprintf(stderr, usage, argv[0]);
            return false;
        }
        if (set(args, option, optarg)) continue;
        fprintf(stderr, "%s: --%s %s is out of its range\n", argv[0],
                options[option].name, optarg);
        return false;
    }
    const char *fault = find_fault(args);
    if (fault) fprintf(stderr, "%s: %s\n", argv[0], fault);
    if (!fault && optind != argc - 1) fprintf(stderr, usage, argv[0]);
    if (fault || optind != argc - 1) return false;
    args->path = argv[optind];
    return true;
}
