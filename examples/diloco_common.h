/* diloco_common.h - shared by diloco.c and async_diloco.c: command line, inner
 * steps, reports. The optimizers are those of pccl_train.h.
 *
 * DiLoCo (Douillard et al., 2024): every member trains a copy of the model for
 * some *inner* steps without communication. The difference of weights is its
 * pseudo-gradient; the members average it and take one *outer* step with the
 * mean. Only the outer state must be equal everywhere, to the last bit; the
 * copy and the moments of AdamW belong to the member alone. */
#ifndef DILOCO_COMMON_H
#define DILOCO_COMMON_H

#include "text_model.h"

#include <pccl_train.h>

struct diloco_args {
    const char *path;       /* of the text file */
    int outer;              /* outer steps in all */
    int inner;              /* inner steps between two outer ones */
    int batch;              /* samples of one member in one inner step */
    int hidden;             /* units of the model's hidden layer */
    int min, min_step;      /* least members to go on from this step */
    int die_rank, die_step; /* this rank kills itself at this step; -1: none */
    bool hashes;            /* all members print every outer step */
};

struct diloco {
    struct diloco_args args;
    struct text text;
    struct model model;     /* the member's copy */
    pcclOptimizer_t *inner; /* its AdamW, this member's own */
    pcclDiloco_t *outer;    /* what all members share */
    pcclDilocoProgress_t at;
    pcclSharedState_t state; /* the tensors of `outer` */
    pcclComm_t *comm;
    int first_rank; /* its rank when it joined */
    int members;    /* equal on all members, see diloco_gather */
    bool alone;     /* all others were lost, and a step was dropped */
    float loss;     /* nats per character, mean over its last inner steps */
};

/* Reads the command line and the text, and joins the run of PCCL_MASTER; on a
 * failure prints a line on stderr and exits. */
void diloco_begin(struct diloco *d, int argc, char **argv);
void diloco_end(struct diloco *d);

/* Ends the process with a message unless the result is pcclSuccess. */
void diloco_check(const struct diloco *d, pcclResult_t result,
                  const char *what);

/* The inner phase: trains the copy from the outer weights. */
void diloco_inner(struct diloco *d);

/* Reads the progress of the outer state into d->at. */
void diloco_look(struct diloco *d);

/* Whether this is what a lone survivor gets, whose step the library has
 * dropped: a mean of one is none. diloco_gather comes next. */
bool diloco_left_alone(struct diloco *d, pcclResult_t result);

/* Makes the outer state equal on all members. */
void diloco_share(struct diloco *d, pcclSharedStateSyncStrategy_t strategy);

/* Prints how much of the outer state this member lacked, if anything. */
void diloco_received(const struct diloco *d, uint64_t bytes);

/* True if there are fewer members than --min, or one that was left alone. */
bool diloco_short(const struct diloco *d);

/* Admits waiting newcomers, and further ones until there are enough; updates at
 * least once. */
void diloco_gather(struct diloco *d);

/* Prints the outer state: all members with --hashes, else rank 0. */
void diloco_report(const struct diloco *d);

/* Raises SIGKILL if --die selects this process and step. */
void diloco_die(const struct diloco *d);

#endif
