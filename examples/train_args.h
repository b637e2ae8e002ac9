/* train_args.h - command line and progress lines of the training examples. */
#ifndef TRAIN_ARGS_H
#define TRAIN_ARGS_H

#include "text_model.h"

struct train_args {
    const char *path; /* of the text */
    int steps;
    int batch;    /* samples per step, of all processes together */
    int hidden;   /* units of the model's hidden layer */
    int die_rank; /* the process that began with this rank, -1: none, ... */
    int die_step; /* ... kills itself at this step */
};

/* False, with a line on stderr, if the command line is wrong. */
bool train_args_parse(struct train_args *args, int argc, char **argv);

/* Raises SIGKILL if --die asks this process to go now. */
void train_die(const struct train_args *args, int first_rank, int64_t step);

/* Every rank's first line. */
void train_begin(int rank, int world, const struct model *model);

/* Rank 0 tells how far the training is: after the first step, every 20 steps,
 * and whenever the number of processes has changed. */
void train_report(int rank, int world, int64_t step, float loss,
                  double seconds);

/* Every rank's last line. */
void train_done(int rank, int world, float loss, const struct model *model);

#endif
