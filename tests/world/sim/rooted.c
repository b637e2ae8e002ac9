/* rooted.c - universes of gathers, scatters and sums that go to a root (rules
 * D23, D25), and of all-to-alls with blocks of one size, which mostly go over a
 * tree (rule D26). */
#include "sim.h"

/* A sum goes through regions where three or more take part, in more segments
 * than the root has places for. */
void rooted_choose(struct sim_options *o, uint64_t seed, bool all, bool others)
{
    o->rooted = all || (!others && seed % 31 == 5);
    if (!all || (seed % 7 != 1 && seed % 7 != 4)) return;
    o->one_host = o->pairwise = o->lends = o->large = true;
    o->interleaved = false;
    o->sites = 0;
    o->piece = 8192;
    o->share = 32768u << seed % 3;
    o->pipe_min = 32768;
    if (o->pipe_max < o->pipe_min) o->pipe_max = o->pipe_min;
    if (o->procs < 4) o->procs += 2;
}

/* A tree of all pairs on one host is a star (rule D17). The fast path has
 * algorithms of its own kind. */
void even_choose(struct sim_options *o, uint64_t seed, bool all, bool others)
{
    o->even = all || (!others && seed % 31 == 21);
    if (!o->even || o->fast) return;
    if (seed % 4 > 0) o->algorithm = "alltoallv:tree";
    if (seed % 8 == 1) o->one_host = false;
}
