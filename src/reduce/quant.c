/* quant.c - quantization of whole vectors, block by block. See quant.h. */
#include "quant.h"

#include <string.h>

#include "../base/float_env.h"
#include "isa.h"
#include "quant_kernels.h"
#include "reduce.h"

const struct quant_kernels *quant_kernels_usable(size_t index)
{
    return ISA_VARIANT(quant_kernels, index);
}

/* ------------------------------------------------------------ what fits */

static bool is_float(enum dtype type)
{
    return type >= DTYPE_F16 && type <= DTYPE_F64;
}

const char *quant_check(const struct quant *q, enum redop op)
{
    if (!is_float(q->source))
        return "quantization is for floating-point datatypes";
    if (is_float(q->code)) return "quantized_datatype is not an integer type";
    if (dtype_size(q->code) >= dtype_size(q->source))
        return "quantized_datatype is not narrower than the datatype";
    if (op == REDOP_PROD)
        return "a product cannot be quantized: its error has no bound";
    return NULL;
}

static enum dtype wide_type(const struct quant *q)
{
    return q->source == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
}

static size_t block_size(const struct quant *q, size_t count)
{
    return 2 * dtype_size(wide_type(q)) + count * dtype_size(q->code);
}

uint64_t quant_size(const struct quant *q, uint64_t count)
{
    uint64_t full = count / QUANT_BLOCK;
    size_t rest = (size_t)(count % QUANT_BLOCK);
    uint64_t size = full * block_size(q, QUANT_BLOCK);
    return rest > 0 ? size + block_size(q, rest) : size;
}

/* ---------------------------------------------------------------- vectors */

/* Processing of one vector: its kernels and sizes, and a block in the wide
 * type. */
struct walk {
    const struct quant *q;
    enum dtype wide;
    size_t element, step; /* bytes of an element, of a full block as codes */
    quant_block_fn *encode, *decode;
    /* NULL: the source type is the wide one */
    quant_half_fn *widen, *narrow;
    quant_limit_fn *saturate;
};

/* A block of the wide type. */
union room {
    _Alignas(64) uint8_t bytes[QUANT_BLOCK * sizeof(double)];
    float f32[QUANT_BLOCK];
};

static struct walk walk_of(const struct quant *q)
{
    const struct quant_kernels *k = quant_kernels_usable(0);
    size_t width = dtype_size(q->code);
    enum quant_wide wide = q->source == DTYPE_F64 ? QUANT_F64 : QUANT_F32;
    PCCL_ASSERT(quant_check(q, REDOP_SUM) == NULL);
    return (struct walk){
        .q = q,
        .wide = wide_type(q),
        .element = dtype_size(q->source),
        .step = block_size(q, QUANT_BLOCK),
        .encode = k->encode[wide][width / 2],
        .decode = k->decode[wide][width / 2],
        .widen = k->widen[q->source],
        .narrow = k->narrow[q->source],
        .saturate = k->saturate[q->source],
    };
}

static size_t block_count(size_t left)
{
    return left < QUANT_BLOCK ? left : QUANT_BLOCK;
}

/* Elements in the wide type: `from`, or `room` after a conversion. */
static const void *widened(const struct walk *w, union room *room,
                           const uint8_t *from, size_t count)
{
    if (!w->widen) return from;
    w->widen(room->bytes, from, count);
    return room->bytes;
}

void quant_encode(const struct quant *q, void *codes, const void *from,
                  size_t count)
{
    const struct walk w = walk_of(q);
    const uint8_t *in = from;
    uint8_t *out = codes;
    union room room;
    struct float_env env = float_env_enter();

    for (size_t n; count > 0; count -= n) {
        n = block_count(count);
        w.encode((int)q->algorithm, out, widened(&w, &room, in, n), n);
        in += n * w.element;
        out += w.step;
    }
    float_env_leave(&env);
}

void quant_decode(const struct quant *q, void *to, const void *codes,
                  size_t count)
{
    const struct walk w = walk_of(q);
    const uint8_t *in = codes;
    uint8_t *out = to;
    union room room;
    struct float_env env = float_env_enter();

    for (size_t n; count > 0; count -= n) {
        n = block_count(count);
        if (w.narrow) {
            w.decode((int)q->algorithm, room.bytes, in, n);
            w.saturate(room.f32, n);
            w.narrow(out, room.bytes, n);
        } else {
            w.decode((int)q->algorithm, out, in, n);
        }
        in += w.step;
        out += n * w.element;
    }
    float_env_leave(&env);
}

/* Converts a result to the source type; an overflow becomes infinite. */
static void finish(const struct walk *w, union room *sum, size_t count,
                   uint32_t divisor)
{
    union room result;

    if (divisor > 1) reduce_divide(w->wide, sum->bytes, count, divisor);
    if (!w->narrow) return;
    w->narrow(result.bytes, sum->bytes, count);
    w->widen(sum->bytes, result.bytes, count);
}

void quant_combine(const struct quant *q, enum redop op, void *out,
                   const void *codes, const void *own, size_t count,
                   uint32_t divisor)
{
    const struct walk w = walk_of(q);
    const uint8_t *in = codes, *mine = own;
    uint8_t *to = out;
    union room sum, room;
    struct float_env env = float_env_enter();

    for (size_t n; count > 0; count -= n) {
        n = block_count(count);
        w.decode((int)q->algorithm, sum.bytes, in, n);
        reduce_apply(w.wide, op, sum.bytes, sum.bytes,
                     widened(&w, &room, mine, n), n);
        if (divisor > 0) finish(&w, &sum, n, divisor);
        w.encode((int)q->algorithm, to, sum.bytes, n);
        in += w.step;
        to += w.step;
        mine += n * w.element;
    }
    float_env_leave(&env);
}

void quant_fold(const struct quant *q, enum redop op, void *to,
                const void *codes, size_t stride, uint32_t world, size_t count,
                uint32_t divisor)
{
    const struct walk w = walk_of(q);
    const uint8_t *in = codes;
    uint8_t *out = to;
    union room sum, one;
    struct float_env env = float_env_enter();

    for (size_t n; count > 0; count -= n) {
        n = block_count(count);
        for (uint32_t r = 0; r < world; r++) {
            union room *x = r == 0 ? &sum : &one;
            w.decode((int)q->algorithm, x->bytes, in + r * stride, n);
            if (w.saturate) w.saturate(x->f32, n);
            if (r > 0)
                reduce_apply(w.wide, op, sum.bytes, sum.bytes, one.bytes, n);
        }
        if (divisor > 1) reduce_divide(w.wide, sum.bytes, n, divisor);
        if (w.narrow)
            w.narrow(out, sum.bytes, n);
        else
            memcpy(out, sum.bytes, n * w.element);
        in += w.step;
        out += n * w.element;
    }
    float_env_leave(&env);
}
