/* quant_model.h - the definition of quant.h, literally. */
#ifndef QUANT_MODEL_H
#define QUANT_MODEL_H

#include "../../../src/reduce/quant.h"

#include <float.h>
#include <math.h>

/* quant.h once more, in double for f64 and in float else, element by element,
 * with the library's rint and nextafter. */
#define MODEL(name, type, round_of, next_of, max)                              \
    static type name##_step(type lo, type hi, type top)                        \
    {                                                                          \
        volatile type range = hi - lo, step = range / top;                     \
        volatile type back = step * top;                                       \
        if (back < range) step = next_of(step, (type)INFINITY);                \
        return step > 0 ? step : 1;                                            \
    }                                                                          \
    static void name##_block(int algorithm, type top, const type *x, size_t n, \
                             type header[2], uint64_t *codes, type *values)    \
    {                                                                          \
        type lo = (type)INFINITY, hi = -(type)INFINITY, scale = 1;             \
        bool odd = false;                                                      \
        for (size_t i = 0; i < n; i++) {                                       \
            odd |= !isfinite(x[i]);                                            \
            if (isfinite(x[i]) && x[i] < lo) lo = x[i];                        \
            if (isfinite(x[i]) && x[i] > hi) hi = x[i];                        \
        }                                                                      \
        if (lo > hi) lo = hi = 0;                                              \
        if (odd) top -= 3;                                                     \
        if (algorithm == QUANT_MINMAX && odd && lo == hi) {                    \
            if (hi < max)                                                      \
                hi = next_of(lo, (type)INFINITY);                              \
            else                                                               \
                lo = next_of(hi, -(type)INFINITY);                             \
        }                                                                      \
        if (algorithm != QUANT_MINMAX && lo > 0) lo = 0;                       \
        if (algorithm != QUANT_MINMAX && hi < 0) hi = 0;                       \
        bool wide = !isfinite(hi - lo);                                        \
        header[0] = odd ? hi : lo;                                             \
        header[1] = odd ? lo : hi;                                             \
        if (algorithm == QUANT_MINMAX && wide) scale = (type)0.25;             \
        volatile type step = name##_step(lo * scale, hi * scale, top);         \
        if (algorithm != QUANT_MINMAX && wide) step = hi / top - lo / top;     \
        volatile type zero = round_of(-lo / step);                             \
        if (algorithm != QUANT_MINMAX) header[0] = odd ? -step : step;         \
        if (algorithm != QUANT_MINMAX) header[1] = zero;                       \
        for (size_t i = 0; i < n; i++) {                                       \
            volatile type t = algorithm == QUANT_MINMAX                        \
                                  ? (x[i] * scale - lo * scale) / step         \
                                  : x[i] / step;                               \
            volatile type c =                                                  \
                round_of(t) + (algorithm == QUANT_MINMAX ? 0 : zero);          \
            if (c < 0) c = 0;                                                  \
            if (c > top) c = top;                                              \
            volatile type v =                                                  \
                algorithm == QUANT_MINMAX ? c * step : (c - zero) * step;      \
            if (algorithm == QUANT_MINMAX) v = lo * scale + v;                 \
            if (algorithm == QUANT_MINMAX && v > hi * scale) v = hi * scale;   \
            v = v / scale;                                                     \
            if (v > max) v = max;                                              \
            if (v < -max) v = -max;                                            \
            if (isnan(x[i])) c = top + 1, v = (type)NAN;                       \
            if (isinf(x[i])) c = top + (x[i] > 0 ? 3 : 2), v = x[i];           \
            codes[i] = (uint64_t)c;                                            \
            values[i] = v;                                                     \
        }                                                                      \
    }

MODEL(model_f32, float, rintf, nextafterf, FLT_MAX)
MODEL(model_f64, double, rint, nextafter, DBL_MAX)

#endif
