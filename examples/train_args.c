/* train_args.c - command line and progress lines of the training examples. */
#include "train_args.h"

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct option options[] = {
    {"steps", required_argument, NULL, 's'},
    {"batch", required_argument, NULL, 'b'},
    {"hidden", required_argument, NULL, 'h'},
    {"die", required_argument, NULL, 'd'},
    {"checkpoint", required_argument, NULL, 'c'},
    {"save-every", required_argument, NULL, 'e'},
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: %s [--steps N] [--batch N] [--hidden N] [--die "
    "RANK:STEP|all:STEP]\n"
    "       [--checkpoint DIRECTORY] [--save-every N] FILE\n";

/* Parses a number of low..1000000 that ends at `end`. */
static bool number(int *out, const char *text, int low, char end,
                   const char **rest)
{
    char *stop;
    long value = strtol(text, &stop, 10);
    if (stop == text || *stop != end || value < low || value > 1000000)
        return false;
    *out = (int)value;
    if (rest) *rest = stop + 1;
    return true;
}

bool train_args_parse(struct train_args *args, int argc, char **argv)
{
    *args = (struct train_args){.steps = 300,
                                .batch = 256,
                                .hidden = 128,
                                .die_rank = -1,
                                .save_every = 50};
    bool ok = true;
    int option;
    while (ok && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        const char *step;
        switch (option) {
        case 's':
            ok = number(&args->steps, optarg, 1, '\0', NULL);
            break;
        case 'b':
            ok = number(&args->batch, optarg, 1, '\0', NULL);
            break;
        case 'h':
            ok = number(&args->hidden, optarg, 1, '\0', NULL);
            break;
        case 'd':
            args->die_rank = -2;
            step = optarg + 4;
            ok = (strncmp(optarg, "all:", 4) == 0 ||
                  number(&args->die_rank, optarg, 0, ':', &step)) &&
                 number(&args->die_step, step, 0, '\0', NULL);
            break;
        case 'c':
            args->checkpoint = optarg;
            break;
        case 'e':
            ok = number(&args->save_every, optarg, 1, '\0', NULL);
            break;
        default:
            ok = false;
        }
    }
    ok = ok && optind == argc - 1;
    if (!ok) {
        fprintf(stderr, usage, argv[0]);
        return false;
    }
    args->path = argv[optind];
    return true;
}

void train_die(const struct train_args *args, int first_rank, int64_t step)
{
    const char *restart = getenv("PCCL_RESTART");
    bool first = !restart || *restart == '0';
    bool chosen = args->die_rank == -2 || first_rank == args->die_rank;
    if (first && chosen && step == args->die_step) raise(SIGKILL);
}

void train_begin(int rank, int world, const struct model *model)
{
    printf("rank %d/%d: pid %d, %zu weights, step %" PRId64 "\n", rank, world,
           (int)getpid(), model->count, model->state->step);
    fflush(stdout);
}

void train_report(int rank, int world, int64_t step, float loss, double seconds)
{
    static int world_before;
    bool changed = world_before != 0 && world != world_before;
    if (rank == 0 && (step == 1 || step % 20 == 0 || changed)) {
        printf("step %4" PRId64 "  %d ranks  loss %.4f  %.2f s\n", step, world,
               (double)loss, seconds);
        fflush(stdout);
    }
    world_before = world;
}

void train_done(int rank, int world, float loss, const struct model *model)
{
    printf("rank %d/%d: done, loss %.4f, weights %016" PRIx64 "\n", rank, world,
           (double)loss, model_hash(model));
    fflush(stdout);
}
