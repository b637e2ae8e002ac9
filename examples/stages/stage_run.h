/* stage_run.h - what workers and trainers share: options, the seats of all
 * members, the agreement at the end of a step.
 *
 * A step. All members take their seats: newcomers are admitted and get their
 * stage's state. Trainers send micro-batches through the stages, each forward
 * and back, from worker to worker by messages, until each stage holds the
 * gradient of every sample. They say so to the workers. The workers of each
 * stage add up their gradients, and all members agree whether each stage has
 * all samples. If so, all update their weights. If not, because a worker has
 * died with what it had added, trainers have that part computed again; if a
 * trainer has died, the step begins again. So each sample counts once, whoever
 * dies. */
#ifndef STAGE_RUN_H
#define STAGE_RUN_H

#include "../gpt/gpt_text.h"
#include "stage_part.h"

#include <pccl_loop.h>

enum {
    STAGES_MOST = 16,
    SEATS_MOST = 256,
    MICRO_MOST = 16, /* samples of a micro-batch */
    TRAINER = -1,    /* instead of a stage */
};

struct stage_args {
    const char *path;
    int stages, layers, heads, width, context, subspace;
    int seed, steps, batch, micro;
    float rate;
    int power_rank, sparta; /* 0: neither */
    int every, held;
    int trainers;           /* of the ranks that start together */
    int role;               /* a stage, TRAINER; or UNDECIDED */
    int die_rank, die_step; /* a worker with gradients, or a trainer, dies */
    int end_rank, end_step; /* one that has heard that all are done */
    int min, min_step;      /* from this step on as many workers, or it waits */
    bool alone;             /* one process, without the library */
    int patience;           /* seconds to wait for a master */
};
enum { UNDECIDED = -2 };

struct seat {
    uint64_t id; /* pcclMember_t.id */
    int32_t stage;
    int32_t ready; /* it has its stage's state */
};

/* What is added up over all members at the end of a step. */
struct stage_tally {
    double incomplete; /* workers whose stage lacks samples */
    double loss;       /* of the samples that the last stage has */
    double moved;      /* bytes of activations and their gradients */
    double tokens;     /* of such, for all of that */
};

struct stage_run {
    struct stage_args args;
    struct gpt gpt;
    struct stage_part part;
    struct gpt_text text;
    pcclComm_t *comm;
    pcclLoop_t loop;
    pcclTensorInfo_t info;
    pcclSharedState_t state;
    int64_t step;
    int launched; /* the rank at the start; -1: a newcomer */
    int role;
    bool ready;
    uint64_t own; /* this member's id */
    struct seat seats[SEATS_MOST];
    size_t seat_count;
    struct stage_tally tally;  /* of the whole run */
    double begin;              /* CLOCK_MONOTONIC, of the first step */
    struct stage_work *work;   /* of a worker */
    struct stage_route *route; /* of a trainer */
};

/* Header of a message; the rest is the samples. */
enum stage_kind {
    KIND_FORWARD,  /* gets the activation, answers with the next one */
    KIND_LOSS,     /* the last stage: answers with the loss alone */
    KIND_FINISH,   /* and with the gradient of the activation */
    KIND_BACKWARD, /* gets activation and gradient, answers with a gradient */
    KIND_ANSWER,
    KIND_END, /* of a trainer's part of the step */
};
struct stage_header {
    int32_t kind, samples;
    uint64_t request;
    double loss;
};
/* Keys of the transfers of a request. */
enum { KEY_IN, KEY_GRADIENT, KEY_ANSWER, KEYS };
#define STAGE_STATE_KEY (UINT64_MAX / 2)

bool stage_args_parse(struct stage_args *args, int argc, char **argv);

/* Ends the process with a sentence, unless the result is success: the others
 * notice a loss and go on. */
void stage_check(const struct stage_run *run, pcclResult_t result,
                 const char *what);
_Noreturn void stage_fail(const char *format, ...);
void *stage_allocate(size_t count, size_t size);

void stage_run_begin(struct stage_run *run);
void stage_run_end(struct stage_run *run);
/* Admits newcomers, and seats everybody. False: there is nobody to go on with
 * yet; to be called again. */
bool stage_run_sit(struct stage_run *run);
/* Seats without those that the view has lost. True: a trainer is among them. */
bool stage_run_sit_closer(struct stage_run *run);
/* Of the seats, those of a stage (or of trainers). Returns their number. */
size_t stage_run_list(const struct stage_run *run, int stage, uint64_t *ids);
/* The tally of all members; *mine becomes it. */
void stage_run_agree(struct stage_run *run, struct stage_tally *mine);

/* --- stage_work.c: a worker --- */
void stage_work_begin(struct stage_run *run);
void stage_work_end(struct stage_run *run);
/* Serves trainers until all have ended the step, and adds up what the stage
 * has. True: it has all samples. */
bool stage_work_serve(struct stage_run *run);
/* What this worker has of the step. */
void stage_work_tell(struct stage_run *run, struct stage_tally *tally);
/* The update with what was added up; or forgets it. */
void stage_work_update(struct stage_run *run);
void stage_work_forget(struct stage_run *run);
/* Gives the stage's state to a newcomer, or gets it. */
void stage_work_give(struct stage_run *run, uint64_t to);
void stage_work_get(struct stage_run *run, uint64_t from);

/* --- stage_route.c: a trainer --- */
void stage_route_begin(struct stage_run *run);
void stage_route_end(struct stage_run *run);
/* Its part of the step; again: what was lost since. */
void stage_route_step(struct stage_run *run, bool anew,
                      struct stage_tally *tally);

#endif
