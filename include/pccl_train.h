/* pccl_train.h - training over slow networks: compressed and sparse averages.
 *
 * A library of its own (libpccl_train) on top of pccl.h: optimizers, DiLoCo,
 * clipping by stage, PowerSGD, and sparse averages of parameters (SPARTA). It
 * starts no thread of its own but those of OpenMP, for the large products of
 * matrices, and knows no model: a training gives it lists of tensors.
 *
 * Tensors are float vectors in the memory of this host. A list names their
 * shapes (pcclTrainTensor_t); a call gets their data as an array with a pointer
 * for each, in the order of the list. Lists are equal on all members: what
 * travels has a digest of them, and members that disagree get
 * pcclInvalidArgument, with a text that names the argument.
 *
 * State. Each object lists the part of its state that all members hold alike,
 * for pcclSynchronizeSharedState and for checkpoints. A newcomer creates its
 * objects, connects, synchronizes that state with the others, and goes on as
 * one of them. All other state belongs to the member alone. A program may
 * have several objects of a kind: `name`, in their options, tells them apart.
 *
 * Same bits. Results of values that all members hold are equal on all of them
 * to the last bit, whatever their processors, the number of their threads, and
 * the rounding of the calling thread.
 *
 * Losses. A call that communicates changes nothing until all of it has
 * succeeded: after an error all is as it was, and the buffers are the caller's.
 * pcclRankConnectionLost means that a member was lost, for all survivors alike:
 * they call again. After pcclCancelled and pcclTimedOut the operation goes on:
 * the same call again, with the same arguments, takes it up, and the object may
 * not be destroyed before it has ended or the communicator is destroyed. With
 * another communicator, after that, the call begins anew.
 *
 * Numbers that are not finite. A member that has some would spoil the sums of
 * all. It is noticed before it sends: each function says what happens then, and
 * it is the same on all members.
 *
 * Threads. A thread at a time may use an object; different objects are
 * independent. Operations of objects that are under way at the same time need
 * different tags.
 *
 * Results are those of pccl.h. pcclTrainGetLastError has the reason. */
#ifndef PCCL_TRAIN_H
#define PCCL_TRAIN_H

#include "pccl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One tensor of a list. */
typedef struct pcclTrainTensor_t {
    const char *name; /* not empty, and of no other tensor of the list */
    size_t rows;      /* the first dimension; 1 of a vector */
    size_t columns; /* the product of the others; rows lie one after another */
} pcclTrainTensor_t;

/* Why the last failed call of this library in this thread failed: one line of
 * at most 255 bytes, "" if none has. It holds the text of pcclGetLastError if a
 * call of pccl.h was the cause. Copied into buf (size bytes, at least 1, always
 * terminated).
 *
 * pcclInvalidArgument  buf is NULL, or size is 0. */
PCCL_EXPORT pcclResult_t pcclTrainGetLastError(char *buf, size_t size);

/* ------------------------------------------------------------ optimizers */

typedef enum pcclOptimizerKind_t {
    pcclOptimizerAdamW = 0,   /* Loshchilov & Hutter, ICLR 2019 */
    pcclOptimizerNesterov = 1 /* Sutskever et al., ICML 2013, with the gradient
                                 at the current point, as in PyTorch */
} pcclOptimizerKind_t;

typedef struct pcclOptimizerOptions_t {
    size_t size; /* sizeof(pcclOptimizerOptions_t), for growth */
    pcclOptimizerKind_t kind;
    float rate;
    float momentum;   /* AdamW: beta1; in [0, 1) */
    float beta2;      /* AdamW only, as are the two below; in [0, 1) */
    float epsilon;    /* greater than 0 */
    float decay;      /* of weights, decoupled: each step takes rate * decay */
    const char *name; /* in the shared state; NULL: "optimizer" */
} pcclOptimizerOptions_t;

/* The state of an optimizer for a list of tensors. */
typedef struct pcclOptimizer_t pcclOptimizer_t;

/* Creates an optimizer that has done no step, for `count` tensors. The list and
 * the options are copied. The caller owns it until pcclOptimizerDestroy.
 *
 * pcclInvalidArgument  a tensor without a name, with one of another tensor, or
 *                      without elements; or an option out of its range. */
PCCL_EXPORT pcclResult_t pcclOptimizerCreate(
    const pcclTrainTensor_t *tensors, size_t count,
    const pcclOptimizerOptions_t *options, pcclOptimizer_t **optimizer_out);
/* Frees an optimizer; NULL is allowed. pcclSuccess. */
PCCL_EXPORT pcclResult_t pcclOptimizerDestroy(pcclOptimizer_t *optimizer);

/* One step: changes the weights by their gradients. Local. Where gradients and
 * state are equal on all members, so are the weights, to the last bit.
 *
 * AdamW, with step number t, m and v starting at 0:
 *
 *     m = beta1 m + (1 - beta1) g      v = beta2 v + (1 - beta2) g^2
 *     w -= rate (m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon)
 *                + decay w)
 *
 * Nesterov, with m starting at 0:
 *
 *     m = momentum m + g               w -= rate (g + momentum m)
 *
 * weights, gradients  a pointer for each tensor. Gradients that are not finite
 *                     go into the state as they are: pcclClip notices them. */
PCCL_EXPORT pcclResult_t pcclOptimizerStep(pcclOptimizer_t *optimizer,
                                           float *const *weights,
                                           const float *const *gradients);

/* Sets the rate of the next steps, for schedules.
 *
 * pcclInvalidArgument  it is negative or not finite. */
PCCL_EXPORT pcclResult_t pcclOptimizerSetRate(pcclOptimizer_t *optimizer,
                                              float rate);

/* Lists the state: the number of steps, and the moments of each tensor. Members
 * that take the same steps share it. The inner optimizer of DiLoCo is its
 * member's own, and is not shared.
 *
 * infos      gets the tensors, which stay the object's until it is destroyed;
 *            NULL with a capacity of 0 asks for their number alone.
 * capacity   entries of infos.
 * count_out  gets the number of tensors.
 *
 * pcclInvalidArgument  a capacity other than 0 that is too small. */
PCCL_EXPORT pcclResult_t pcclOptimizerListState(pcclOptimizer_t *optimizer,
                                                pcclTensorInfo_t *infos,
                                                size_t capacity,
                                                size_t *count_out);

/* -------------------------------------------------------------- clipping */

/* Scales the gradients by min(1, limit / norm), where norm is the Euclidean
 * norm over all tensors. Local; the same bits for the same gradients.
 *
 * limit     greater than 0; infinity measures and scales nothing.
 * norm_out  gets the norm before scaling, may be NULL.
 *
 * pcclOperationFailed  the norm is not finite: nothing is scaled, norm_out is
 *                      set. Where gradients are averages all members get this;
 *                      they skip the step. */
PCCL_EXPORT pcclResult_t pcclClip(const pcclTrainTensor_t *tensors,
                                  size_t count, float *const *gradients,
                                  float limit, float *norm_out);

/* As pcclClip, for the tensors of one stage of a model that is split into
 * `stages`, none of which knows the norm of the others. The limit is
 * 1 / sqrt(stages), and 5 / sqrt(stages) for the last one (tail). It
 * approximates a clipping of the whole model to 1.
 *
 * pcclInvalidArgument  stages is 0, or as in pcclClip. */
PCCL_EXPORT pcclResult_t pcclClipStage(const pcclTrainTensor_t *tensors,
                                       size_t count, float *const *gradients,
                                       uint32_t stages, bool tail,
                                       float *norm_out);

/* ---------------------------------------------------------------- DiLoCo
 * Each member trains a copy of the weights for some inner steps without
 * communication. The difference is its pseudo-gradient; the mean over the
 * members is the gradient of one outer step, by SGD with Nesterov momentum
 * (Douillard et al., 2024). The outer weights and their momentum are the shared
 * state. */

typedef struct pcclDilocoOptions_t {
    size_t size;       /* sizeof(pcclDilocoOptions_t), for growth */
    float rate;        /* of the outer steps; 0.5 or 0.7 are usual */
    float momentum;    /* in [0, 1); 0.7 or 0.9 are usual */
    size_t stat_count; /* further numbers that are averaged along: a loss */
    uint64_t tag;      /* this one, and the next one if it is quantized */
    /* How pseudo-gradients travel: {pcclUint8, pcclQuantMinMax} sends a
     * quarter. Statistics and weights of members are exact all the same. */
    pcclQuantizationOptions_t quantization;
    const char *name;   /* in the shared state; NULL: "diloco" */
    bool goes_on_alone; /* a member that all others have left applies its own
                           pseudo-gradients; see pcclDilocoLand */
} pcclDilocoOptions_t;

/* The outer weights and what they need. */
typedef struct pcclDiloco_t pcclDiloco_t;

typedef struct pcclDilocoProgress_t {
    size_t size;    /* in: sizeof(pcclDilocoProgress_t); out: bytes set */
    uint64_t begun; /* pseudo-gradients that were taken in the run */
    uint64_t step;  /* outer steps; if less than begun, one is outstanding */
    uint64_t contributors; /* members of the last outer step */
    const float *stats;    /* of the last outer step: stat_count numbers */
    bool in_flight;        /* launched here and not landed */
} pcclDilocoProgress_t;

/* Creates the outer state with these weights and no steps done. It holds five
 * vectors of the size of all tensors together. The list, the weights and the
 * options are copied; the caller owns it until pcclDilocoDestroy.
 *
 * pcclInvalidArgument  as pcclOptimizerCreate. */
PCCL_EXPORT pcclResult_t pcclDilocoCreate(const pcclTrainTensor_t *tensors,
                                          size_t count,
                                          const float *const *weights,
                                          const pcclDilocoOptions_t *options,
                                          pcclDiloco_t **diloco_out);
/* Frees it; NULL is allowed. Nothing may be in flight, unless the communicator
 * was destroyed. pcclSuccess. */
PCCL_EXPORT pcclResult_t pcclDilocoDestroy(pcclDiloco_t *diloco);

/* Lists the shared state, as pcclOptimizerListState: progress, statistics,
 * weights and momentum. Synchronize it while nothing is in flight. */
PCCL_EXPORT pcclResult_t pcclDilocoListState(pcclDiloco_t *diloco,
                                             pcclTensorInfo_t *infos,
                                             size_t capacity,
                                             size_t *count_out);

/* Copies the outer weights into the member's: the beginning of inner steps, and
 * what evaluations use. */
PCCL_EXPORT pcclResult_t pcclDilocoGetWeights(const pcclDiloco_t *diloco,
                                              float *const *weights);

/* Where the training is, see pcclDilocoProgress_t. Local. */
PCCL_EXPORT pcclResult_t pcclDilocoGetProgress(const pcclDiloco_t *diloco,
                                               pcclDilocoProgress_t *progress);

/* The outer step, whole: pcclDilocoTake, pcclDilocoLaunch, pcclDilocoLand,
 * pcclDilocoApply and pcclDilocoGetWeights. Losses are handled inside: it
 * returns with the mean of the survivors. After an error the weights are as
 * they were, and the next call begins with pcclDilocoTake.
 *
 * weights  the member's weights after its inner steps; then the outer weights.
 * stats    stat_count numbers of this member, see pcclDilocoGetProgress. May be
 *          NULL if that is 0.
 * weight   what this member counts in the mean, say the samples it has seen;
 *          1 for all is the plain mean. Not negative.
 * info     may be NULL. */
PCCL_EXPORT pcclResult_t pcclDilocoStep(pcclDiloco_t *diloco,
                                        float *const *weights,
                                        const float *stats, float weight,
                                        pcclComm_t *comm,
                                        pcclReduceInfo_t *info);

/* The parts of an outer step. In asynchronous DiLoCo inner phase k + 1 runs
 * while pseudo-gradient k is under way, and each outer step comes one phase
 * late:
 *
 *     inner steps; pcclDilocoTake, of k + 1
 *     if k is outstanding: pcclDilocoLand, of k; pcclDilocoApply
 *     pcclDilocoLaunch, of k + 1; pcclDilocoGetWeights
 *
 * pcclDilocoTake takes the pseudo-gradient: the outer weights less these ones.
 * Local. One that is not finite counts with weight 0, whatever the weight: the
 * member goes on with the mean of the others.
 *
 * pcclInvalidUsage     one is taken and not launched.
 * pcclInvalidArgument  the weight is negative or not finite. */
PCCL_EXPORT pcclResult_t pcclDilocoTake(pcclDiloco_t *diloco,
                                        const float *const *weights,
                                        const float *stats, float weight);

/* Starts the mean of what was taken, and returns. It uses the processor beside
 * the inner steps only for what arrives. All members launch; the communicator
 * is used until pcclDilocoLand has succeeded.
 *
 * pcclInvalidUsage  nothing is taken, or one is in flight.
 * otherwise         as pcclAllReduceAsync: what was taken is dropped, and
 *                   `begun` is taken back. */
PCCL_EXPORT pcclResult_t pcclDilocoLaunch(pcclDiloco_t *diloco,
                                          pcclComm_t *comm);

/* Waits for the mean in flight. If a member is lost it starts again, without
 * that one, until it has succeeded. Succeeds at once if it has landed.
 *
 * pcclInvalidUsage     nothing was launched.
 * pcclCancelled, pcclTimedOut  it is still in flight: call again.
 * pcclOperationFailed  no member had a weight above 0: what was launched is
 *                      dropped on all members, and `begun` is taken back.
 * pcclTooFewPeers      this member trained with others and is alone now. A mean
 *                      of one is none: its pseudo-gradient is dropped, and
 *                      `begun` is taken back. The caller admits newcomers,
 *                      gives them the state, and goes on from the weights.
 * otherwise            as pcclAllReduce: all that was launched or taken is
 *                      dropped, and `begun` is taken back. */
PCCL_EXPORT pcclResult_t pcclDilocoLand(pcclDiloco_t *diloco,
                                        pcclReduceInfo_t *info);

/* The outer step with the mean that has landed. Local; the same bits on all
 * members.
 *
 * pcclInvalidUsage  none has landed. */
PCCL_EXPORT pcclResult_t pcclDilocoApply(pcclDiloco_t *diloco);

/* -------------------------------------------------------------- PowerSGD
 * Gradients of matrices travel as products of rank r: for m x n numbers only
 * r (m + n) do (Vogels et al., NeurIPS 2019). Each member keeps the difference,
 * its error, and adds it to its next gradient, so that nothing is lost:
 *
 *     M = E + G                 E of this member
 *     P = mean(M Q)             Q of the last step; summed over the members
 *     P = orthonormal(P)
 *     Q' = mean(M^T P)          summed over the members
 *     E' = M - P (M^T P)^T      with this member's own part of Q'
 *     G = P Q'^T                the result, equal on all members
 *
 * so P Q'^T + mean(E') = mean(E + G) in every step. E and Q change only when
 * both sums have succeeded. */

typedef struct pcclPowerSgdOptions_t {
    size_t size;      /* sizeof(pcclPowerSgdOptions_t), for growth */
    uint32_t rank;    /* r, from 1 on */
    uint64_t seed;    /* of the first Q; equal on all members */
    uint64_t tag;     /* of the operations */
    const char *name; /* in the shared state; NULL: "powersgd" */
} pcclPowerSgdOptions_t;

/* Q and the errors for a list of tensors. */
typedef struct pcclPowerSgd_t pcclPowerSgd_t;

/* Creates it, with a random Q and errors of 0. Matrices are compressed that
 * become half as large or less: 2 r (m + n) <= m n. The others, and vectors,
 * ride along as they are. It holds two vectors of the size of the compressed
 * tensors and four of what travels; the caller owns it until
 * pcclPowerSgdDestroy.
 *
 * pcclInvalidArgument  rank is 0, or larger than the smaller side of each
 *                      tensor that is no vector; or as pcclOptimizerCreate. */
PCCL_EXPORT pcclResult_t pcclPowerSgdCreate(
    const pcclTrainTensor_t *tensors, size_t count,
    const pcclPowerSgdOptions_t *options, pcclPowerSgd_t **powersgd_out);
/* Frees it; NULL is allowed. Nothing may be in flight, unless the communicator
 * was destroyed. pcclSuccess. */
PCCL_EXPORT pcclResult_t pcclPowerSgdDestroy(pcclPowerSgd_t *powersgd);

/* Lists the shared state, as pcclOptimizerListState: the number of steps, and Q
 * of each compressed tensor. The errors are not in it: a newcomer begins with
 * 0, as it owes nothing. */
PCCL_EXPORT pcclResult_t pcclPowerSgdListState(pcclPowerSgd_t *powersgd,
                                               pcclTensorInfo_t *infos,
                                               size_t capacity,
                                               size_t *count_out);

/* From now on the sums are those of `count` members by their ids
 * (pcclMember_t.id), which only these call: of one stage of a model that is
 * split among the members, say. The list is equal on all of them, has this
 * member in it, and is copied; NULL and 0: all members again. A sum then fails
 * with pcclRankConnectionLost while one of the list is gone.
 *
 * pcclPendingAsyncOps  a call was cancelled, or timed out: call it again first.
 * pcclInvalidArgument  one of the two is 0 and the other is not. */
PCCL_EXPORT pcclResult_t pcclPowerSgdSetScope(pcclPowerSgd_t *powersgd,
                                              const uint64_t *members,
                                              size_t count);

/* Replaces the gradients by their compressed mean over all members. Two sums
 * follow each other; until both have succeeded nothing changes here, neither
 * gradients nor errors nor Q.
 *
 * gradients  a pointer for each tensor; all of them finite.
 * weight     what this member counts: the number of its samples, or 1. Not
 *            negative. With 0 its gradients are not used, and its error stays;
 *            if all are 0, the result is 0 and nothing else changes.
 * info       may be NULL. The bytes of both sums.
 *
 * pcclRankConnectionLost  a member was lost, all is as it was: call again with
 *                         the same gradients.
 * pcclOperationFailed     a member has numbers that are not finite, or a sum
 *                         is too large: all members get this and skip the step.
 *                         Nothing has changed. The text names the tensor where
 *                         it is this member's.
 * otherwise               as pcclCollective. */
PCCL_EXPORT pcclResult_t pcclPowerSgdReduce(pcclPowerSgd_t *powersgd,
                                            float *const *gradients,
                                            float weight, pcclComm_t *comm,
                                            pcclReduceInfo_t *info);

/* Sets *error_out to the error of a tensor, as large as the tensor: NULL if it
 * is not compressed. A program may store it in this member's checkpoint, write
 * it back, or set it to 0. The address is valid until the next
 * pcclPowerSgdReduce.
 *
 * pcclInvalidArgument  there is no such tensor. */
PCCL_EXPORT pcclResult_t pcclPowerSgdGetError(pcclPowerSgd_t *powersgd,
                                              size_t tensor, float **error_out);

typedef struct pcclPowerSgdInfo_t {
    size_t size;       /* in: sizeof(pcclPowerSgdInfo_t); out: bytes set */
    uint64_t steps;    /* reductions that have succeeded, of the run */
    size_t compressed; /* tensors; the others ride along */
    size_t elements;   /* of all tensors */
    size_t sent;       /* numbers that are summed instead of them */
} pcclPowerSgdInfo_t;

/* What it does with the list. Local. */
PCCL_EXPORT pcclResult_t pcclPowerSgdGetInfo(const pcclPowerSgd_t *powersgd,
                                             pcclPowerSgdInfo_t *info);

/* ---------------------------------------------------------------- SPARTA
 * Weights of members drift apart where members miss means of gradients. Sparse
 * averages of parameters hold them together: after so many steps, one of K
 * disjoint parts of the weights is replaced by its mean over the members. In
 * each K rounds, counted from the first one, each element has its turn, and the
 * parts are others in the next K (Beton et al., ICLR 2025, workshop MCDC).
 * Moments of optimizers are not averaged. */

typedef struct pcclSpartaOptions_t {
    size_t size;       /* sizeof(pcclSpartaOptions_t), for growth */
    uint32_t parts;    /* K, from 1 on; 20 averages 5 % in a round */
    uint32_t every;    /* steps, from 1 on, between rounds; 5 is usual */
    uint64_t seed;     /* of the choice of elements; equal on all members */
    uint64_t tag;      /* of the operations */
    size_t stat_count; /* numbers of the program that are averaged in each
                          round: statistics of clipping */
    const char *name;  /* in the shared state; NULL: "sparta" */
    /* 0: a round waits for all members. Else it is a pcclAllReducePartial that
     * ends after so many milliseconds with what has come by then: what is
     * missing stays as it is, until its turn in the next K rounds. */
    uint32_t deadline_ms;
} pcclSpartaOptions_t;

typedef struct pcclSpartaInfo_t {
    size_t size;     /* in: sizeof(pcclSpartaInfo_t); out: bytes set */
    uint64_t steps;  /* of the run */
    size_t chosen;   /* elements of the last round here, */
    size_t averaged; /* and those that are means now; less than `chosen` where
                        parts are missing */
} pcclSpartaInfo_t;

/* The place in the sequence of parts. */
typedef struct pcclSparta_t pcclSparta_t;

/* Creates it, at step 0. It holds two vectors of the size of a part. Which part
 * an element of a tensor is in follows from a hash of the seed, the round, and
 * the element's place; nothing is stored for it. The caller owns it until
 * pcclSpartaDestroy.
 *
 * pcclInvalidArgument  parts or `every` is 0; or as pcclOptimizerCreate. */
PCCL_EXPORT pcclResult_t pcclSpartaCreate(const pcclTrainTensor_t *tensors,
                                          size_t count,
                                          const pcclSpartaOptions_t *options,
                                          pcclSparta_t **sparta_out);
/* Frees it; NULL is allowed. Nothing may be in flight, unless the communicator
 * was destroyed. pcclSuccess. */
PCCL_EXPORT pcclResult_t pcclSpartaDestroy(pcclSparta_t *sparta);

/* Lists the shared state, as pcclOptimizerListState: the number of steps. The
 * weights are the program's, to be shared by it. */
PCCL_EXPORT pcclResult_t pcclSpartaListState(pcclSparta_t *sparta,
                                             pcclTensorInfo_t *infos,
                                             size_t capacity,
                                             size_t *count_out);

/* Counts a step, to be called in each by all members; in each step number
 * `every`, replaces the next part of the weights by its mean. Nothing else
 * communicates or waits. A member that has numbers in the part, or statistics,
 * that are not finite takes the mean of the others and adds nothing to it.
 *
 * weights  a pointer for each tensor.
 * stats    stat_count numbers, replaced by their mean in each round. May be
 *          NULL if there are none.
 * info     may be NULL. local_world_size is 0 in steps without a round.
 *
 * With a deadline a member that is late gets the means of the others. Members
 * then do not compare their lists and options.
 *
 * pcclRankConnectionLost  a member was lost, all is as it was: call again. Not
 *                         with a deadline: the loss costs its contribution.
 * pcclOperationFailed     no member has finite numbers in the part, or their
 *                         sum is too large, or nothing came in time. The same
 *                         for all: the weights are as they were, and the step
 *                         counts.
 * otherwise               as pcclCollective, or pcclAllReducePartial. */
PCCL_EXPORT pcclResult_t pcclSpartaStep(pcclSparta_t *sparta,
                                        float *const *weights, float *stats,
                                        pcclComm_t *comm,
                                        pcclReduceInfo_t *info);

/* As pcclPowerSgdSetScope, for the rounds.
 *
 * pcclInvalidUsage  rounds have a deadline: those are of all members. */
PCCL_EXPORT pcclResult_t pcclSpartaSetScope(pcclSparta_t *sparta,
                                            const uint64_t *members,
                                            size_t count);

/* Where it is, and what has come of the last round. Local. */
PCCL_EXPORT pcclResult_t pcclSpartaGetInfo(const pcclSparta_t *sparta,
                                           pcclSpartaInfo_t *info);

#ifdef __cplusplus
}
#endif

#endif
