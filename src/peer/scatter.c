/* scatter.c - see scatter.h. */
#include "scatter.h"

#include "../reduce/reduce.h"

#include <stdlib.h>
#include <string.h>

enum {
    NAMED = 3,         /* arguments that an all-to-all does not have */
    PART = 128 * 1024, /* bytes of the result that are made at a time */
};

struct scatter {
    enum dtype dtype;
    enum redop redop;
    uint32_t world;
    size_t count; /* elements of a block */
    uint8_t *to;
    uint8_t *blocks; /* of all members, by rank */
    size_t *arrays;  /* sizes and displacements of the all-to-all */
    uint64_t values[NAMED];
    pcclArgument_t named[]; /* NAMED, and those of the caller */
};

static void set_arrays(struct scatter *s, size_t block, struct op_request *r)
{
    size_t *sizes = s->arrays;
    size_t *displs = s->arrays + s->world;
    for (uint32_t i = 0; i < s->world; i++) {
        sizes[i] = block;
        displs[i] = i * block;
    }
    r->plan.send_bytes = r->plan.recv_bytes = sizes;
    r->plan.send_displs = r->plan.recv_displs = displs;
}

static void set_named(struct scatter *s, struct op_request *r)
{
    static const char *const names[NAMED] = {"count of a reduce-scatter",
                                             "datatype of a reduce-scatter",
                                             "operator of a reduce-scatter"};
    s->values[0] = s->count;
    s->values[1] = s->dtype;
    s->values[2] = s->redop;
    for (uint32_t i = 0; i < NAMED; i++)
        s->named[i] = (pcclArgument_t){
            .name = names[i], .values = &s->values[i], .value_count = 1};
    for (uint32_t i = 0; i < r->named_count; i++)
        s->named[NAMED + i] = r->named[i];
    r->named = s->named;
    r->named_count += NAMED;
}

bool scatter_begin(const pcclCollective_t *op, uint32_t world,
                   struct op_request *r)
{
    uint32_t named = r->named ? r->named_count : 0;
    struct scatter *s =
        calloc(1, sizeof *s + (NAMED + named) * sizeof *s->named);
    if (!s) return false;
    s->dtype = (enum dtype)op->datatype;
    s->redop = (enum redop)op->op;
    s->world = world;
    s->count = op->count;
    s->to = op->recvbuf;
    size_t block = op->count * dtype_size(s->dtype);
    s->blocks = malloc(world * block + 1);
    s->arrays = malloc(2 * (size_t)world * sizeof *s->arrays);
    if (!s->blocks || !s->arrays) {
        scatter_free(s);
        return false;
    }
    r->named_count = named;
    set_named(s, r);
    set_arrays(s, block, r);
    r->plan.coll = COLL_ALLTOALLV;
    r->plan.count = 0;
    r->recvbuf = s->blocks;
    r->keep = s;
    return true;
}

/* In the order of ranks, part after part, so that a part stays in the cache. */
void scatter_finish(struct scatter *s)
{
    size_t element = dtype_size(s->dtype);
    size_t most = PART / element;
    for (size_t at = 0; at < s->count; at += most) {
        size_t count = s->count - at < most ? s->count - at : most;
        uint8_t *to = s->to + at * element;
        const uint8_t *sum = s->blocks + at * element;
        if (s->world == 1) memcpy(to, sum, count * element);
        for (uint32_t i = 1; i < s->world; i++) {
            const uint8_t *x = s->blocks + (i * s->count + at) * element;
            reduce_apply(s->dtype, s->redop, to, sum, x, count);
            sum = to;
        }
        if (s->redop == REDOP_AVG) reduce_divide(s->dtype, to, count, s->world);
    }
}

void scatter_free(struct scatter *s)
{
    if (!s) return;
    free(s->blocks);
    free(s->arrays);
    free(s);
}
