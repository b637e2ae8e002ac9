/* host_id.h - what the id of a host says. Pure; host.h makes it. */
#ifndef PCCL_HOST_ID_H
#define PCCL_HOST_ID_H

#include <stdint.h>

enum { HOST_PROCESSORS_MAX = 1023, HOST_HASH_AT = 11 };

/* The last bit is set where a member shares no memory; above it is the number
 * of processors, and then a hash. */
static inline uint64_t host_id_make(uint64_t hash, uint64_t processors)
{
    if (processors > HOST_PROCESSORS_MAX) processors = HOST_PROCESSORS_MAX;
    return hash << HOST_HASH_AT | processors << 1;
}

/* 0: unknown, in the ids of tests. */
static inline uint32_t host_processors(uint64_t id)
{
    return id >> 1 & HOST_PROCESSORS_MAX;
}

#endif
