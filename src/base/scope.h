/* scope.h - the number of a scope, in the names of its operations.
 *
 * The whole view has number 0. Any other scope is the set of its members, and
 * its number is a hash of their ids in which their order does not count: the
 * order is an argument of the operation, which its digest covers. A peer gets
 * its id once, so a number means the same in every view and at the master. */
#ifndef PCCL_SCOPE_H
#define PCCL_SCOPE_H

#include "base.h"

static inline uint64_t scope_mix(uint64_t x)
{
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

/* list NULL: the whole view. */
static inline uint64_t scope_number(const uint64_t *list, uint32_t count)
{
    if (!list) return 0;
    uint64_t sum = count;
    for (uint32_t i = 0; i < count; i++)
        sum += scope_mix(list[i] + 0x9e3779b97f4a7c15u);
    uint64_t number = scope_mix(sum);
    return number != 0 ? number : 1;
}

#endif
