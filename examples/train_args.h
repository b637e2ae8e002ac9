/* train_args.h - options and progress output of the training examples. */
#ifndef TRAIN_ARGS_H
#define TRAIN_ARGS_H

#include "text_model.h"

struct train_args {
    const char *path; /* of the text */
    int steps;
    int batch;    /* samples per step, of all processes together */
    int hidden;   /* units of the model's hidden layer */
    int die_rank; /* initial rank of the process to kill, -1: none, -2: all */
    int die_step; /* step at which it kills itself */
    const char *checkpoint; /* directory of checkpoints, NULL: none */
    int save_every;         /* steps from one to the next */
};

/* False, with a line on stderr, if the command line is wrong. */
bool train_args_parse(struct train_args *args, int argc, char **argv);

/* Raises SIGKILL if --die selects this process and step, but not in a job that
 * was started again. */
void train_die(const struct train_args *args, int first_rank, int64_t step);

/* Prints the first line of every rank. */
void train_begin(int rank, int world, const struct model *model);

/* Rank 0 prints the progress after the first step, every 20 steps, and after a
 * change of the number of processes. */
void train_report(int rank, int world, int64_t step, float loss,
                  double seconds);

/* Prints the last line of every rank. */
void train_done(int rank, int world, float loss, const struct model *model);

#endif
