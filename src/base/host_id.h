/* host_id.h - what the id of a host says. Pure; host.h makes it. */
#ifndef PCCL_HOST_ID_H
#define PCCL_HOST_ID_H

#include <stdbool.h>
#include <stdint.h>

enum { HOST_PROCESSORS_MAX = 1023, HOST_HASH_AT = 11 };

/* Equal for members that share memory. The last bit is set where a member
 * shares none; above it is the number of processors, and then a hash. 0:
 * unknown. */
static inline uint64_t host_id_make(uint64_t hash, uint64_t processors)
{
    if (processors > HOST_PROCESSORS_MAX) processors = HOST_PROCESSORS_MAX;
    return hash << HOST_HASH_AT | processors << 1;
}

static inline uint64_t host_without_memory(uint64_t id)
{
    return id | 1;
}

static inline bool host_shares_memory(uint64_t id)
{
    return id != 0 && id % 2 == 0;
}

/* Whether or not they share memory. */
static inline bool host_is_same(uint64_t a, uint64_t b)
{
    return a != 0 && host_without_memory(a) == host_without_memory(b);
}

/* 0: unknown, in the ids of tests. */
static inline uint32_t host_processors(uint64_t id)
{
    return id >> 1 & HOST_PROCESSORS_MAX;
}

#endif
