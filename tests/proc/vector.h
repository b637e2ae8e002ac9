/* vector.h - all-reduces whose every byte is checked: the result against the
 * members that contributed, the input against what it was. */
#ifndef PROC_VECTOR_H
#define PROC_VECTOR_H

#include "cluster.h"

/* Buffers of one rank for one size. */
struct vector {
    const struct seat *seat;
    pcclComm_t *comm;
    size_t count; /* floats */
    bool in_place;
    float *in;
    float *out; /* == in when in place */
    int weight; /* of all members when the operation was launched */
    int size;   /* of the world then */
};

void vector_open(struct vector *v, const struct seat *seat, pcclComm_t *comm,
                 size_t count, bool in_place);
void vector_close(struct vector *v);
/* Launches the sum of a step, tag 7. */
pcclResult_t vector_launch(struct vector *v, int step,
                           pcclAsyncReduceOp_t *handle);
/* Awaits it. Success: the result is that of the world at the launch. Else:
 * the input is intact, and after a loss the world is smaller. */
pcclResult_t vector_await(struct vector *v, int step,
                          const pcclAsyncReduceOp_t *handle);
/* The same with the blocking call. */
pcclResult_t vector_reduce(struct vector *v, int step);
/* Fills, and checks a sum; for operations started elsewhere. */
float vector_value(size_t index, int step);
int view_weight(const pcclComm_t *comm);

#endif
