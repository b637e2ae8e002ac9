/* vector.h - all-reduces whose every byte is checked: the result against the
 * members that contributed, the input against its copy. */
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
    float *out;  /* == in when in place */
    float *want; /* expected result */
    int weight;  /* of all members when the operation was launched */
    int size;    /* of the world then */
};

void vector_open(struct vector *v, const struct seat *seat, pcclComm_t *comm,
                 size_t count, bool in_place);
void vector_close(struct vector *v);
/* Launches the sum of a step, tag 7. */
pcclResult_t vector_launch(struct vector *v, int step,
                           pcclAsyncReduceOp_t *handle);
/* Awaits it. Success: the result is that of the world at the launch. Otherwise
 * the input is intact, and after a loss the world is smaller. */
pcclResult_t vector_await(struct vector *v, int step,
                          const pcclAsyncReduceOp_t *handle);
/* The same with the blocking call. */
pcclResult_t vector_reduce(struct vector *v, int step);
/* Seat s contributes (s + 1) * value. */
float vector_value(size_t index, int step);

#endif
