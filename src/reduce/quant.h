/* quant.h - quantization of float vectors, for all-reduces that send fewer
 * bytes.
 *
 * A vector is cut into blocks of QUANT_BLOCK elements (the last may be
 * shorter), and a block becomes a header of two numbers and one code for each
 * element. With Q = 2^bits - 1, the largest code, and every operation below
 * being one IEEE operation of the *wide type* (f64 for f64, f32 for f32, f16
 * and bf16), rounded to nearest even:
 *
 * MinMax, header (lo, hi), the extremes of the block:
 *     step = up((hi - lo) / Q);  code = rint((x - lo) / step)
 *     value = min(lo + code * step, hi)
 * ZeroPointScale, header (step, zero), where lo <= 0 <= hi are the extremes of
 * the block and of 0, which is kept exactly:
 *     step = up((hi - lo) / Q);  zero = rint(-lo / step)
 *     code = min(max(rint(x / step) + zero, 0), Q)
 *     value = (code - zero) * step, at most the largest finite number
 *
 * up(s) is the next number above s if s * Q < hi - lo, so that all codes fit
 * even where steps are subnormal; a step of 0 (hi = lo) becomes 1. If hi - lo
 * overflows, MinMax computes with quarters of x, lo and hi, and ZeroPointScale
 * with hi / Q - lo / Q. The sign of a zero is not kept.
 *
 * A block with NaN or infinities is marked in its header (MinMax: hi before lo;
 * ZeroPointScale: -step). Its codes Q, Q - 1 and Q - 2 stand for +Inf, -Inf and
 * NaN, and the finite elements share the rest, as if Q were 3 less. Only these
 * codes give infinities: other values that a half type does not hold become its
 * largest number.
 *
 * A value differs from its x by at most 0.52 steps and two units in the last
 * place of the largest of |lo|, |hi|; test_quant.c shows it. Codes
 * of signed types are kept as their distance from the least one, so i8 gives
 * what u8 gives. Headers and codes stand in host order, as all user data does.
 *
 * 512 elements are as few as keep the header of a block of f32 in 8 bits under
 * 2 % of it: 3.94 times fewer bytes. Shorter blocks follow the data better (the
 * range of 256 normal numbers is 7 % less than that of 512), longer ones save 1
 * %.
 *
 * Pure, and like reduce.h: bits depend on the operands alone, not on the
 * floating-point environment of the caller's thread. */
#ifndef PCCL_QUANT_H
#define PCCL_QUANT_H

#include "../base/dtype.h"

enum { QUANT_BLOCK = 512 };

/* Values are those of pcclQuantizationAlgorithm_t. */
enum quant_algorithm {
    QUANT_NONE,
    QUANT_MINMAX,
    QUANT_ZERO_POINT_SCALE,
    QUANT_ALGORITHM_COUNT,
};

struct quant {
    enum quant_algorithm algorithm;
    enum dtype source, code;
};

/* NULL, or the reason why vectors cannot be reduced that way. */
const char *quant_check(const struct quant *q, enum redop op);

/* Bytes of `count` elements as codes, headers included. */
uint64_t quant_size(const struct quant *q, uint64_t count);

/* count elements to codes and back; the buffers do not overlap. */
void quant_encode(const struct quant *q, void *codes, const void *from,
                  size_t count);
void quant_decode(const struct quant *q, void *to, const void *codes,
                  size_t count);

/* out = encode(op(decode(codes), own)): one step of a ring. `own` has the
 * source type; the operation uses the wide type. divisor 0: a partial result.
 * Otherwise the final result: it is divided and rounded to the source type. out
 * may equal codes. */
void quant_combine(const struct quant *q, enum redop op, void *out,
                   const void *codes, const void *own, size_t count,
                   uint32_t divisor);

/* to = op over `world` vectors of codes, each `stride` bytes after the one
 * before, folded in that order in the wide type, divided, and rounded. */
void quant_fold(const struct quant *q, enum redop op, void *to,
                const void *codes, size_t stride, uint32_t world, size_t count,
                uint32_t divisor);

#endif
