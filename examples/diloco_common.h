/* diloco_common.h - what diloco.c and async_diloco.c share: the command line,
 * the inner optimizer, the outer optimizer, and the outer state.
 *
 * DiLoCo (Douillard et al., 2024): every member trains a copy of the model for
 * some *inner* steps without a word to the others. What the copy has moved is
 * its pseudo-gradient; the members average it and take one *outer* step with
 * the mean. Only the outer state must be equal everywhere, to the last bit; the
 * copy and the moments of AdamW belong to the member alone. */
#ifndef DILOCO_COMMON_H
#define DILOCO_COMMON_H

#include "text_model.h"

#include <pccl.h>

struct diloco_args {
    const char *path;       /* of the text */
    int outer;              /* outer steps in all */
    int inner;              /* inner steps between two outer ones */
    int batch;              /* samples of one member in one inner step */
    int hidden;             /* units of the model's hidden layer */
    int min, min_step;      /* go on only with min members, from this step */
    int die_rank, die_step; /* who kills itself when; -1: nobody */
    bool hashes;            /* every member prints every outer step */
};

struct diloco {
    struct diloco_args args;
    struct text text;
    struct model model;    /* the member's copy */
    float *first, *second; /* AdamW's moments of it */
    int64_t adam_steps;
    pcclComm_t *comm;
    int first_rank; /* when it joined */
    int members;    /* equal on all members, see diloco_gather */
    size_t count;   /* weights */

    /* The outer state. */
    int64_t begun;        /* inner phases done, with pseudo-gradients to show */
    int64_t step;         /* outer steps done; less than begun: one is owed */
    int64_t contributors; /* to the last outer step */
    float loss;           /* nats per character, mean over the last step */
    float *weights, *momentum;
    pcclTensorInfo_t tensors[6]; /* the list of all these */
    pcclSharedState_t state;
};

/* Reads the command line and the text, joins the run of PCCL_MASTER; exits the
 * process with a line on stderr if that fails. */
void diloco_begin(struct diloco *d, int argc, char **argv);
void diloco_end(struct diloco *d);

/* Ends the process with a message unless the result is pcclSuccess. */
void diloco_check(const struct diloco *d, pcclResult_t result,
                  const char *what);

/* A pseudo-gradient: count floats, and the loss, which is averaged with it. */
float *diloco_vector(const struct diloco *d);
pcclReduceDescriptor_t diloco_mean(const struct diloco *d);

/* The inner phase: the copy starts from the outer weights and is trained;
 * delta is what it has moved. */
void diloco_inner(struct diloco *d, float *delta);

/* The outer step: Nesterov momentum on the averaged pseudo-gradient. */
void diloco_outer(struct diloco *d, const float *delta, int contributors);

/* Makes the outer state equal on all members. */
void diloco_share(struct diloco *d, pcclSharedStateSyncStrategy_t strategy);

/* True if there are fewer members than --min. */
bool diloco_short(const struct diloco *d);

/* Lets in who waits, and then whoever comes until --min is met; once, also if
 * nobody waits. */
void diloco_gather(struct diloco *d);

/* Prints the outer state: all members with --hashes, else rank 0. */
void diloco_report(const struct diloco *d);

/* Raises SIGKILL if --die asks this process to go now. */
void diloco_die(const struct diloco *d);

#endif
