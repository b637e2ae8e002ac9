/* c_blocks.h - what the C blocks of the pages leave to the text around them. */
#ifndef PCCL_TESTS_C_BLOCKS_H
#define PCCL_TESTS_C_BLOCKS_H

#include <mpi.h>
#include <mpi_pccl.h>
#include <pccl.h>
#include <pccl_loop.h>
#include <pccl_train.h>

#include <stdbool.h>
#include <stdlib.h>

/* In all pages. */
pcclComm_t *comm;
pcclResult_t rc;
int step, steps;

pcclResult_t fail(const pcclComm_t *of);
void report(const pcclComm_t *of);

/* docs/checkpoint.md */
pcclSharedStateSyncStrategy_t strategy;

/* docs/training.md */
enum { H = 500, TENSORS = 2 };

pcclTrainTensor_t tensors[TENSORS];
float *weights[TENSORS], *gradients[TENSORS], *embedding, *bias, *gradient;
float *change;
pcclDiloco_t *diloco;
pcclDilocoOptions_t options;
pcclOptimizer_t *adam;
pcclPowerSgd_t *sgd;
pcclSparta_t *sparta;
pcclLoop_t loop;
pcclProgress_t progress;
pcclPartialInfo_t info;
float loss, clip_norm;
size_t count, n;
uint64_t samples, target;
int stages;
bool is_last_stage;

uint64_t train_one_batch(float *into);

#endif
