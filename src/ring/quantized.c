/* quantized.c - functions shared by all-reduces that send codes instead of
 * elements (rule D8). Pure. */
#include "op.h"

void engine_quantize(struct op_request *r, enum quant_algorithm algorithm,
                     enum dtype code)
{
    PCCL_ASSERT(r->plan.coll == COLL_ALLREDUCE);
    r->call.quant = (struct quant){algorithm, r->call.dtype, code};
    r->call.count = r->plan.count;
    struct plan_request *p = &r->plan;
    p->count = (r->call.count + QUANT_BLOCK - 1) / QUANT_BLOCK;
    p->element = (uint32_t)quant_size(&r->call.quant, QUANT_BLOCK);
    p->spare = (uint32_t)(p->count * p->element -
                          quant_size(&r->call.quant, r->call.count));
}

bool op_is_quantized(const struct op *op)
{
    return op->r.quant.algorithm != QUANT_NONE && op->plan.r.world > 1;
}

size_t op_vector_size(const struct op *op)
{
    if (op->r.quant.algorithm != QUANT_NONE)
        return (size_t)op->r.count * dtype_size(op->r.dtype);
    return (size_t)plan_vector_size(&op->plan);
}

void op_to_elements(const struct op *op, struct plan_xfer *x)
{
    if (!op_is_quantized(op)) return;
    uint64_t block = op->plan.r.element;
    uint64_t first = x->offset / block * QUANT_BLOCK;
    uint64_t next = (x->offset + x->size + block - 1) / block * QUANT_BLOCK;
    if (first > op->r.count) first = op->r.count;
    if (next > op->r.count) next = op->r.count;
    size_t size = dtype_size(op->r.dtype);
    x->offset = first * size;
    x->size = (uint32_t)((next - first) * size);
}
