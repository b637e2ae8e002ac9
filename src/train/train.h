/* train.h - what the files of libpccl_train share: texts of errors, lists of
 * tensors, lists of state, and the sum over the members. */
#ifndef PCCL_TRAIN_TRAIN_H
#define PCCL_TRAIN_TRAIN_H

#include <pccl_train.h>

#include <fenv.h>

/* ---------------------------------------------------------------- errors */

/* Sets the text of pcclTrainGetLastError and returns rc. */
pcclResult_t train_fail(pcclResult_t rc, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The text of the communicator behind the name of what was done; not for
 * success. */
pcclResult_t train_fail_comm(pcclResult_t rc, const pcclComm_t *comm,
                             const char *what);
pcclResult_t train_no_memory(void);
/* An argument that is NULL. */
pcclResult_t train_null(const char *function, const char *argument);

/* Rounding to nearest and subnormals kept, whatever the caller has set: the
 * bits of members depend on it. */
static inline void train_float_begin(fenv_t *saved)
{
    (void)fegetenv(saved);
    (void)fesetenv(FE_DFL_ENV);
}

static inline void train_float_end(const fenv_t *saved)
{
    (void)fesetenv(saved);
}

/* --------------------------------------------------------------- tensors */

struct train_tensor {
    char *name;
    size_t rows, columns, count;
    size_t offset; /* in a vector of all tensors */
};

struct train_tensors {
    size_t count, total; /* tensors, elements */
    struct train_tensor *list;
    uint64_t digest; /* of names and shapes */
};

pcclResult_t train_tensors_create(struct train_tensors *t,
                                  const pcclTrainTensor_t *tensors,
                                  size_t count);
void train_tensors_free(struct train_tensors *t);
/* pcclInvalidArgument if one of the pointers is NULL. */
pcclResult_t train_tensors_data(const struct train_tensors *t,
                                const float *const *data, const char *function);

/* pcclInvalidArgument unless the options have the size of this version, and
 * their name is NULL or not empty. */
pcclResult_t train_options(const void *options, size_t size, size_t wanted,
                           const char *name, const char *function);

uint64_t train_mix(uint64_t x); /* SplitMix64 */
uint64_t train_digest(uint64_t hash, const void *data, size_t size);
bool train_finite(const float *x, size_t count);
void train_scale(float *x, size_t count, float by);
/* Zeroed floats; NULL: no memory. */
float *train_vector(size_t count);

/* ------------------------------------------------- state for all members */

struct train_state {
    pcclTensorInfo_t *infos; /* names are owned */
    size_t count, capacity;
};

/* Appends "owner.what" or, with a tensor, "owner.what.tensor". */
bool train_state_add(struct train_state *s, const char *owner, const char *what,
                     const char *tensor, void *data, size_t count,
                     pcclDataType_t type);
/* A vector of all tensors, one by one. */
bool train_state_add_all(struct train_state *s, const char *owner,
                         const char *what, const struct train_tensors *t,
                         float *vector);
pcclResult_t train_state_list(const struct train_state *s,
                              pcclTensorInfo_t *infos, size_t capacity,
                              size_t *count_out, const char *function);
void train_state_free(struct train_state *s);

/* -------------------------------------------------- sums over the members */

/* The sum of a vector over all members, whose last `exact` elements are not
 * quantized. Out of place: what was sent is there for another try. */
struct train_sum {
    float *send, *recv; /* count elements each */
    size_t count, exact;
    uint64_t tag;
    pcclQuantizationOptions_t quantization;
    uint64_t digest; /* what members must agree on */
    /* Whose sum it is: ids, as in pcclCollective_t. NULL: all members'. Owned
     * by train_sum_scope(). */
    uint64_t *members;
    size_t member_count;
    /* Its parts, for the text; they stay until the sum has ended. */
    pcclArgument_t arguments[5];
    size_t argument_count;
    /* Its own: a quantized vector and the exact elements are two operations. */
    struct train_part {
        bool in_flight;
        pcclAsyncReduceOp_t handle;
    } parts[2];
    pcclResult_t result; /* of the parts that have ended */
    pcclReduceInfo_t info;
};

/* Starts it. After an error nothing is in flight, unless train_sum_in_flight
 * says so: then train_sum_await comes before another launch. */
pcclResult_t train_sum_launch(struct train_sum *s, pcclComm_t *comm);
/* Waits. After pcclCancelled and pcclTimedOut it is still in flight; otherwise
 * it has ended, on all members with the same result. */
pcclResult_t train_sum_await(struct train_sum *s);
bool train_sum_in_flight(const struct train_sum *s);
/* Sums from now on are those of these members; NULL and 0: of all. Copies the
 * list. pcclPendingAsyncOps while one is in flight. */
pcclResult_t train_sum_scope(struct train_sum *s, const uint64_t *members,
                             size_t count, const char *function);
/* What was in flight on another communicator has ended with it. */
void train_sum_turn(struct train_sum *s, const pcclComm_t *comm);

#endif
