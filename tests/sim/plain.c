/* plain.c - see plain.h. */
#include "plain.h"

#include <stdlib.h>

volatile uint32_t sim_plain;

void *sim_malloc(size_t size);
void *sim_calloc(size_t count, size_t size);
void *sim_realloc(void *old, size_t size);

void *sim_malloc(size_t size)
{
    sim_plain++;
    void *memory = malloc(size);
    sim_plain--;
    return memory;
}

void *sim_calloc(size_t count, size_t size)
{
    sim_plain++;
    void *memory = calloc(count, size);
    sim_plain--;
    return memory;
}

void *sim_realloc(void *old, size_t size)
{
    sim_plain++;
    void *memory = realloc(old, size);
    sim_plain--;
    return memory;
}
