/* vector.c - all-reduces with verified results. */
#include "vector.h"

#include <stdlib.h>
#include <string.h>

enum { PERIOD = 61 };

/* Small integers, so that sums are exact in any order. */
float vector_value(size_t index, int step)
{
    return (float)(1 + (index * 7 + (size_t)step * 13) % PERIOD);
}

/* By doubling, which is fast under sanitizers too. */
static void fill(float *to, size_t count, int step, int weight)
{
    size_t done = count < PERIOD ? count : PERIOD;
    for (size_t i = 0; i < done; i++)
        to[i] = vector_value(i, step) * (float)weight;
    while (done < count) {
        size_t more = done < count - done ? done : count - done;
        memcpy(to + done, to, more * sizeof *to);
        done += more;
    }
}

/* Rank hints are seat numbers. */
static int view_weight(const pcclComm_t *comm)
{
    pcclMember_t members[CLUSTER_RANKS_MAX];
    int size = 0;
    int weight = 0;
    (void)pcclGetView(comm, NULL, NULL, &size, members, CLUSTER_RANKS_MAX);
    for (int i = 0; i < size; i++) weight += members[i].hint + 1;
    return weight;
}

void vector_open(struct vector *v, const struct seat *seat, pcclComm_t *comm,
                 size_t count, bool in_place)
{
    *v = (struct vector){
        .seat = seat, .comm = comm, .count = count, .in_place = in_place};
    v->in = malloc(count * sizeof *v->in);
    v->out = in_place ? v->in : malloc(count * sizeof *v->out);
    v->want = malloc(count * sizeof *v->want);
    SEAT_CHECK(seat, v->in && v->out && v->want);
}

void vector_close(struct vector *v)
{
    if (!v->in_place) free(v->out);
    free(v->in);
    free(v->want);
}

static void expect(const struct vector *v, const float *values, int weight,
                   int step)
{
    fill(v->want, v->count, step, weight);
    if (memcmp(values, v->want, v->count * sizeof *values) == 0) return;
    size_t i = 0;
    while (values[i] == v->want[i]) i++;
    seat_fail(v->seat, __FILE__, __LINE__, "the first wrong element",
              (int64_t)values[i], (int64_t)v->want[i]);
}

static pcclReduceDescriptor_t prepare(struct vector *v, int step)
{
    v->weight = view_weight(v->comm);
    v->size = world_size(v->comm);
    fill(v->in, v->count, step, v->seat->index + 1);
    return (pcclReduceDescriptor_t){
        .count = v->count,
        .op = pcclSum,
        .tag = 7,
        .src_descriptor = {pcclFloat, pcclDistributionNone}};
}

static void check(const struct vector *v, int step, pcclResult_t rc,
                  const pcclReduceInfo_t *info)
{
    if (rc == pcclSuccess) {
        SEAT_EQUAL(v->seat, info->local_world_size, v->size);
        SEAT_EQUAL(v->seat, world_size(v->comm), v->size);
        expect(v, v->out, v->weight, step);
    }
    if (rc == pcclRankConnectionLost)
        SEAT_CHECK(v->seat, world_size(v->comm) < v->size);
    if (rc != pcclSuccess || !v->in_place)
        expect(v, v->in, v->seat->index + 1, step);
}

pcclResult_t vector_launch(struct vector *v, int step,
                           pcclAsyncReduceOp_t *handle)
{
    pcclReduceDescriptor_t d = prepare(v, step);
    return pcclAllReduceAsync(v->in, v->out, &d, v->comm, handle);
}

pcclResult_t vector_await(struct vector *v, int step,
                          const pcclAsyncReduceOp_t *handle)
{
    pcclReduceInfo_t info = {0};
    pcclResult_t rc = pcclAwaitAsyncReduce(handle, &info);
    check(v, step, rc, &info);
    return rc;
}

pcclResult_t vector_reduce(struct vector *v, int step)
{
    pcclReduceInfo_t info = {0};
    pcclReduceDescriptor_t d = prepare(v, step);
    pcclResult_t rc = pcclAllReduce(v->in, v->out, &d, v->comm, &info);
    check(v, step, rc, &info);
    return rc;
}
