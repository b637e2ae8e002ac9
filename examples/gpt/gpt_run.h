/* gpt_run.h - what all ways of training share: options, text, model, the
 * member's place in the run, steps of its own, lines of output. */
#ifndef GPT_RUN_H
#define GPT_RUN_H

#include "gpt_args.h"
#include "gpt_model.h"
#include "gpt_text.h"

#include <pccl_train.h>

struct gpt_run {
    struct gpt_args args;
    struct gpt_text text;
    struct gpt gpt;
    /* The tensors of gpt, and one behind them for what travels along. */
    pcclTrainTensor_t tensors[GPT_TENSORS_MOST + 1];
    float *weights[GPT_TENSORS_MOST];
    float *gradients[GPT_TENSORS_MOST + 1];
    pcclOptimizer_t *optimizer;
    pcclComm_t *comm; /* NULL: this process trains alone */
    int rank, world;
    int first_rank;   /* when it joined */
    int members;      /* of the last sum; equal on all of them */
    bool accompanied; /* there were several once */
    bool alone;       /* all others are lost, and no newcomer has come yet */
    float loss;       /* of the last step of all members, nats per byte */
    double sent;      /* bytes that all members have sent, shared */
    uint64_t unsaid;  /* bytes of this member that are not yet in that, and */
    uint64_t said;    /* those that come in with the sum in flight */
};

/* Reads the command line and the text, makes model and optimizer and, unless
 * the process trains alone, joins the run of PCCL_MASTER. Prints a line on
 * stderr and exits on a failure. */
void gpt_run_begin(struct gpt_run *run, int argc, char **argv);
void gpt_run_end(struct gpt_run *run);

/* Ends the process with a message unless the result is pcclSuccess: the other
 * members notice a loss and go on. */
void gpt_run_check(const struct gpt_run *run, pcclResult_t result,
                   const char *what);

/* Reads rank and world anew. */
void gpt_run_look(struct gpt_run *run);

/* Sets gpt.gradient to the sum over this member's samples of the step;
 * *loss_out gets the sum of their losses. Returns their number, at least 1. */
int gpt_run_gradient(struct gpt_run *run, int64_t step, float *loss_out);

/* The update of step `step` with gpt.gradient, the mean over samples. */
void gpt_run_update(struct gpt_run *run, int64_t step);

/* Takes the number of members of a sum that ended with `result`. True if this
 * is the last one of several, or fewer than the master's --min-ranks: there is
 * no mean, and the caller drops the step. The next step waits for company. */
bool gpt_run_left_alone(struct gpt_run *run, pcclResult_t result,
                        uint32_t members);

/* Fewer members than --min asks for at this step, or a lone survivor. */
bool gpt_run_short(const struct gpt_run *run, int64_t step);
/* Admits newcomers, and further ones until there are enough. */
void gpt_run_gather(struct gpt_run *run, int64_t step);

/* Rank 0 prints the step, which comes `stride` steps after the last one, and
 * where it is due, the loss of what is held out. */
void gpt_run_report(struct gpt_run *run, int64_t step, int stride);

/* Raises SIGKILL if --die selects this process and step. */
void gpt_run_die(const struct gpt_run *run, int64_t step);

/* The ways of training. */
void gpt_ddp(struct gpt_run *run);
void gpt_powersgd(struct gpt_run *run);
void gpt_stack(struct gpt_run *run);
void gpt_diloco(struct gpt_run *run);
void gpt_async(struct gpt_run *run);

/* Prints how fast products and a gradient are. */
void gpt_speed(struct gpt_run *run);

#endif
