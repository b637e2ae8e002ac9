/* rank_use.c - observes what the program does with ranks (rules E1 to E9). */
#include "rank_use.h"
#include "transport.h"

#include "../base/quiet_write.h"
#include "../base/traits.h"

#include <pthread.h>
#include <stdio.h>

/* Facts about this process, all of which stay. */
enum {
    NAMED = 1,    /* it names or keeps ranks */
    FUNCTION = 2, /* it has called a PCCL_ or MPIX_ function */
};

const char rank_use_changed_text[] =
    "ranks have changed with a loss, and the program has named none before";

static bool watched; /* constant after the start, as is: */
static int began_as; /* the rank then */
static atomic_uint facts;
static atomic_int believed; /* what MPI_Comm_rank has returned last */
static atomic_bool changed; /* ranks have, without PCCL_Update_topology */
static atomic_ulong calls;  /* collectives of the world */
static _Atomic(const char *) reason; /* the first call that named ranks */

/* Guards what follows. No other lock is taken while it is held, and no call is
 * made but to pccl. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t traits;     /* as pccl knows them */
static uint64_t decided;    /* epoch of the last loss that was decided */
static bool stays;          /* ranks do not change (E5) */
static uint64_t changed_at; /* epoch of the last change */
static int size_first, size_last, lost;
static unsigned long call_first, call_last;

/* ------------------------------------------------------------ observation */

static uint32_t traits_of(unsigned known)
{
    if (world.forced || known & FUNCTION) return 0;
    return TRAIT_UNINFORMED | (known & NAMED ? TRAIT_REFUSES : 0);
}

/* With the lock. */
static void say_traits(void)
{
    uint32_t now = traits_of(atomic_load(&facts));
    if (now != traits && world.pccl) (void)pcclSetTraits(world.pccl, now);
    traits = now;
}

static void learn(unsigned more)
{
    if ((atomic_fetch_or(&facts, more) & more) == more) return;
    pthread_mutex_lock(&lock);
    say_traits();
    pthread_mutex_unlock(&lock);
}

void rank_use_start(void)
{
    const struct group *view = atomic_load(&world.view);
    watched = world.pccl && world.policy == FAILURE_SHRINK;
    began_as = view->rank;
    atomic_store(&believed, view->rank);
    changed_at = view->view->epoch;
    if (!watched) return;
    pthread_mutex_lock(&lock);
    say_traits();
    pthread_mutex_unlock(&lock);
}

void rank_use_asked_rank(const struct comm *comm, int rank)
{
    if (watched && comm->follows_world) atomic_store(&believed, rank);
}

void rank_use_opt_in(void)
{
    if (watched) learn(FUNCTION);
}

static void give_reason(const char *function)
{
    const char *none = NULL;
    (void)atomic_compare_exchange_strong(&reason, &none, public_name(function));
}

void rank_use_keep(const char *function)
{
    if (!watched) return;
    if (!atomic_load(&reason)) give_reason(function);
    learn(NAMED);
}

int rank_use_name(const struct comm *comm, const char *function)
{
    if (!watched || !comm->follows_world) return MPI_SUCCESS;
    rank_use_keep(function);
    if (!rank_use_unaware()) return MPI_SUCCESS;
    return error_note(MPIX_ERR_PROC_FAILED, "%s", rank_use_changed_text);
}

void rank_use_collective(struct coll *coll)
{
    coll->unaware = false;
    if (!watched || !coll->comm->follows_world) return;
    if (coll->uses == USES_RANKS) {
        coll->unaware = rank_use_unaware();
        rank_use_keep(coll->function);
    }
    coll->number = atomic_fetch_add(&calls, 1) + 1;
    if (coll->uses == USES_ROOT_DATA && !world.promotes && rank_use_unaware())
        coll->unaware =
            (coll->members->rank == coll->root) != (began_as == coll->root);
}

/* --------------------------------------------------------------- decisions */

bool rank_use_allows_change(void)
{
    uint32_t all;
    if (world.forced) return true;
    pthread_mutex_lock(&lock);
    const struct view *now = pcclHoldView(world.pccl);
    if (now && now->epoch != decided &&
        pcclGetTraits(world.pccl, &all) == pcclSuccess) {
        stays = stays || all & TRAIT_REFUSES;
        decided = now->epoch;
    }
    bool allowed = !stays;
    pthread_mutex_unlock(&lock);
    view_release(now);
    return allowed;
}

static void tell(int gone, int before, unsigned long first, unsigned long last,
                 int left)
{
    char where[64];
    if (first == last)
        snprintf(where, sizeof where, "call %lu", first);
    else
        snprintf(where, sizeof where, "calls %lu to %lu", first, last);
    quiet_print("pccl: %d of %d ranks %s lost in %s; results hold what %d "
                "rank%s contributed\n",
                gone, before, gone == 1 ? "was" : "were", where, left,
                left == 1 ? "" : "s");
}

void rank_use_changed(const struct group *before, unsigned long call)
{
    const struct group *now = atomic_load(&world.view);
    uint64_t epoch = now->view->epoch;
    int gone = (int)(now->view->lost - before->view->lost);
    pthread_mutex_lock(&lock);
    bool news = epoch > changed_at && gone > 0;
    if (epoch > changed_at) changed_at = epoch;
    if (news) {
        if (lost == 0) size_first = before->size;
        if (lost == 0) call_first = call;
        lost += gone;
        size_last = now->size;
        call_last = call;
    }
    pthread_mutex_unlock(&lock);
    if (!news) return;
    atomic_store(&changed, true);
    if (now->rank == 0 && !(atomic_load(&facts) & FUNCTION))
        tell(gone, before->size, call, call, now->size);
}

void rank_use_updated(void)
{
    const struct group *view = atomic_load(&world.view);
    pthread_mutex_lock(&lock);
    stays = false;
    decided = changed_at = view->view->epoch;
    pthread_mutex_unlock(&lock);
}

void rank_use_tell_end(void)
{
    const struct group *view = atomic_load(&world.view);
    pthread_mutex_lock(&lock);
    bool due = lost > 0 && view->rank == 0;
    pthread_mutex_unlock(&lock);
    if (!due || atomic_load(&facts) & FUNCTION) return;
    tell(lost, size_first, call_first, call_last, size_last);
}

/* ----------------------------------------------------------------- inquiry */

bool rank_use_has_changed(void)
{
    return atomic_load(&changed);
}

bool rank_use_unaware(void)
{
    if (!atomic_load(&changed) || world.forced) return false;
    return !(atomic_load(&facts) & FUNCTION);
}

bool rank_use_believes(int rank)
{
    return atomic_load(&believed) == rank;
}

bool rank_use_has_opted_in(void)
{
    return watched && traits_of(atomic_load(&facts)) == 0;
}

void rank_use_advice(char *text, size_t size)
{
    pthread_mutex_lock(&lock);
    bool why = watched && (stays || traits & TRAIT_REFUSES);
    pthread_mutex_unlock(&lock);
    const char *function = atomic_load(&reason);
    *text = 0;
    bool late = rank_use_unaware() && atomic_load(&facts) & NAMED; /* E6 */
    if ((!why && !late) || transport_gone()) return;
    snprintf(text, size,
             "; ranks do not change under a program that addresses them (%s): "
             "handle MPIX_ERR_PROC_FAILED (ULFM), call PCCL_Update_topology, "
             "or use --restart or --elastic=force",
             function ? function : "another rank does");
}
