/* op_describe.c - the arguments of an operation, for the text about members
 * that disagree on them (rule F9). */
#include "engine.h"
#include "op.h"
#include "ring.h"

#include "../base/arguments.h"

#include "../../include/pccl.h"

static_assert((int)WIRE_COLLS == COLL_COUNT, "the coordinator names them");
static_assert((int)WIRE_QUANTS == QUANT_ALGORITHM_COUNT, "likewise");

static const char *const flows[FLOW_COUNT] = {
    [FLOW_TO_ROOT] = "to a root",
    [FLOW_FROM_ROOT] = "from a root",
    [FLOW_EVEN] = "blocks of one size",
};

static void describe_pair(const struct engine *e, const struct op *op,
                          uint64_t other, struct wire_args *args)
{
    const struct plan_request *p = &op->plan.r;
    if (p->flow == FLOW_EVEN) {
        args->sends = args->recvs = p->count;
        return;
    }
    uint32_t rank = other == e->links.self ? p->rank : p->world;
    for (uint32_t i = 0; i < op->ep_count; i++)
        if (op->eps[i].link->id == other) rank = op->eps[i].rank;
    if (rank == p->world) return;
    args->sends = p->send_bytes[rank];
    args->recvs = p->recv_bytes[rank];
}

/* What the caller names; then what the operation has beyond the arguments that
 * each has: nobody but the digest would know of it. */
static uint32_t name_arguments(const struct engine *e, const struct op *op,
                               uint8_t *bytes)
{
    struct arguments a = {.bytes = bytes};
    const struct op_call *r = &op->r;
    const struct plan_request *p = &op->plan.r;
    const char *forced = engine_forced(e, p->coll);
    for (uint32_t i = 0; r->named && i < r->named_count; i++) {
        const pcclArgument_t *one = &r->named[i];
        if (!one->name) continue;
        if (one->text)
            arguments_text(&a, false, one->name, one->text);
        else if (one->values || one->value_count == 0)
            arguments_values(&a, false, one->name, one->values,
                             one->value_count);
    }
    if (p->flow != FLOW_ALL) {
        uint64_t root = p->root;
        arguments_text(&a, true, "flow", flows[p->flow]);
        if (plan_flow_has_root(p->flow))
            arguments_values(&a, true, "root", &root, 1);
    }
    arguments_text(&a, true, "algorithm (PCCL_ALGORITHM)",
                   forced ? forced : "any");
    arguments_values(&a, true, "user digest", &r->user_digest, 1);
    if (op->scope && r->member_count > 1)
        arguments_values(&a, true, "members", op->scope, r->member_count);
    return a.size;
}

void op_describe(const struct engine *e, const struct op *op, uint64_t other,
                 struct wire_args *args, uint8_t *named)
{
    const struct plan_request *p = &op->plan.r;
    bool reduces = plan_coll_reduces(p->coll);
    bool sized = p->coll != COLL_BARRIER && p->coll != COLL_ALLTOALLV;
    *args =
        (struct wire_args){.coll = (uint8_t)p->coll, .digest = op->r.digest};
    if (reduces) {
        args->dtype = (uint8_t)op->r.dtype;
        args->redop = (uint8_t)op->r.redop;
    }
    if (reduces && op->r.quant.algorithm != QUANT_NONE) {
        args->quant = (uint8_t)op->r.quant.algorithm;
        args->code = (uint8_t)op->r.quant.code;
    }
    if (sized) args->count = args->quant > 0 ? op->r.count : p->count;
    if (p->coll == COLL_REDUCE_SCATTER) args->count /= p->world;
    if (p->coll == COLL_BROADCAST) args->root = p->root;
    if (p->coll == COLL_ALLTOALLV) describe_pair(e, op, other, args);
    args->rank = p->rank;
    args->named = named;
    args->named_size = name_arguments(e, op, named);
}
