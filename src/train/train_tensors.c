/* train_tensors.c - lists of tensors, and of the state that members share. */
#include "train.h"

#include "../base/fnv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------ small things */

uint64_t train_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t train_digest(uint64_t hash, const void *data, size_t size)
{
    return fnv_bytes(hash, data, size);
}

/* x - x is 0 of what is finite, else NaN, and a sum that has one stays NaN. */
bool train_finite(const float *x, size_t count)
{
    float sums[16] = {0};
    size_t i = 0;
    for (; i + 16 <= count; i += 16) {
        for (size_t k = 0; k < 16; k++) sums[k] += x[i + k] - x[i + k];
    }
    for (; i < count; i++) sums[0] += x[i] - x[i];
    for (size_t k = 1; k < 16; k++) sums[0] += sums[k];
    return sums[0] == 0;
}

void train_scale(float *x, size_t count, float by)
{
    for (size_t i = 0; i < count; i++) x[i] *= by;
}

float *train_vector(size_t count)
{
    return calloc(count > 0 ? count : 1, sizeof(float));
}

/* ----------------------------------------------------------------- tensors */

static int by_name(const void *a, const void *b)
{
    const struct train_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static pcclResult_t check_names(const struct train_tensors *t)
{
    const struct train_tensor **sorted = calloc(t->count, sizeof(void *));
    if (!sorted) return train_no_memory();
    for (size_t i = 0; i < t->count; i++) sorted[i] = &t->list[i];
    qsort(sorted, t->count, sizeof(void *), by_name);
    pcclResult_t rc = pcclSuccess;
    for (size_t i = 1; i < t->count && rc == pcclSuccess; i++) {
        if (by_name(&sorted[i - 1], &sorted[i]) == 0)
            rc = train_fail(pcclInvalidArgument,
                            "two tensors are named '%.60s'", sorted[i]->name);
    }
    free(sorted);
    return rc;
}

static pcclResult_t add_tensor(struct train_tensors *t,
                               const pcclTrainTensor_t *from)
{
    size_t index = t->count;
    if (!from->name || !*from->name)
        return train_fail(pcclInvalidArgument, "tensor %zu has no name", index);
    if (from->rows == 0 || from->columns == 0)
        return train_fail(pcclInvalidArgument,
                          "tensor '%.60s' has no elements: %zu x %zu",
                          from->name, from->rows, from->columns);
    const size_t most = SIZE_MAX / sizeof(float) / 16;
    if (from->rows > (most - t->total) / from->columns)
        return train_fail(pcclInvalidArgument,
                          "tensor '%.60s' is too large: %zu x %zu", from->name,
                          from->rows, from->columns);
    struct train_tensor *to = &t->list[index];
    to->name = strdup(from->name);
    if (!to->name) return train_no_memory();
    t->count++;
    to->rows = from->rows;
    to->columns = from->columns;
    to->count = from->rows * from->columns;
    to->offset = t->total;
    t->total += to->count;
    uint64_t shape[2] = {from->rows, from->columns};
    t->digest = train_digest(t->digest, shape, sizeof shape);
    t->digest = train_digest(t->digest, to->name, strlen(to->name) + 1);
    return pcclSuccess;
}

pcclResult_t train_tensors_create(struct train_tensors *t,
                                  const pcclTrainTensor_t *tensors,
                                  size_t count)
{
    *t = (struct train_tensors){.digest = FNV_BEGIN};
    if (!tensors) return train_fail(pcclInvalidArgument, "tensors is NULL");
    if (count == 0)
        return train_fail(pcclInvalidArgument, "the list has no tensors");
    t->list = calloc(count, sizeof *t->list);
    if (!t->list) return train_no_memory();
    pcclResult_t rc = pcclSuccess;
    for (size_t i = 0; i < count && rc == pcclSuccess; i++)
        rc = add_tensor(t, &tensors[i]);
    if (rc == pcclSuccess) rc = check_names(t);
    if (rc != pcclSuccess) train_tensors_free(t);
    return rc;
}

void train_tensors_free(struct train_tensors *t)
{
    for (size_t i = 0; i < t->count; i++) free(t->list[i].name);
    free(t->list);
    *t = (struct train_tensors){0};
}

pcclResult_t train_tensors_data(const struct train_tensors *t,
                                const float *const *data, const char *function)
{
    if (!data) return train_null(function, "an array of tensors");
    for (size_t i = 0; i < t->count; i++) {
        if (!data[i])
            return train_fail(pcclInvalidArgument,
                              "%s: the data of tensor '%.60s' is NULL",
                              function, t->list[i].name);
    }
    return pcclSuccess;
}

pcclResult_t train_options(const void *options, size_t size, size_t wanted,
                           const char *name, const char *function)
{
    if (!options) return train_null(function, "options");
    if (size < wanted)
        return train_fail(pcclInvalidArgument,
                          "%s: options->size is %zu, not %zu", function, size,
                          wanted);
    if (name && !*name)
        return train_fail(pcclInvalidArgument, "%s: options->name is empty",
                          function);
    return pcclSuccess;
}

/* ------------------------------------------------------------------- state */

bool train_state_add(struct train_state *s, const char *owner, const char *what,
                     const char *tensor, void *data, size_t count,
                     pcclDataType_t type)
{
    if (s->count == s->capacity) {
        size_t more = 2 * s->capacity + 8;
        pcclTensorInfo_t *infos = realloc(s->infos, more * sizeof *infos);
        if (!infos) return false;
        s->infos = infos;
        s->capacity = more;
    }
    size_t size =
        strlen(owner) + strlen(what) + strlen(tensor ? tensor : "") + 3;
    char *name = malloc(size);
    if (!name) return false;
    (void)snprintf(name, size, "%s.%s%s%s", owner, what, tensor ? "." : "",
                   tensor ? tensor : "");
    s->infos[s->count++] = (pcclTensorInfo_t){.name = name,
                                              .data = data,
                                              .count = count,
                                              .datatype = type,
                                              .device_type = pcclDeviceCpu};
    return true;
}

bool train_state_add_all(struct train_state *s, const char *owner,
                         const char *what, const struct train_tensors *t,
                         float *vector)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct train_tensor *at = &t->list[i];
        if (!train_state_add(s, owner, what, at->name, vector + at->offset,
                             at->count, pcclFloat))
            return false;
    }
    return true;
}

pcclResult_t train_state_list(const struct train_state *s,
                              pcclTensorInfo_t *infos, size_t capacity,
                              size_t *count_out, const char *function)
{
    if (!count_out) return train_null(function, "count_out");
    *count_out = s->count;
    if (capacity == 0) return pcclSuccess;
    if (!infos) return train_null(function, "infos");
    if (capacity < s->count)
        return train_fail(pcclInvalidArgument,
                          "%s: room for %zu tensors, not %zu", function,
                          capacity, s->count);
    memcpy(infos, s->infos, s->count * sizeof *infos);
    return pcclSuccess;
}

void train_state_free(struct train_state *s)
{
    for (size_t i = 0; i < s->count; i++) free((char *)s->infos[i].name);
    free(s->infos);
    *s = (struct train_state){0};
}
