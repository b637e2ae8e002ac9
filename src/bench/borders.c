/* borders.c - see borders.h. */
#include "borders.h"

struct borders {
    uint64_t unit;
    size_t count;
    uint64_t *sizes;
};

static void insert(struct borders *b, uint64_t size)
{
    size_t at = 0;
    while (at < b->count && b->sizes[at] < size) at++;
    if (at < b->count && b->sizes[at] == size) return;
    PCCL_ASSERT(b->count < BORDERS_MAX && "room for all borders");
    for (size_t i = b->count++; i > at; i--) b->sizes[i] = b->sizes[i - 1];
    b->sizes[at] = size;
}

static void insert_limit(struct borders *b, uint64_t limit)
{
    if (limit == 0) return;
    insert(b, limit / b->unit * b->unit);
    insert(b, limit / b->unit * b->unit + b->unit);
}

size_t borders_find(enum plan_coll coll, enum choice_where where,
                    uint32_t world, uint64_t unit, uint64_t sizes[BORDERS_MAX])
{
    struct borders b = {.unit = unit, .sizes = sizes};
    const struct choice *c;
    for (uint32_t i = 0; (c = algorithm_row(i)) != NULL; i++) {
        if (!(c->colls >> coll & 1)) continue;
        if (c->where != WHERE_ANY && c->where != where) continue;
        insert_limit(&b, c->bytes_max);
        insert_limit(&b, c->total_max / (world - 1));
    }
    insert_limit(&b, PLAN_SEGMENT_MIN);
    insert_limit(&b, PLAN_SEGMENT_MAX);
    insert(&b, b.sizes[b.count - 1] * 2);
    insert(&b, 0);
    insert(&b, unit);
    return b.count;
}
