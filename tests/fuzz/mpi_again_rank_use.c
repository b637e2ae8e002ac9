/* mpi_again_rank_use.c - rank_use.c, and what sets its statics to
 * what they are when a process starts: fuzz_mpi has many lives in one. */
#include "../../src/mpi/rank_use.c"

#include "mpi_run.h"

void again_rank_use(void)
{
    atomic_store(&facts, 0);
    atomic_store(&calls, 0);
    atomic_store(&changed, false);
    atomic_store(&reason, NULL);
    traits = 0;
    decided = changed_at = 0;
    stays = false;
    lost = 0;
}
