/* limit.c - see limit.h. */
#include "limit.h"

#include "base.h"

static const struct limit limits[] = {
#define X(name, value, unit, decides, why, measured)                           \
    {#name, value, unit, decides, why, measured},
    LIMITS(X)
#undef X
};

const struct limit *limit_by_number(uint32_t i)
{
    return i < ARRAY_COUNT(limits) ? &limits[i] : NULL;
}
