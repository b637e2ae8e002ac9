/* quant_real.h - the arithmetic of one block in one wide type; quant_core.h
 * includes it once per type.
 *
 * QN(name) is a name for the type. QREAL, QBITS, QKEY: the type, and the
 * integers of its size. QSHIFT: bits of its mantissa. */

/* Maps floats to integers of the same order, -0 before +0. Finite ones are
 * strictly between QN(key)(-inf) and QN(key)(+inf), NaN are not. */
QUANT_FN QKEY QN(quant_key)(QREAL x)
{
    QKEY bits;
    memcpy(&bits, &x, sizeof bits);
    return bits ^ (QKEY)((QBITS)(bits >> (sizeof bits * 8 - 1)) >> 1);
}

QUANT_FN QREAL QN(quant_from_key)(QKEY key)
{
    QREAL x;
    QKEY bits = key ^ (QKEY)((QBITS)(key >> (sizeof key * 8 - 1)) >> 1);
    memcpy(&x, &bits, sizeof x);
    return x;
}

#define QINF (QN(quant_key)((QREAL)INFINITY))

QUANT_FN bool QN(quant_finite)(QREAL x)
{
    QKEY key = QN(quant_key)(x);
    return key < QINF && key > ~QINF;
}

/* Parameters of the conversion between elements and codes: see quant.h. */
struct QN(quant_scale) {
    QREAL shrink, grow; /* 1, or 1/4 and 4 */
    QREAL base, step, zero;
    QREAL least, most; /* of the values, before they are multiplied by grow */
    QREAL top;         /* largest code of a finite element */
    bool special;
};

QUANT_FN QREAL QN(quant_step)(QREAL range, QREAL top)
{
    QREAL step = range / top;
    if (step * top < range) step = QN(quant_from_key)(QN(quant_key)(step) + 1);
    return step > 0 ? step : 1;
}

/* lo <= hi: the finite extremes of a block. */
QUANT_FN void QN(quant_header)(int algorithm, QREAL lo, QREAL hi, bool special,
                               QREAL top, QREAL header[2])
{
    if (special) top -= QUANT_SPECIALS;
    lo += 0; /* no -0 */
    hi += 0;
    if (algorithm == QUANT_MINMAX) {
        if (special &&
            lo == hi) { /* two distinct numbers, so that they can be swapped */
            if (lo < QMAX)
                hi = QN(quant_from_key)(QN(quant_key)(lo) + 1);
            else
                lo = QN(quant_from_key)(QN(quant_key)(hi) - 1);
        }
        header[0] = special ? hi : lo;
        header[1] = special ? lo : hi;
        return;
    }
    if (lo > 0) lo = 0;
    if (hi < 0) hi = 0;
    QREAL step =
        hi - lo <= QMAX ? QN(quant_step)(hi - lo, top) : hi / top - lo / top;
    QREAL zero = -lo / step;
    header[0] = special ? -step : step;
    header[1] = (zero + QROUND) - QROUND;
}

QUANT_FN struct QN(quant_scale)
    QN(quant_scale_of)(int algorithm, const QREAL header[2], QREAL top)
{
    struct QN(quant_scale)
        s = {1, 1, 0, header[0], header[1], -QMAX, QMAX, top, header[0] < 0};
    if (algorithm != QUANT_MINMAX) {
        if (s.special) s.step = -s.step;
        if (s.special) s.top -= QUANT_SPECIALS;
        return s;
    }
    s.special = header[0] > header[1];
    if (s.special) s.top -= QUANT_SPECIALS;
    s.zero = 0;
    s.least = s.special ? header[1] : header[0];
    s.most = s.special ? header[0] : header[1];
    if (!(s.most - s.least <= QMAX)) {
        s.shrink = (QREAL)0.25;
        s.grow = 4;
        s.least *= s.shrink;
        s.most *= s.shrink;
    }
    s.base = s.least;
    s.step = QN(quant_step)(s.most - s.least, s.top);
    return s;
}

/* Adding QROUND, 1.5 units of the largest numbers with a fraction, rounds to
 * an integer; adding QUNIT puts an integer into the low bits. */
QUANT_FN uint32_t QN(quant_code)(QREAL x, const struct QN(quant_scale) * s)
{
    QREAL distance = (x * s->shrink - s->base) / s->step;
    QREAL code = ((distance + QROUND) - QROUND) + s->zero;
    QBITS bits;
    code = code > 0 ? code : 0;
    code = code < s->top ? code : s->top;
    code += QUNIT;
    memcpy(&bits, &code, sizeof bits);
    return (uint32_t)bits;
}

QUANT_FN QREAL QN(quant_value)(uint32_t code, const struct QN(quant_scale) * s)
{
    QREAL x = QUNIT;
    QBITS bits;
    memcpy(&bits, &x, sizeof bits);
    bits |= code;
    memcpy(&x, &bits, sizeof x);
    x = s->base + ((x - QUNIT) - s->zero) * s->step;
    x = x > s->least ? x : s->least;
    x = x < s->most ? x : s->most;
    return x * s->grow;
}

/* The code of an element of a block with special elements. */
QUANT_FN uint32_t QN(quant_code_any)(QREAL x, const struct QN(quant_scale) * s)
{
    if (QN(quant_finite)(x)) return QN(quant_code)(x, s);
    if (x > 0) return (uint32_t)(s->top + 3);
    return (uint32_t)(s->top + (x < 0 ? 2 : 1));
}

QUANT_FN QREAL QN(quant_value_any)(uint32_t code,
                                   const struct QN(quant_scale) * s)
{
    const QBITS nan_bits = QNAN_BITS;
    QREAL nan;
    memcpy(&nan, &nan_bits, sizeof nan);
    if (code <= (uint32_t)s->top) return QN(quant_value)(code, s);
    if (code == (uint32_t)s->top + 1) return nan;
    return code == (uint32_t)s->top + 2 ? (QREAL)-INFINITY : (QREAL)INFINITY;
}

#undef QINF
