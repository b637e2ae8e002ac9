/* fiber.c - the threads of all ranks in one thread, by turns. One turn goes
 * from one wait to the next: a lock that is held, a sleep, or a call of pccl
 * that waits. */
#include "threads.h"

#include "world.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK_SIZE = 1 << 20 };

struct fiber {
    ucontext_t context;
    void *stack;
    struct rank *rank;
    void *(*run)(void *);
    void *argument;
    pccl_ns until; /* it sleeps */
    bool over;
};

static ucontext_t scheduler;
static struct fiber *current;

static void fiber_main(void)
{
    struct fiber *f = current;
    (void)f->run(f->argument);
    f->over = true;
    swapcontext(&f->context, &scheduler);
}

struct fiber *fiber_new(struct rank *rank, void *(*run)(void *), void *argument)
{
    int i = 0;
    while (i < FIBERS_MAX && rank->fibers[i]) i++;
    struct fiber *f = i < FIBERS_MAX ? calloc(1, sizeof *f) : NULL;
    SIM_CHECK(&universe, f != NULL, "rank %d has too many threads",
              rank->number);
    rank->fibers[i] = f;
    f->rank = rank;
    f->run = run;
    f->argument = argument;
    f->stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    SIM_CHECK(&universe, f->stack != MAP_FAILED, "no memory for a stack");
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK_SIZE;
    makecontext(&f->context, fiber_main, 0);
    return f;
}

struct rank *fiber_rank(void)
{
    return current->rank;
}

void fiber_yield(void)
{
    struct fiber *f = current;
    swapcontext(&f->context, &scheduler);
}

bool fiber_is_over(const struct fiber *fiber)
{
    return fiber->over;
}

bool fiber_turn(struct rank *rank)
{
    struct fiber *can[FIBERS_MAX];
    uint32_t count = 0;
    for (int i = 0; i < FIBERS_MAX; i++) {
        struct fiber *f = rank->fibers[i];
        if (f && !f->over && f->until <= universe.now) can[count++] = f;
    }
    if (count == 0) return false;
    current = can[sim_pick(&universe, count)];
    swapcontext(&scheduler, &current->context);
    current = NULL;
    return true;
}

/* Nothing of a dead process runs again. */
void fibers_forget(struct rank *rank)
{
    for (int i = 0; i < FIBERS_MAX; i++) {
        struct fiber *f = rank->fibers[i];
        if (!f) continue;
        if (f != current) munmap(f->stack, STACK_SIZE);
        if (f != current) free(f);
        rank->fibers[i] = NULL;
    }
}

/* ----------------------------------------------------------------- threads.h
 */

/* Locks are words: 0 is free, which PTHREAD_MUTEX_INITIALIZER is. */
int sim_trylock(pthread_mutex_t *mutex)
{
    int *held = (int *)mutex;
    if (*held) return EBUSY;
    *held = 1;
    return 0;
}

int sim_lock(pthread_mutex_t *mutex)
{
    /* Another thread of the rank may come first. */
    if (current && sim_pick(&universe, 16) == 0) fiber_yield();
    while (sim_trylock(mutex) != 0) {
        events->lock_waits++;
        fiber_yield();
    }
    return 0;
}

int sim_unlock(pthread_mutex_t *mutex)
{
    int *held = (int *)mutex;
    SIM_CHECK(&universe, *held == 1, "a lock is given back that nobody holds");
    *held = 0;
    return 0;
}

int sim_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    (void)cond;
    (void)sim_unlock(mutex);
    fiber_yield();
    return sim_lock(mutex);
}

static pccl_ns ns_of(const struct timespec *time)
{
    return (pccl_ns)time->tv_sec * PCCL_S + time->tv_nsec;
}

int sim_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex,
                        const struct timespec *until)
{
    if (universe.now >= ns_of(until)) return ETIMEDOUT;
    current->until = ns_of(until);
    (void)sim_cond_wait(cond, mutex);
    return universe.now >= ns_of(until) ? ETIMEDOUT : 0;
}

int sim_thread(pthread_t *thread, const pthread_attr_t *attributes,
               void *(*run)(void *), void *argument)
{
    (void)attributes;
    struct fiber *f = fiber_new(fiber_rank(), run, argument);
    memcpy(thread, &f, sizeof f);
    return 0;
}

int sim_join(pthread_t thread, void **result)
{
    struct fiber *f;
    (void)result;
    memcpy(&f, &thread, sizeof f);
    while (!f->over) fiber_yield();
    return 0;
}

int sim_pass(void)
{
    fiber_yield();
    return 0;
}

int sim_sleep(const struct timespec *pause, struct timespec *left)
{
    (void)left;
    current->until = universe.now + ns_of(pause);
    fiber_yield();
    return 0;
}

int sim_time(clockid_t clock, struct timespec *now)
{
    (void)clock;
    *now = (struct timespec){.tv_sec = universe.now / PCCL_S,
                             .tv_nsec = universe.now % PCCL_S};
    return 0;
}

char *sim_environment(const char *name)
{
    static char master[] = "127.0.0.1:1", policy[] = "return";
    if (strcmp(name, "PCCL_MASTER") == 0) return master;
    return strcmp(name, "PCCL_ON_FAILURE") == 0 ? policy : NULL;
}

void sim_exit(int status)
{
    struct rank *r = fiber_rank();
    r->status = status ? status : -1;
    for (int i = 0; i < FIBERS_MAX; i++)
        if (r->fibers[i]) r->fibers[i]->over = true;
    fiber_yield();
    abort();
}
