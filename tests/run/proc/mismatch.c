/* mismatch.c - see mismatch.h. */
#include "mismatch.h"

#include "../../../src/bench/borders.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    UNIT = 8,
    MANY = 40000,
    QUANTIZED = 4, /* floats are that much larger than codes */
};

static const char *const kind_names[] = {"all-reduce", "broadcast",
                                         "barrier",    "all-gather",
                                         "all-to-all", "reduce-scatter"};

size_t mismatch_element(pcclDataType_t type)
{
    static const size_t sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
    return sizes[type];
}

static struct member_call usual(pcclCollectiveKind_t kind, size_t bytes)
{
    struct member_call call = {
        .kind = kind, .bytes = bytes, .datatype = pcclFloat};
    for (int i = 0; i < MISMATCH_WORLD_MAX; i++)
        call.send[i] = call.recv[i] = bytes;
    return call;
}

/* A case in which all members make the same call as yet. */
__attribute__((format(printf, 4, 5))) static struct mismatch *
add(struct mismatch_list *list, const struct member_call *call,
    const char *field, const char *format, ...)
{
    if (list->count == list->room) {
        list->room = list->room * 2 + 64;
        list->cases = realloc(list->cases, list->room * sizeof *list->cases);
        if (!list->cases) abort();
    }
    struct mismatch *m = &list->cases[list->count++];
    *m = (struct mismatch){.field = field};
    for (int i = 0; i < list->world; i++) m->calls[i] = *call;
    int used = snprintf(m->name, sizeof m->name,
                        "%s of %zu bytes, %s: ", kind_names[call->kind],
                        call->bytes, field);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(m->name + used, sizeof m->name - (size_t)used, format,
                    args);
    va_end(args);
    return m;
}

/* One member makes another call than the rest: each rank in its turn. */
static void add_odd(struct mismatch_list *list, const struct member_call *call,
                    const struct member_call *odd, const char *field,
                    const char *what)
{
    int rank = (int)(list->count % (size_t)list->world);
    struct mismatch *m = add(list, call, field, "%s at rank %d", what, rank);
    m->calls[rank] = *odd;
}

/* --------------------------------------------------------------- arguments */

static void add_counts(struct mismatch_list *list, pcclCollectiveKind_t kind,
                       size_t bytes, size_t next)
{
    struct member_call small = usual(kind, bytes);
    struct member_call large = usual(kind, next);
    struct member_call empty = usual(kind, 0);
    add_odd(list, &small, &large, "count", "the next larger size");
    add_odd(list, &large, &small, "count", "the next smaller size");
    if (bytes == 0) return;
    add_odd(list, &small, &empty, "count", "nothing");
    add_odd(list, &empty, &small, "count", "something");
}

static void add_types(struct mismatch_list *list, pcclCollectiveKind_t kind,
                      size_t bytes)
{
    const struct member_call call = usual(kind, bytes);
    struct member_call odd = call;
    odd.datatype = pcclInt32;
    add_odd(list, &call, &odd, "datatype", "int32");
    odd.datatype = pcclDouble;
    add_odd(list, &call, &odd, "datatype", "as many bytes of double");
    odd.bytes = 2 * bytes;
    add_odd(list, &call, &odd, "datatype", "as many elements of double");
    odd = call;
    odd.op = pcclAvg;
    add_odd(list, &call, &odd, "op", "average");
    odd.op = pcclMax;
    add_odd(list, &call, &odd, "op", "maximum");
}

static void add_quantized(struct mismatch_list *list, size_t bytes)
{
    struct member_call call = usual(pcclKindAllReduce, bytes);
    struct member_call odd = call;
    odd.quantization = pcclQuantMinMax;
    odd.code = pcclUint8;
    add_odd(list, &call, &odd, "quantization", "quantized");
    add_odd(list, &odd, &call, "quantization", "not quantized");
    call = odd;
    odd.quantization = pcclQuantZeroPointScale;
    add_odd(list, &call, &odd, "quantization", "zero point");
    odd = call;
    odd.code = pcclInt8;
    add_odd(list, &call, &odd, "quantized_datatype", "int8");
    odd.code = pcclUint16;
    add_odd(list, &call, &odd, "quantized_datatype", "uint16");
}

static void add_roots(struct mismatch_list *list, size_t bytes)
{
    const struct member_call call = usual(pcclKindBroadcast, bytes);
    int n = list->world;
    struct mismatch *every = add(list, &call, "root", "each itself");
    for (int r = 0; r < n; r++) every->calls[r].root = r;
    struct mismatch *none = add(list, &call, "root", "each the next");
    for (int r = 0; r < n; r++) none->calls[r].root = (r + 1) % n;
    struct mismatch *two = add(list, &call, "root", "itself at the last rank");
    two->calls[n - 1].root = n - 1;
    struct mismatch *away = add(list, &call, "root", "rank 1 at rank 0");
    away->calls[0].root = 1;
    if (n == 2) return;
    struct mismatch *third = add(list, &call, "root", "rank 1 at the last");
    third->calls[n - 1].root = 1;
}

static void add_pairs(struct mismatch_list *list, size_t bytes)
{
    const struct member_call call = usual(pcclKindAllToAllV, bytes);
    int n = list->world;
    struct mismatch *m = add(list, &call, "sizes", "one more to rank 1");
    m->calls[0].send[1]++;
    m = add(list, &call, "sizes", "one more expected by the last rank");
    m->calls[n - 1].recv[0]++;
    m = add(list, &call, "sizes", "one more from the last rank to itself");
    m->calls[n - 1].send[n - 1]++;
    m = add(list, &call, "sizes", "each expects one more of itself");
    for (int r = 0; r < n; r++) m->calls[r].recv[r]++;
    if (bytes == 0) return;
    m = add(list, &call, "sizes", "rank 0 expects nothing of itself");
    m->calls[0].recv[0] = 0;
    m = add(list, &call, "sizes", "nothing is expected");
    for (int r = 0; r < n; r++) memset(m->calls[r].recv, 0, sizeof call.recv);
    m = add(list, &call, "sizes", "nothing is sent");
    for (int r = 0; r < n; r++) memset(m->calls[r].send, 0, sizeof call.send);
    m = add(list, &call, "sizes", "the last expects nothing of rank 0");
    m->calls[n - 1].recv[0] = 0;
    m = add(list, &call, "sizes", "only one pair, which expects nothing");
    for (int r = 0; r < n; r++) {
        memset(m->calls[r].send, 0, sizeof call.send);
        memset(m->calls[r].recv, 0, sizeof call.recv);
    }
    m->calls[n - 1].send[0] = bytes;
}

static void add_digest(struct mismatch_list *list, pcclCollectiveKind_t kind,
                       size_t bytes)
{
    const struct member_call call = usual(kind, bytes);
    struct member_call odd = call;
    odd.user_digest = 1;
    add_odd(list, &call, &odd, "user_digest", "1");
}

static void add_kinds(struct mismatch_list *list, size_t bytes)
{
    for (int a = pcclKindAllReduce; a <= pcclKindReduceScatter; a++) {
        for (int b = pcclKindAllReduce; b <= pcclKindReduceScatter; b++) {
            const struct member_call one =
                usual((pcclCollectiveKind_t)a, bytes);
            const struct member_call other =
                usual((pcclCollectiveKind_t)b, bytes);
            if (a != b) add_odd(list, &one, &other, "kind", kind_names[b]);
        }
    }
}

/* The members of the scope in another order, at one of them. */
static void add_orders(struct mismatch_list *list, pcclCollectiveKind_t kind,
                       size_t bytes)
{
    struct member_call call = usual(kind, bytes);
    call.scope_count = list->world;
    for (int r = 0; r < list->world; r++) call.scope[r] = r;
    struct member_call turned = call;
    turned.scope[0] = 1;
    turned.scope[1] = 0;
    add_odd(list, &call, &turned, "scope", "in another order");
}

/* Other members. No scope is complete: nobody can succeed. */
static void add_scopes(struct mismatch_list *list, pcclCollectiveKind_t kind,
                       size_t bytes)
{
    struct member_call call = usual(kind, bytes);
    const struct member_call view = call;
    int n = list->world;
    call.scope_count = n;
    for (int r = 0; r < n; r++) call.scope[r] = r;
    add_odd(list, &call, &view, "scope", "the view");
    if (n < 3) return;
    struct mismatch *m = add(list, &call, "scope", "each without the next");
    for (int r = 0; r < n; r++) {
        struct member_call *c = &m->calls[r];
        c->scope_count = 0;
        for (int i = 0; i < n; i++)
            if (i != (r + 1) % n) c->scope[c->scope_count++] = i;
    }
}

/* -------------------------------------------------------------------- lists */

static void add_sized(struct mismatch_list *list, pcclCollectiveKind_t kind,
                      const uint64_t *sizes, size_t count, bool quantized)
{
    for (size_t i = 0; i < count; i++) {
        size_t bytes = (size_t)sizes[i];
        add_digest(list, kind, bytes);
        if (kind == pcclKindBroadcast) add_roots(list, bytes);
        if (kind == pcclKindAllToAllV) add_pairs(list, bytes);
        if (kind != pcclKindAllToAllV && i + 1 < count)
            add_counts(list, kind, bytes, (size_t)sizes[i + 1]);
        bool reduces =
            kind == pcclKindAllReduce || kind == pcclKindReduceScatter;
        if (!reduces || bytes == 0) continue;
        add_types(list, kind, bytes);
        if (!quantized || kind != pcclKindAllReduce) continue;
        add_quantized(list, bytes);
        add_quantized(list, QUANTIZED * bytes);
    }
}

static const struct {
    pcclCollectiveKind_t kind;
    enum plan_coll coll;
} sized[] = {{pcclKindAllReduce, COLL_ALLREDUCE},
             {pcclKindBroadcast, COLL_BROADCAST},
             {pcclKindAllGather, COLL_ALLGATHER},
             {pcclKindAllToAllV, COLL_ALLTOALLV},
             {pcclKindReduceScatter, COLL_REDUCE_SCATTER}};

static const uint64_t few[] = {0, UNIT, MANY, 200000};

void mismatch_every(struct mismatch_list *list, int world, bool tcp)
{
    *list = (struct mismatch_list){.world = world, .tcp = tcp};
    add_digest(list, pcclKindBarrier, 0);
    for (size_t i = 0; i < ARRAY_COUNT(few); i++)
        add_kinds(list, (size_t)few[i]);
    for (size_t k = 0; k < ARRAY_COUNT(sized); k++) {
        uint64_t sizes[BORDERS_MAX];
        size_t count =
            borders_find(sized[k].coll, tcp ? WHERE_SOCKETS : WHERE_MEMORY,
                         (uint32_t)world, UNIT, sizes);
        add_sized(list, sized[k].kind, sizes, count, true);
    }
}

void mismatch_scopes(struct mismatch_list *list, int world, bool tcp)
{
    *list = (struct mismatch_list){.world = world, .tcp = tcp};
    add_orders(list, pcclKindBarrier, 0);
    add_scopes(list, pcclKindBarrier, 0);
    for (size_t k = 0; k < ARRAY_COUNT(sized); k++) {
        add_orders(list, sized[k].kind, UNIT);
        add_orders(list, sized[k].kind, MANY);
        add_scopes(list, sized[k].kind, MANY);
    }
}

void mismatch_few(struct mismatch_list *list, enum plan_coll coll, int world,
                  bool tcp)
{
    *list = (struct mismatch_list){.world = world, .tcp = tcp};
    if (coll == COLL_BARRIER) add_digest(list, pcclKindBarrier, 0);
    for (size_t k = 0; k < ARRAY_COUNT(sized); k++) {
        if (sized[k].coll != coll) continue;
        add_sized(list, sized[k].kind, few, ARRAY_COUNT(few), false);
    }
}
