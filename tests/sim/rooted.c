/* rooted.c - universes of gathers, scatters and sums that go to a root (rules
 * D23, D25). */
#include "sim.h"

/* A sum goes through regions where three or more take part, in more segments
 * than the root has places for. */
void rooted_choose(struct sim_options *o, uint64_t seed)
{
    if (seed % 7 != 1 && seed % 7 != 4) return;
    o->one_host = o->pairwise = o->lends = o->large = true;
    o->interleaved = false;
    o->sites = 0;
    o->piece = 8192;
    o->share = 32768u << seed % 3;
    o->pipe_min = 32768;
    if (o->pipe_max < o->pipe_min) o->pipe_max = o->pipe_min;
    if (o->procs < 4) o->procs += 2;
}
