/* gpt_args.h - the command line of the example. */
#ifndef GPT_ARGS_H
#define GPT_ARGS_H

#include "gpt_model.h"

struct gpt_args {
    const char *way; /* of training: a name of the table in gpt.c */
    const char *path;
    int layers, heads, width, context; /* see struct gpt_shape */
    int seed;                          /* of weights and samples */
    int steps;                         /* of the inner optimizer */
    int batch;  /* samples of one step, of all members together */
    float rate; /* the highest of the schedule */
    bool sgd;   /* with a constant rate, instead of AdamW */
    int inner;  /* DiLoCo: steps between two outer ones */
    float outer_rate, outer_momentum;
    bool codes;             /* pseudo-gradients travel as 8-bit codes */
    int power_rank;         /* of PowerSGD's products */
    int every;              /* steps between two evaluations */
    int held;               /* samples of an evaluation */
    int min, min_step;      /* least members to go on from this step */
    int patience;           /* seconds to wait for a master that is not there */
    int die_rank, die_step; /* this rank kills itself at this step; -1: none */
};

/* False, with a line on stderr, if the command line is wrong. */
bool gpt_args_parse(struct gpt_args *args, int argc, char **argv);

#endif
