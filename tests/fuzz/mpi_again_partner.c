/* mpi_again_partner.c - partner.c, and what sets its statics to
 * what they are when a process starts: fuzz_mpi has many lives in one. */
#include "../../src/mpi/partner.c"

#include "mpi_run.h"

void again_partner(void)
{
    for (uint32_t i = 0; i < sizeof partners / sizeof *partners; i++) {
        struct partner *at = atomic_load(&partners[i]);
        while (at) {
            struct partner *next = atomic_load(&at->next);
            free(at);
            at = next;
        }
        atomic_store(&partners[i], NULL);
    }
    queuing = NULL;
    atomic_store(&some_lost, false);
    atomic_store(&holders, 0);
}
